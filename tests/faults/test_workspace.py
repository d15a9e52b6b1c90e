"""F50–F54: what happens to workspaces under the hands of sessions."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from hitchpost.workspaces import store
from tests.ground import Ground, Truth, alive
from tests.repos import Repo
from tests.support import eventually

SLEEP = ("--", "sleep", "1000")


def run(ground: Ground, repo: Repo, *words: str) -> Truth:
    return Truth(ground.home, ground.hitch("run", "--json", *words, cwd=repo.path).json()["id"])


def tree(ground: Ground, name: str = "fix") -> Repo:
    return Repo(Path(store.find(str(ground.home), name).path))


def orphaned(ground: Ground, repo: Repo, how: str = "deleted") -> Truth:
    """A session whose worktree is gone, or is another folder."""
    dev = run(ground, repo, "--branch", "fix", "--name", "dev", *SLEEP)
    path = tree(ground).path
    shutil.rmtree(path)
    if how == "replaced":
        path.mkdir()
        (path / "precious").touch()
    began = time.monotonic()
    eventually(lambda: dev.state == "orphaned", 5, what="orphaned")
    assert time.monotonic() - began < 2.5
    return dev


@pytest.mark.ids("F50", "A31-9")
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_F50_a_worktree_that_goes_under_a_live_session_orphans_it_and_kills_nobody(
    ground: Ground, repo: Repo, how: str
) -> None:
    dev = orphaned(ground, repo, how)
    assert alive(dev.agent_pid())
    assert ground.ps(dev)["label"] == "orphaned: workspace no longer exists"
    pid = dev.agent_pid()
    ground.stop(dev, "--now")
    assert not alive(pid)


@pytest.mark.ids("F52")
def test_F52_a_worktree_whose_repository_was_moved_names_it_and_works_when_it_is_back(
    ground: Ground, repo: Repo
) -> None:
    dev = run(ground, repo, "--branch", "fix", "--name", "dev", *SLEEP)
    path, away = tree(ground).path, repo.path.with_name("away")
    repo.path.rename(away)
    assert ground.ps(dev)["label"] == "running"
    said = ground.hitch("diff", "dev", check=4).err
    assert said == f"hitch: the repository of {path} is gone: {repo.path}/.git; move it back there\n"
    away.rename(repo.path)
    ground.hitch("diff", "dev")
    ground.end(dev)


@pytest.mark.ids("F50")
@pytest.mark.parametrize("moved", ["above/folder", "above"])
def test_F50_a_folder_that_is_moved_or_is_in_one_that_is_moved_orphans_its_session(ground: Ground, moved: str) -> None:
    place = ground.place / "above" / "folder"
    place.mkdir(parents=True)
    dev = ground.run("sleep", "1000", place=place)
    eventually(lambda: time.time() - (dev.run() / "keeper.lock").stat().st_mtime > 1.5, what="its first look")
    (ground.place / moved).rename(ground.place / "elsewhere")
    eventually(lambda: dev.state == "orphaned", what="orphaned")
    ground.stop(dev, "--now")


@pytest.mark.ids("F51", "A31-9")
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_F51_restart_is_refused_until_the_workspace_is_restored(ground: Ground, repo: Repo, how: str) -> None:
    dev = orphaned(ground, repo, how)
    path = tree(ground).path
    refused = ground.hitch("restart", "dev", check=4)
    assert refused.err == (
        f"hitch: dev cannot start: {path} is gone or is another folder than the session's; "
        "hitch workspace restore fix brings it back, or hitch restart dev --workspace FOLDER moves the session\n"
    )
    assert dev.state_file()["run"] == 1
    if how == "replaced":
        assert "move it away first" in ground.hitch("workspace", "restore", "fix", check=4).err
        assert (path / "precious").exists()
        shutil.rmtree(path)
    ground.hitch("workspace", "restore", "fix")
    assert ground.hitch("restart", "dev").out == "dev: running (run 2)\n"
    assert os.readlink(f"/proc/{dev.agent_pid(2)}/cwd") == str(path)
    assert dev.run_file(2)["folder_ino"] == path.stat().st_ino
    ground.stop(dev, "--now")


@pytest.mark.ids("F51")
def test_F51_a_folder_with_the_same_number_is_still_another_folder(ground: Ground, repo: Repo) -> None:
    dev = run(ground, repo, "--branch", "fix", "--name", "dev", "--", "true")
    dev.ended()
    path = tree(ground).path
    shutil.rmtree(path)
    path.mkdir()
    workspace = store.find(str(ground.home), "fix")
    with store.lock(str(ground.home), workspace.id):
        store.changed(str(ground.home), workspace, dev=path.stat().st_dev, ino=path.stat().st_ino)
    assert "is gone or is another folder" in ground.hitch("restart", "dev", check=4).err
    assert "is gone or is another folder" in ground.hitch("run", "--branch", "fix", *SLEEP, cwd=repo.path, check=4).err


@pytest.mark.ids("F51")
def test_F51_an_orphaned_session_can_move_to_another_workspace(ground: Ground, repo: Repo) -> None:
    dev = orphaned(ground, repo)
    ground.hitch("workspace", "create", "other", cwd=repo.path)
    assert ground.hitch("restart", "dev", "--workspace", "other").out == "dev: running (run 2)\n"
    assert os.readlink(f"/proc/{dev.agent_pid(2)}/cwd") == str(tree(ground, "other").path)
    ground.stop(dev, "--now")


@pytest.mark.ids("F52")
def test_F52_what_git_cannot_do_is_said_in_one_line_and_leaves_nothing(ground: Ground, repo: Repo) -> None:
    empty, bare = repo.path.parent / "empty", repo.path.parent / "bare.git"
    repo.git("init", "-q", empty)
    repo.git("clone", "-q", "--bare", repo.path, bare)
    lock = repo.write(".git/refs/heads/locked.lock", "")
    cases = (
        (repo.path, "main", f"hitch: branch main is checked out in {repo.path}; "),
        (repo.path, "locked", f"hitch: git worktree failed: {lock} is there: another git command is at work"),
        (empty, "fix", f"hitch: {empty} has no commits yet; make one first"),
        (ground.place, "fix", f"hitch: {ground.place} is not in a git repository; "),
    )
    for folder, branch, text in cases:
        answer = ground.hitch("run", "--branch", branch, *SLEEP, cwd=folder, check=4)
        assert answer.err.startswith(text), answer
        assert len(answer.err.splitlines()) == 1
    assert lock.exists()
    assert ground.hitch("ps", "--all", "--json").json() == []
    assert ground.hitch("workspace", "ls", "--all", "--json").json() == []
    dev = Truth(ground.home, ground.hitch("run", "--json", "--branch", "fix", *SLEEP, cwd=bare).json()["id"])
    ground.stop(dev, "--now")


@pytest.mark.ids("F53")
def test_F53_work_of_every_kind_survives_removal_by_force(ground: Ground, repo: Repo) -> None:
    script = (
        "echo changed > README; echo new > new; mkdir d; echo deep > d/e; git add new; ln -s new link; chmod +x d/e"
    )
    dev = run(ground, repo, "--branch", "fix", "--name", "dev", "--", "sh", "-c", script)
    assert dev.ended() == "completed"
    work = tree(ground)
    before = work.files()
    assert "3 new" in ground.hitch("workspace", "rm", "fix", check=4).err
    assert work.files() == before
    ground.hitch("workspace", "rm", "--force", "fix")
    assert not work.path.exists()
    ground.hitch("workspace", "restore", "fix")
    assert work.files() == before
    assert os.readlink(work.path / "link") == "new"
    assert os.access(work.path / "d" / "e", os.X_OK)
    ground.hitch("restart", "dev")
    assert dev.ended(run=2) == "completed"


@pytest.mark.ids("F54", "A31-13")
def test_F54_of_two_sessions_one_has_the_workspace_until_its_keeper_is_gone(ground: Ground, repo: Repo) -> None:
    first = run(ground, repo, "--branch", "fix", "--name", "first", *SLEEP)
    second = ground.hitch("run", "--branch", "fix", "--name", "second", *SLEEP, cwd=repo.path, check=4)
    assert second.err == f"hitch: workspace 'fix' is in use by first ({first.id}); --share joins as a reader\n"
    first.kill_keeper(signal.SIGKILL)
    ground.stop(first, "--now")
    other = run(ground, repo, "--branch", "fix", "--name", "second", *SLEEP)
    refused = ground.hitch("restart", "first", check=4)
    assert refused.err == f"hitch: workspace 'fix' is in use by second ({other.id}); --share joins as a reader\n"
    assert first.state_file()["run"] == 1
    ground.stop(other, "--now")


@pytest.mark.ids("F54", "A31-13")
def test_F54_a_restart_in_a_workspace_that_another_session_holds_changes_no_state(ground: Ground, repo: Repo) -> None:
    first = run(ground, repo, "--branch", "fix", "--name", "first", "--", "true")
    assert first.ended() == "completed"
    holder = run(ground, repo, "--branch", "fix", "--name", "holder", *SLEEP)
    before = first.state_file()
    ground.hitch("restart", "first", check=4)
    assert first.state_file() == before
    ground.stop(holder, "--now")
