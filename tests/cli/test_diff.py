"""``hitch diff`` as a person uses it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from hitchpost.workspaces import store
from tests.ground import Ground, Truth
from tests.repos import Repo
from tests.support import Hitch


@pytest.fixture
def dev(ground: Ground, repo: Repo) -> Truth:
    answer = ground.hitch("run", "--json", "--branch", "fix", "--name", "dev", "--", "true", cwd=repo.path)
    session = Truth(ground.home, answer.json()["id"])
    session.ended()
    return session


@pytest.fixture
def tree(ground: Ground, dev: Truth) -> Repo:
    return Repo(Path(store.find(str(ground.home), "fix").path))


def on_a_terminal(*words: str) -> bytes:
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "hitchpost", *words]
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=Hitch.environment()) as process:
        os.close(theirs)
        parts = []
        while part := _read(ours):
            parts.append(part)
        process.wait()
    os.close(ours)
    return b"".join(parts)


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except OSError:
        return b""


def test_the_work_of_an_ended_session_is_shown(ground: Ground, repo: Repo, dev: Truth, tree: Repo) -> None:
    base = repo.head
    tree.commit("committed", "1\n")
    tree.write("README", "changed\n")
    tree.write("new")
    patch = ground.hitch("diff", "dev").out
    assert [line for line in patch.splitlines() if line.startswith("diff")] == [
        "diff --git a/README b/README",
        "diff --git a/committed b/committed",
        "diff --git a/new b/new",
    ]
    stat = ground.hitch("diff", "dev", "--stat").out
    assert stat.splitlines()[-1] == " 3 files changed, 3 insertions(+), 1 deletion(-)"
    shape = ground.hitch("diff", "dev", "--json").json()
    assert {key: shape[key] for key in ("base", "head", "branch")} == {"base": base, "head": tree.head, "branch": "fix"}
    assert shape["patch"] == patch
    assert shape["files"][2] == {
        "path": "new",
        "old_path": None,
        "status": "A",
        "added": 1,
        "deleted": 0,
        "binary": False,
        "untracked": True,
    }


def test_without_changes_nothing_is_printed(ground: Ground, dev: Truth) -> None:
    answer = ground.hitch("diff", "dev")
    assert (answer.out, answer.err) == ("", "")
    assert ground.hitch("diff", "dev", "--json").json()["files"] == []


@pytest.mark.ids("S7")
def test_a_terminal_gets_colours_and_nothing_that_could_command_it(dev: Truth, tree: Repo) -> None:
    tree.write("README", "a\x1b]0;title\x07\x1b[2J\tb\n")
    tree.write("na\x1b[2Jme")
    shown = on_a_terminal("diff", "dev")
    assert b"\x1b[32m+a\\x1b]0;title\\x07\\x1b[2J\tb\x1b[0m" in shown
    assert b"\x1b[31m-shop\x1b[0m" in shown
    assert b"\x1b]0" not in shown
    assert b"\x1b[2J" not in shown
    plain = on_a_terminal("diff", "dev", "--color", "never")
    assert b"\x1b" not in plain


def test_a_pipe_gets_the_bytes_as_they_are(ground: Ground, dev: Truth, tree: Repo) -> None:
    tree.write("README", "a\x1b[2Jb\n")
    assert "+a\x1b[2Jb\n" in ground.hitch("diff", "dev").out
    assert "\x1b[32m+a\\x1b[2Jb\x1b[0m\n" in ground.hitch("diff", "dev", "--color", "always").out


def test_a_session_in_a_plain_folder_of_a_repository_has_a_diff_too(ground: Ground, repo: Repo) -> None:
    session = ground.run("sh", "-c", "echo new > new; git add new; git commit -q -m new", place=repo.path)
    session.ended()
    (found,) = ground.hitch("diff", session.id, "--json").json()["files"]
    assert (found["path"], found["status"], found["untracked"]) == ("new", "A", False)


@pytest.mark.ids("F52")
def test_what_cannot_be_compared_is_said(ground: Ground, dev: Truth, tree: Repo) -> None:
    plain = ground.run("true", name="plain")
    plain.ended()
    assert ground.hitch("diff", "plain", check=4).err == (
        f"hitch: {ground.place} was in no git repository when plain began there: nothing to compare with\n"
    )
    tree.path.rename(ground.place / "moved")
    assert ground.hitch("diff", "dev", check=4).err == (
        f"hitch: dev has no folder any more: {tree.path} is gone; hitch workspace restore fix brings it back\n"
    )
    assert ground.hitch("diff", "nobody", check=3).err == "hitch: no session 'nobody'; hitch ps --all lists them\n"


def test_without_a_base_the_last_commit_is_compared_with_and_a_note_says_so(ground: Ground, repo: Repo) -> None:
    empty = Repo(repo.path.parent / "empty")
    repo.git("init", "-q", empty.path)
    session = ground.run("true", place=empty.path)
    session.ended()
    empty.write("new")
    answer = ground.hitch("diff", session.id)
    assert "+++ b/new" in answer.out
    assert answer.err == ("the commit that the session started from is unknown; comparing with the last commit\n")


def test_records_of_an_older_version_are_compared_too(ground: Ground, dev: Truth, tree: Repo, repo: Repo) -> None:
    tree.write("new")
    here = ground.run("true", name="here", place=repo.path)
    here.ended()
    repo.write("made")
    added = {"own", "repo_id", "objects_id", "inside", "contained", "git"}
    for path in (*ground.home.glob("workspaces/*/workspace.json"), *ground.home.glob("sessions/*/session.json")):
        stored = json.loads(path.read_text())
        path.write_text(json.dumps({key: item for key, item in stored.items() if key not in added}))
    for path in (*ground.home.glob("workspaces/*/.seen-index*"), *ground.home.glob("sessions/*/.seen-index*")):
        path.unlink()
    assert "b/new" in ground.hitch("diff", "dev").out
    assert "b/made" in ground.hitch("diff", "here").out


def test_an_index_in_which_the_agent_hides_a_change_hides_nothing(ground: Ground, dev: Truth, tree: Repo) -> None:
    tree.git("update-index", "--assume-unchanged", "README")
    tree.git("update-index", "--skip-worktree", "README")
    tree.write("README", "changed\n")
    assert tree.git("status", "--porcelain") == ""
    assert "+changed" in ground.hitch("diff", "dev").out
