from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from hitchpost.errors import BadSettings, SetupFailed
from hitchpost.workspaces import lease, project, trust, worktree
from hitchpost.workspaces.removal import remove
from hitchpost.workspaces.store import Workspace
from tests.repos import Repo

SETUP = """[workspace]
setup = ["sh -c 'pwd; echo $HITCHPOST_BRANCH > made'", ["sh", "-c", "echo two words >> made", "; touch x"]]
teardown = ["touch {}"]
"""


def made(home: Path, repo: Repo, text: str, *, trusted: bool = True) -> Workspace:
    repo.commit(".gitignore", "made\n")
    repo.commit(".hitchpost.toml", text)
    if trusted:
        trust.trust(str(home), str(repo.path / ".git"), text.encode())
    return worktree.make(str(home), str(repo.path), "fix").workspace


def log(home: Path, workspace: Workspace) -> str:
    return (home / "workspaces" / workspace.id / "setup.log").read_text()


def test_trusted_commands_run_in_the_new_worktree_once_and_their_output_is_kept(home: Path, repo: Repo) -> None:
    workspace = made(home, repo, SETUP)
    workspace, notes = project.set_up(str(home), workspace)
    assert (workspace.setup_done, notes) == (True, [])
    tree = Repo(Path(workspace.path))
    assert tree.files()["made"] == "fix\ntwo words\n"
    assert not (tree.path / "x").exists()
    assert log(home, workspace).splitlines()[:2] == [
        "$ sh -c 'pwd; echo $HITCHPOST_BRANCH > made'",
        workspace.path,
    ]
    (tree.path / "made").unlink()
    project.set_up(str(home), workspace)
    assert not (tree.path / "made").exists()


@pytest.mark.ids("S7")
def test_commands_that_nobody_trusted_do_not_run_and_a_note_says_so(home: Path, repo: Repo) -> None:
    workspace = made(home, repo, SETUP, trusted=False)
    after, notes = project.set_up(str(home), workspace)
    assert notes == [
        "the setup of .hitchpost.toml was not run: it is not trusted; look at it with hitch workspace trust fix"
    ]
    assert not after.setup_done
    assert not (Path(workspace.path) / "made").exists()


@pytest.mark.ids("S7")
def test_trust_is_for_one_content_in_one_repository(home: Path, repo: Repo) -> None:
    ours, content = str(repo.path / ".git"), SETUP.encode()
    trust.trust(str(home), ours, content)
    assert trust.is_trusted(str(home), ours, content)
    assert not trust.is_trusted(str(home), ours, content + b"\n")
    assert not trust.is_trusted(str(home), ours + "x", content)
    trust.trust(str(home), ours, b"another")
    assert trust.is_trusted(str(home), ours, content)
    path = home / "trust.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(json.loads(path.read_bytes())["trusted"][ours]) == 2


def test_a_command_that_fails_is_told_with_its_code_and_log_and_is_tried_again(home: Path, repo: Repo) -> None:
    workspace = made(home, repo, "[workspace]\nsetup = [\"sh -c 'echo broken; test -e ../made || exit 7'\"]\n")
    with pytest.raises(SetupFailed) as raised:
        project.set_up(str(home), workspace)
    where = home / "workspaces" / workspace.id / "setup.log"
    assert str(raised.value) == (
        f"setup failed: sh -c 'echo broken; test -e ../made || exit 7' exited with code 7; its output is in {where}"
    )
    assert "broken\n" in log(home, workspace)
    assert lease.holders(str(home), workspace) == []
    (Path(workspace.path).parent / "made").touch()
    assert project.set_up(str(home), workspace)[0].setup_done


@pytest.mark.ids("S7")
def test_trust_covers_the_files_that_the_commands_name(home: Path, repo: Repo) -> None:
    repo.write("script/up.sh", "touch first\n")
    repo.git("add", ".")
    workspace = made(home, repo, '[workspace]\nsetup = [["sh", "-c", ". ./script/up.sh"]]\n')
    told = project.read(workspace.path)
    assert told is not None
    assert told.named == ("script/up.sh",)
    trust.trust(str(home), str(workspace.repo), told.content)
    script = Path(workspace.path) / "script/up.sh"
    script.write_text("touch second\n")
    assert "it is not trusted" in project.set_up(str(home), workspace)[1][0]
    script.unlink()
    script.symlink_to("/dev/zero")
    with pytest.raises(BadSettings, match=r"script/up\.sh, which \.hitchpost\.toml names"):
        project.set_up(str(home), workspace)
    script.unlink()
    script.write_text("touch first\n")
    assert project.set_up(str(home), workspace)[0].setup_done
    assert (Path(workspace.path) / "first").exists()
    assert not (Path(workspace.path) / "second").exists()


@pytest.mark.parametrize(
    ("command", "how"),
    [
        ("no-such-program", "cannot be started (no such file or directory)"),
        ("sh -c 'kill -9 $$'", "was killed by SIGKILL"),
    ],
)
def test_other_ways_to_fail_are_told(home: Path, repo: Repo, command: str, how: str) -> None:
    workspace = made(home, repo, f'[workspace]\nsetup = ["{command}"]\n')
    with pytest.raises(SetupFailed) as raised:
        project.set_up(str(home), workspace)
    assert f"setup failed: {command} {how}; " in str(raised.value)


def test_teardown_runs_before_removal_when_it_is_trusted(home: Path, repo: Repo) -> None:
    canary = repo.path.parent / "canary"
    workspace = made(home, repo, SETUP.format(canary))
    remove(str(home), workspace)
    assert canary.exists()


def test_a_teardown_that_fails_keeps_the_workspace(home: Path, repo: Repo) -> None:
    workspace = made(home, repo, '[workspace]\nteardown = ["false"]\n')
    with pytest.raises(SetupFailed, match="teardown failed: false exited with code 1"):
        remove(str(home), workspace)
    assert Path(workspace.path).exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("workspace = 1", "expected workspace to be a table"),
        ('[workspace]\nsetup = "make"', "expected setup to be a list of commands, but got 'make'"),
        ("[workspace]\nsetup = [1]", "expected a command of setup to be a text or a list of texts, but got 1"),
        ("[workspace]\nsetup = [[]]", "expected a command of setup"),
        ('[workspace]\nteardown = ["\'"]', "cannot split"),
        ("[workspace", "cannot read"),
    ],
)
def test_a_file_that_is_wrong_is_said(repo: Repo, text: str, why: str) -> None:
    repo.write(".hitchpost.toml", text)
    with pytest.raises(BadSettings) as raised:
        project.read(str(repo.path))
    assert why in str(raised.value)


def test_a_link_is_not_read(repo: Repo) -> None:
    (repo.path / ".hitchpost.toml").symlink_to("README")
    with pytest.raises(BadSettings, match="too many levels of symbolic links"):
        project.read(str(repo.path))
