"""Work in repositories that an agent makes inside a worktree is named and stays: a snapshot cannot hold it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitchpost.errors import Refused
from hitchpost.workspaces import store, worktree
from hitchpost.workspaces.changes import changes
from hitchpost.workspaces.removal import remove
from hitchpost.workspaces.store import Workspace
from tests.repos import Repo


@pytest.fixture
def workspace(home: Path, repo: Repo) -> Workspace:
    repo.commit("sub/x")
    repo.commit("other/deep/x")
    return worktree.make(str(home), str(repo.path), "fix").workspace


def in_place_of_a_file(top: Path) -> str:
    (top / "README").unlink()
    return "README"


def in_place_of_a_folder(top: Path) -> str:
    (top / "sub/x").unlink()
    return "sub"


def beside_files_that_are_as_they_were(top: Path) -> str:
    return "sub"


def deep_below_such_files(top: Path) -> str:
    return "other"


def in_a_new_folder(top: Path) -> str:
    (top / "new").mkdir()
    (top / "new/file").touch()
    return "new/inner"


@pytest.mark.ids("F53")
@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize(
    "where",
    [
        in_place_of_a_file,
        in_place_of_a_folder,
        beside_files_that_are_as_they_were,
        deep_below_such_files,
        in_a_new_folder,
    ],
)
def test_a_repository_inside_is_never_deleted(home: Path, workspace: Workspace, where: object, committed: bool) -> None:
    top = Path(workspace.path)
    assert callable(where)
    name = where(top)
    inner = Repo(top / name)
    inner.path.mkdir(exist_ok=True)
    inner.git("init", "-q")
    inner.write("f", "precious\n")
    if committed:
        inner.git("add", "f")
        inner.git("commit", "-q", "-m", "precious")
    assert not changes(store.tree(str(home), workspace)).is_clean
    with pytest.raises(Refused):
        remove(str(home), workspace)
    with pytest.raises(Refused) as raised:
        remove(str(home), workspace, force=True)
    assert str(raised.value) == f"{inner.path} is a git repository of its own; move it elsewhere first"
    assert (inner.path / "f").read_text() == "precious\n"
    inner.path.rename(home / "elsewhere")
    remove(str(home), workspace, force=True)
    assert (home / "elsewhere/f").exists()


@pytest.mark.ids("F53")
def test_a_broken_repository_inside_is_not_deleted_either(home: Path, workspace: Workspace) -> None:
    kept = Path(workspace.path, "new/.git/precious")
    kept.parent.mkdir(parents=True)
    kept.touch()
    Path(workspace.path, "new/file").touch()
    with pytest.raises(Refused, match="new is a git repository of its own"):
        remove(str(home), workspace, force=True)
    assert kept.exists()


@pytest.mark.ids("F53")
def test_what_git_cannot_open_is_not_deleted(home: Path, workspace: Workspace) -> None:
    from hitchpost.workspaces import folders
    from tests.workspaces.test_folders import nested

    deep = Path(workspace.path, "deep")
    nested(deep)
    with pytest.raises(Refused, match="cannot be in a snapshot"):
        remove(str(home), workspace, force=True)
    assert deep.exists()
    folders.erase(str(deep))
