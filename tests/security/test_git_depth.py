"""Folders that an agent makes, however deep and however many, stop neither the manager nor the next session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitchpost.errors import Refused
from hitchpost.workspaces import folders, store, worktree
from hitchpost.workspaces.changes import changes
from hitchpost.workspaces.overview import overview
from hitchpost.workspaces.removal import remove
from tests.ground import Ground
from tests.repos import Repo
from tests.support import LeakWatch
from tests.workspaces.copies import copied
from tests.workspaces.test_folders import nested

PATH_DEPTH = 1500
"""More than Python can recurse, and not too long for one path."""


@pytest.fixture(autouse=True)
def clean(home: Path, leak_watch: LeakWatch) -> Iterator[None]:
    """Python cannot delete what these tests make."""
    yield
    for top in ("sessions", "workspaces"):
        folders.erase(str(home / top))


@pytest.mark.ids("S12")
def test_a_session_with_deep_folders_is_removed_and_the_next_one_starts(ground: Ground) -> None:
    dev = ground.begin_sh("exit 0", name="dev")
    dev.ended()
    nested(dev.folder / "box-home")
    ground.hitch("rm", "dev")
    assert [path.name for path in dev.folder.parent.iterdir() if "removed" in path.name] == []
    ground.begin_sh("exit 0", name="next").ended()


@pytest.mark.ids("S12")
def test_deep_folders_among_a_containers_refs_hide_no_commit(home: Path, repo: Repo) -> None:
    copy = copied(home, repo)
    nested(copy.folder / "refs/heads/deep", PATH_DEPTH)
    tip = copy.commit("work")
    assert overview(str(home), store.read(str(home), copy.workspace.id))["state"] == "clean"
    assert repo.git("rev-parse", "fix") == tip


@pytest.mark.ids("S12")
def test_a_pipe_below_deep_folders_is_still_found(home: Path, repo: Repo) -> None:
    made = worktree.make(str(home), str(repo.path), "fix").workspace
    nested(Path(made.path, "deep"), 1200, "d")
    os.mkfifo(Path(made.path, "deep", *["d"] * 1200, ".gitignore"))
    with pytest.raises(Refused, match=r"\.gitignore is a pipe"):
        changes(store.tree(str(home), made))
    assert overview(str(home), made)["state"] == "unknown"


@pytest.mark.ids("F53")
def test_a_worktree_with_deep_folders_goes_and_its_work_is_kept(home: Path, repo: Repo) -> None:
    made = worktree.make(str(home), str(repo.path), "fix").workspace
    nested(Path(made.path, "deep"), PATH_DEPTH, "d")
    gone = remove(str(home), made, force=True)
    assert gone.snapshot is not None
    assert repo.git("ls-tree", "-r", "--name-only", gone.snapshot).endswith("/d/file")
    assert not Path(made.path).exists()


@pytest.mark.ids("S12")
def test_what_cannot_be_erased_keeps_nobody_from_starting(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    left = ground.home / "sessions" / ".removed-abc"
    ground.begin_sh("exit 0", name="dev").ended()
    left.mkdir()

    def fails(folder: str) -> None:
        raise OSError(5, "Input/output error", folder)

    monkeypatch.setattr("hitchpost.ops.sessions.create.erase", fails)
    answer = ground.hitch.here("run", "--json", "--name", "next", "--", "true", cwd=ground.place)
    assert answer.code == 0, str(answer)
