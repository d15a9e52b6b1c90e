"""An agent can make its files slow to look at. That costs a look some seconds, and other sessions nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hitchpost.errors import GitFailed
from hitchpost.workspaces import store, view, worktree
from hitchpost.workspaces.changes import changes
from hitchpost.workspaces.overview import CLEAN, UNKNOWN, overviews
from hitchpost.workspaces.store import Workspace
from tests.repos import Repo
from tests.workspaces.copies import copied

SHORT_S = 1.0


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "LOOK_CPU_S", SHORT_S)


def slow_pattern(folder: str) -> None:
    """Git tries the steps of a pattern at every depth, each again for each."""
    deep = Path(folder, *["a"] * 30)
    deep.mkdir(parents=True)
    (deep / "f").touch()
    Path(folder, ".gitignore").write_text("**/a/" * 14 + "b\n")


def made(home: Path, repo: Repo, branch: str) -> Workspace:
    return worktree.make(str(home), str(repo.path), branch).workspace


@pytest.mark.ids("S12")
def test_a_pattern_that_takes_ages_to_match_ends_the_look(home: Path, repo: Repo) -> None:
    slow, other = made(home, repo, "slow"), made(home, repo, "other")
    slow_pattern(slow.path)
    with pytest.raises(GitFailed, match="more than 1 s of processor time"):
        changes(store.tree(str(home), slow))
    states = [(shape["name"], shape["state"]) for shape in overviews(str(home), [slow, other])]
    assert states == [("slow", UNKNOWN), ("other", CLEAN)]


@pytest.mark.ids("S12")
def test_a_file_without_an_end_ends_the_look(home: Path, repo: Repo) -> None:
    copy = copied(home, repo)
    changes(copy.tree)
    copy.commit("README", "another\n")  # so that our index knows nothing of the file
    os.truncate(Path(copy.workspace.path, "README"), 1 << 40)
    assert changes(copy.tree).changed == ("README",)
