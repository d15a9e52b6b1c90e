from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hitchpost.ops.doctor.finding import NOTE, OK, PROBLEM
from hitchpost.ops.doctor.workspaces import workspaces
from hitchpost.workspaces import git, store, worktree
from tests.repos import Repo
from tests.support import LeakWatch


def findings(home: Path) -> list[tuple[str, str, str]]:
    return [(one.level, one.check, one.text) for one in workspaces(str(home))]


def test_without_workspaces_there_is_nothing_to_say(home: Path) -> None:
    assert findings(home) == []


def test_workspaces_in_order_are_counted(home: Path, repo: Repo) -> None:
    worktree.make(str(home), str(repo.path), "fix")
    assert findings(home) == [(OK, "workspaces", "1 known")]


def test_a_worktree_that_is_gone_and_a_file_that_is_broken_are_named(home: Path, repo: Repo) -> None:
    gone = worktree.make(str(home), str(repo.path), "gone").workspace
    shutil.rmtree(gone.path)
    broken = worktree.make(str(home), str(repo.path), "broken").workspace
    path = home / "workspaces" / broken.id / "workspace.json"
    path.write_text("{")
    found = findings(home)
    assert [(level, check) for level, check, _ in found] == [(PROBLEM, "workspaces"), (NOTE, "workspaces")]
    assert str(path) in found[0][2]
    assert found[1][2] == f"gone: {gone.path} is gone or is another folder"


def test_a_worktree_that_git_has_forgotten_is_named(home: Path, repo: Repo) -> None:
    made = worktree.make(str(home), str(repo.path), "fix").workspace
    shutil.rmtree(os.path.join(str(made.repo), store.own_folder(made)))
    assert findings(home)[0] == (NOTE, "workspaces", f"fix: git's notes about {made.path} are gone")


def test_what_was_never_finished_is_named(home: Path, repo: Repo) -> None:
    made = worktree.make(str(home), str(repo.path), "fix").workspace
    with store.lock(str(home), made.id):
        store.changed(str(home), made, made=False)
        assert findings(home) == [(OK, "workspaces", "0 known")]
    assert findings(home)[0] == (NOTE, "workspaces", "fix was only partly made")


def test_git_that_is_missing_is_a_note_until_it_is_needed(
    home: Path, leak_watch: LeakWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    git.require.cache_clear()
    monkeypatch.setenv("PATH", str(leak_watch.scratch))
    ((level, check, text),) = findings(home)
    assert (level, check) == (NOTE, "git")
    assert "git is not on the PATH" in text
