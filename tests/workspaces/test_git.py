from __future__ import annotations

import os
from pathlib import Path

import pytest

from hitchpost.errors import GitFailed, GitLocked, NotARepository, Refused, UsageError
from hitchpost.workspaces import git
from tests.repos import Repo
from tests.support import Hitch, LeakWatch, eventually


def fake_git(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program named git before all others."""
    folder.mkdir()
    program = folder / "git"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    git.require.cache_clear()


@pytest.fixture(autouse=True)
def forget_version():
    yield
    git.require.cache_clear()


@pytest.mark.ids("F52")
def test_variables_that_point_git_elsewhere_are_not_passed_on(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = repo.path.parent / "elsewhere"
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(elsewhere))
    found = git.repository(str(repo.path))
    assert (found.common, found.top) == (str(repo.path / ".git"), str(repo.path))


def test_a_repository_is_found_from_any_folder_in_it_and_from_its_worktrees(repo: Repo) -> None:
    below = repo.path / "a" / "b"
    below.mkdir(parents=True)
    repo.git("worktree", "add", "-q", "../other")
    commons = {git.repository(str(path)).common for path in (repo.path, below, repo.path.parent / "other")}
    assert commons == {str(repo.path / ".git")}


def test_a_folder_without_git_is_said(leak_watch: LeakWatch) -> None:
    with pytest.raises(NotARepository, match="is not in a git repository"):
        git.repository(str(leak_watch.scratch))


def test_a_folder_that_is_gone_is_said(leak_watch: LeakWatch) -> None:
    with pytest.raises(Refused, match="gone"):
        git.run(str(leak_watch.scratch / "nowhere"), "status")


def test_git_that_is_missing_is_said(leak_watch: LeakWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(leak_watch.scratch))
    with pytest.raises(GitFailed, match="git is not on the PATH; install it"):
        git.repository(str(leak_watch.scratch))


def test_git_that_is_too_old_is_said(leak_watch: LeakWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_git(leak_watch.scratch / "bin", "echo git version 2.17.1", monkeypatch)
    with pytest.raises(GitFailed, match=r"expected git 2\.31 or newer, but got 'git version 2\.17\.1'"):
        git.repository(str(leak_watch.scratch))


def test_git_that_does_not_end_is_ended_with_all_that_it_started(
    leak_watch: LeakWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_git(leak_watch.scratch / "bin", "sleep 1000 & wait", monkeypatch)
    told: list[float] = []
    with pytest.raises(GitFailed, match="did not end within"):
        git.run(str(leak_watch.scratch), "status", timeout_s=0.5, progress=told.append)
    # a process that was killed goes when it next gets a core
    eventually(lambda: not [process for process in leak_watch.processes() if not process.is_zombie], 60)


def test_a_failure_is_told_in_gits_own_last_word(repo: Repo) -> None:
    with pytest.raises(GitFailed, match=r"^git show failed: bad revision 'no-such'"):
        git.run(str(repo.path), "show", "no-such", "--")


@pytest.mark.ids("F52")
def test_a_lock_that_was_left_behind_is_named_and_stays(repo: Repo) -> None:
    lock = repo.write(".git/index.lock", "")
    with pytest.raises(GitLocked) as raised:
        git.run(str(repo.path), "add", "README")
    assert raised.value.lock == str(lock)
    assert lock.exists()


@pytest.mark.parametrize("branch", ["", "-x", "--help", "HEAD", "a b", "a..b", "@{-1}", "a\nb", "x.lock", "a~1", "/a"])
def test_a_name_that_cannot_be_a_branch_is_a_usage_error(branch: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a branch"):
        git.check_branch(branch)


@pytest.mark.parametrize("branch", ["fix", "feature/one", "ünï", "a'b", "a$(b)", "#(x)"])
def test_a_name_that_can_be_a_branch_is_taken(branch: str) -> None:
    git.check_branch(branch)


def test_a_monitor_program_of_the_repository_is_not_run(repo: Repo, hitch: Hitch) -> None:
    canary = repo.path.parent / "canary"
    repo.git("config", "core.fsmonitor", f"touch {canary}")
    git.run(str(repo.path), "status")
    assert not canary.exists()
