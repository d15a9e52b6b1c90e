from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hitchpost.workspaces import lease, snapshot, store, worktree
from hitchpost.workspaces.pruning import prune
from hitchpost.workspaces.removal import remove
from hitchpost.workspaces.store import Workspace
from tests.repos import Repo
from tests.support import LeakWatch


def make(home: Path, repo: Repo, branch: str) -> tuple[Workspace, Repo]:
    workspace = worktree.make(str(home), str(repo.path), branch).workspace
    return workspace, Repo(Path(workspace.path))


def decisions(home: Path, *, dry_run: bool = False) -> dict[str, tuple[bool, str]]:
    return {one.workspace.name: (one.remove, one.why) for one in prune(str(home), dry_run=dry_run)}


@pytest.mark.ids("F53")
def test_only_what_holds_nothing_goes_and_each_decision_has_its_reason(
    home: Path, repo: Repo, leak_watch: LeakWatch
) -> None:
    make(home, repo, "empty")
    used, _ = make(home, repo, "used")
    held = lease.take(str(home), used, session="x", name="dev")
    make(home, repo, "dirty")[1].write("new")
    make(home, repo, "ahead")[1].commit("more")
    make(home, repo, "merged")[1].commit("merged")
    repo.git("merge", "-q", "merged")
    kept, tree = make(home, repo, "removed")
    tree.write("new")
    remove(str(home), kept, force=True)
    shutil.rmtree(make(home, repo, "gone")[1].path)
    detached = make(home, repo, "detached")[1]
    detached.git("checkout", "-q", "--detach")
    detached.commit("loose")
    plain = leak_watch.scratch / "plain"
    plain.mkdir()
    store.register(str(home), str(plain))
    expected = {
        "empty": (True, "clean, and its branch has no commits of its own"),
        "used": (False, "in use by dev (x)"),
        "dirty": (False, "it has 1 new file"),
        "ahead": (False, "branch ahead has commits that no other branch has"),
        "merged": (True, "clean, and its branch has no commits of its own"),
        "removed": (False, f"its folder is gone, and {snapshot.listing(kept)[0].ref} holds its work"),
        "gone": (True, "its folder is gone, and it has no snapshot"),
        "detached": (False, "it has commits that are on no branch"),
    }
    assert decisions(home, dry_run=True) == expected
    assert len(store.everything(str(home))) == 9
    assert decisions(home) == expected
    assert [one.name for one in store.everything(str(home))] == [
        "used",
        "dirty",
        "ahead",
        "removed",
        "detached",
        "plain",
    ]
    os.close(held)


def test_one_that_cannot_be_judged_does_not_stop_the_others(home: Path, repo: Repo) -> None:
    first = make(home, repo, "first")[1]
    make(home, repo, "second")
    (first.path / ".git").unlink()
    found = decisions(home)
    assert (found["first"][0], found["second"][0]) == (False, True)
    assert (first.path / "README").exists()


def test_without_workspaces_there_is_nothing_to_prune(home: Path) -> None:
    assert prune(str(home)) == []
