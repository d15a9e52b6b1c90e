"""S7: hostile names of branches, folders and files are names and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hitchpost.workspaces import git, store
from tests.ground import Ground, Truth
from tests.repos import Repo
from tests.security.test_injection import hostile

CANARY = "canary"


def branches(canary: Path) -> list[str]:
    """Names that git allows for a branch and that a shell, tmux or an option parser would take for more."""
    touch = f"touch${{IFS}}{canary}"
    return [
        f"$({touch})",
        f"`{touch}`",
        f";{touch};",
        f"a|{touch}",
        f"#({touch})",
        "#{pane_pid}",
        "a'b\"c",
        "%n%s{0}",
        "a&b",
        "(top)",
        "ünï/🎉",
        "x=--exec=id",
        "main.--output",
    ]


@pytest.mark.ids("S7")
def test_S7_hostile_branch_names_run_nothing_and_make_the_branch_of_that_very_name(ground: Ground, repo: Repo) -> None:
    canary = repo.path.parent / CANARY
    for name in branches(canary):
        answer = ground.hitch("run", "--json", "--branch", name, "--", "git", "symbolic-ref", "HEAD", cwd=repo.path)
        session = Truth(ground.home, answer.json()["id"])
        assert session.ended() == "completed"
        assert session.output().decode().strip() == f"refs/heads/{name}"
        workspace = store.find(str(ground.home), name)
        place = os.stat(workspace.path)
        assert session.run_file()["folder_ino"] == place.st_ino == workspace.ino
        assert ground.hitch.here("workspace", "path", name).out == f"{workspace.path}\n"
        ground.hitch.here("diff", session.id)
    assert len(ground.hitch("workspace", "ls").out.splitlines()) == len(branches(canary)) + 1
    ground.hitch("workspace", "prune")
    assert repo.worktrees == [str(repo.path)]
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_S7_names_that_are_options_or_no_branches_are_refused(ground: Ground, repo: Repo) -> None:
    canary = repo.path.parent / CANARY
    names = [
        "-rf",
        "--help",
        "--upload-pack=x",
        "-",
        "@{-1}",
        "a..b",
        "a\nb",
        "refs/../../x",
        "../x",
        "a\x1b[2Jb",
        ".x",
    ]
    for name in [*names, *(text for text in hostile(canary) if " " in text)]:
        for words in (("run", f"--branch={name}", "--", "true"), ("workspace", "create", "--", name)):
            answer = ground.hitch.here(*words, cwd=repo.path, check=2)
            assert "cannot be the name of a branch" in answer.err
            assert "\x1b" not in answer.err
    assert not canary.exists()
    assert repo.git("branch", "--format=%(refname:short)") == "main"


@pytest.mark.ids("S7")
def test_S7_hostile_folder_names_are_worked_in_and_run_nothing(ground: Ground, repo: Repo) -> None:
    canary = repo.path.parent / CANARY
    for number, name in enumerate(text.replace("/", "_") for text in hostile(canary)):
        clone = Repo(repo.path.parent / "clones" / name)
        repo.git("clone", "-q", "--", repo.path, clone.path)
        answer = ground.hitch("run", "--json", "--branch", f"b{number}", "--", "true", cwd=clone.path)
        Truth(ground.home, answer.json()["id"]).ended()
        workspace = store.find(str(ground.home), f"b{number}")
        assert workspace.repo == str(clone.path / ".git")
        assert Path(workspace.path).parent == ground.home / "workspaces" / workspace.id
        Path(workspace.path, "new").touch()
        ground.hitch.here("workspace", "rm", "--force", f"b{number}")
        ground.hitch.here("workspace", "restore", f"b{number}")
        assert Path(workspace.path, "new").exists()
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_S7_hostile_file_names_are_stored_compared_and_brought_back(ground: Ground, repo: Repo) -> None:
    canary = repo.path.parent / CANARY
    names = sorted({text.replace("/", "_") for text in hostile(canary)} | {":(exclude)x", ":!x", "a\x1b[2J"})
    script = "import json, sys; [open(name, 'w').write('x\\n') for name in json.load(open(sys.argv[1]))]"
    told = repo.path.parent / "names"
    told.write_text(json.dumps(names))
    answer = ground.hitch("run", "--json", "--branch", "fix", "--", "python3", "-c", script, str(told), cwd=repo.path)
    session = Truth(ground.home, answer.json()["id"])
    assert session.ended() == "completed"
    found = ground.hitch("diff", session.id, "--json").json()["files"]
    assert sorted(one["path"] for one in found) == names
    assert "\x1b" not in ground.hitch("diff", session.id).out
    ground.hitch("workspace", "rm", "--force", "fix")
    ground.hitch("workspace", "restore", "fix")
    assert sorted(set(os.listdir(store.find(str(ground.home), "fix").path)) - {".git", "README"}) == names
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_S7_programs_that_a_repository_names_in_its_settings_are_not_run_by_reading(ground: Ground, repo: Repo) -> None:
    canary = repo.path.parent / CANARY
    answer = ground.hitch("run", "--json", "--branch", "fix", "--", "true", cwd=repo.path)
    session = Truth(ground.home, answer.json()["id"])
    session.ended()
    for key in ("core.fsmonitor", "diff.external", "core.pager", "pager.diff", "pager.status", "core.editor"):
        repo.git("config", key, f"touch {canary}")
    hooks = repo.path.parent / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-index-change", "pre-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {canary}\n")
        (hooks / name).chmod(0o700)
    repo.git("config", "core.hooksPath", str(hooks))
    canary.unlink(missing_ok=True)
    Path(store.find(str(ground.home), "fix").path, "new").touch()
    for words in (
        ("diff", session.id),
        ("workspace", "ls"),
        ("workspace", "prune"),
        ("workspace", "rm", "--force", "fix"),
    ):
        ground.hitch(*words)
    assert not canary.exists()
    assert git.head(str(repo.path)) is not None


@pytest.mark.ids("S7")
@pytest.mark.parametrize("where", ["worktree", "repository inside", "plain folder"])
def test_S7_filters_that_an_agent_names_without_a_container_are_not_run(ground: Ground, repo: Repo, where: str) -> None:
    canary = repo.path.parent / CANARY
    evil = f"git config filter.x.clean 'touch {canary}; cat'; echo '* filter=x' > .gitattributes; echo new > README"
    place = {"repository inside": "git init -q evil; cd evil; ", "plain folder": "git init -q .; "}.get(where, "")
    branch = ("--branch", "fix") if where != "plain folder" else ()
    words = ("run", "--json", "--name", "dev", *branch, "--", "sh", "-c", place + evil)
    folder = repo.path if branch else ground.place
    session = Truth(ground.home, ground.hitch(*words, cwd=folder).json()["id"])
    assert session.ended() == "completed"
    ground.hitch("diff", "dev", check=0 if branch else 4)
    ground.hitch("workspace", "ls")
    ground.hitch("restart", "dev")
    session.ended(2)
    ground.hitch("workspace", "rm", "--force", "fix", check=False)
    assert not canary.exists()
