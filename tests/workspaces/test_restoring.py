from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hitchpost.errors import Refused
from hitchpost.workspaces import snapshot, store, worktree
from hitchpost.workspaces.removal import remove
from hitchpost.workspaces.restoring import restore
from hitchpost.workspaces.store import Workspace
from tests.repos import Repo
from tests.support import LeakWatch


@pytest.fixture
def workspace(home: Path, repo: Repo) -> Workspace:
    return worktree.make(str(home), str(repo.path), "fix").workspace


@pytest.fixture
def tree(workspace: Workspace) -> Repo:
    return Repo(Path(workspace.path))


@pytest.mark.ids("F51")
def test_a_deleted_worktree_comes_back_from_its_branch(home: Path, workspace: Workspace, tree: Repo) -> None:
    tip = tree.commit("more")
    shutil.rmtree(tree.path)
    back = restore(str(home), workspace)
    assert (tree.head, tree.git("branch", "--show-current"), back.snapshot) == (tip, "fix", None)
    place = os.stat(tree.path)
    stored = store.read(str(home), workspace.id)
    assert (stored.dev, stored.ino) == (place.st_dev, place.st_ino)


@pytest.mark.ids("F51", "F53")
def test_the_newest_snapshot_comes_back_with_it_deleted_files_stay_deleted(
    home: Path, workspace: Workspace, tree: Repo
) -> None:
    tree.commit("other")
    tree.write("README", "changed\n")
    tree.write("new")
    (tree.path / "other").unlink()
    before, status = tree.files(), tree.git("status", "--porcelain")
    snapshot.take(str(home), workspace, "a test")
    shutil.rmtree(tree.path)
    restore(str(home), workspace)
    assert (tree.files(), tree.git("status", "--porcelain")) == (before, status)


@pytest.mark.ids("F53")
def test_a_snapshot_of_an_older_commit_is_named_and_does_not_undo_later_ones(
    home: Path, workspace: Workspace, tree: Repo
) -> None:
    tree.write("README", "old\n")
    snapshot.take(str(home), workspace, "a test")
    tree.commit("README", "newer\n")
    shutil.rmtree(tree.path)
    back = restore(str(home), workspace)
    assert tree.files() == {"README": "newer\n"}
    (found,) = snapshot.listing(workspace)
    assert back.notes == (f"the newest snapshot is of an older commit; --snapshot {found.at} brings its files back",)
    again = restore(str(home), workspace, found.at)
    assert (again.snapshot, tree.files(), tree.git("status", "--porcelain")) == (
        found.ref,
        {"README": "old\n"},
        " M README",
    )


@pytest.mark.ids("F53")
def test_what_is_there_is_stored_before_a_snapshot_takes_its_place(
    home: Path, workspace: Workspace, tree: Repo
) -> None:
    tree.write("README", "first\n")
    first = snapshot.take(str(home), workspace, "a test")
    tree.write("README", "second\n")
    tree.write("new")
    back = restore(str(home), workspace, first)
    assert tree.files()["README"] == "first\n"
    newest = snapshot.listing(workspace)[0]
    assert back.notes == (f"the previous content is kept in {newest.ref}",)
    restore(str(home), workspace, newest.ref)
    assert tree.files() == {"README": "second\n", "new": "text\n"}


def test_a_worktree_that_is_there_needs_no_restoring(home: Path, workspace: Workspace) -> None:
    with pytest.raises(Refused, match=r"is there; name a snapshot with --snapshot .* there are: none"):
        restore(str(home), workspace)
    with pytest.raises(Refused, match="has no snapshot 'x'; it has: none"):
        restore(str(home), workspace, "x")


@pytest.mark.ids("F51")
def test_another_folder_in_its_place_is_refused_and_stays(home: Path, workspace: Workspace, tree: Repo) -> None:
    shutil.rmtree(tree.path)
    tree.write("precious", "mine\n")
    with pytest.raises(Refused, match="is another folder than workspace 'fix'; move it away first"):
        restore(str(home), workspace)
    assert tree.files() == {"precious": "mine\n"}


@pytest.mark.ids("F51")
def test_a_copy_of_the_worktree_takes_its_place_with_its_work(
    home: Path, workspace: Workspace, tree: Repo, leak_watch: LeakWatch
) -> None:
    tree.write("new")
    shutil.copytree(tree.path, leak_watch.scratch / "backup")
    shutil.rmtree(tree.path)
    (leak_watch.scratch / "backup").rename(tree.path)
    back = restore(str(home), workspace)
    assert back.notes == ("the folder already existed, with 1 new file",)
    assert back.workspace.is_present
    assert tree.files() == {"README": "shop\n", "new": "text\n"}


def test_a_branch_that_was_deleted_starts_again_where_the_work_was(
    home: Path, repo: Repo, workspace: Workspace, tree: Repo
) -> None:
    tip = tree.commit("more")
    tree.write("new")
    remove(str(home), workspace, force=True)
    repo.git("branch", "-q", "-D", "fix")
    restore(str(home), workspace)
    assert (tree.head, sorted(tree.files())) == (tip, ["README", "more", "new"])


@pytest.mark.ids("F52")
def test_a_branch_that_is_checked_out_elsewhere_by_now_is_said(
    home: Path, repo: Repo, workspace: Workspace, tree: Repo
) -> None:
    shutil.rmtree(tree.path)
    repo.git("worktree", "prune")
    repo.git("checkout", "-q", "fix")
    with pytest.raises(Refused, match=f"branch fix is checked out in {repo.path}"):
        restore(str(home), workspace)


@pytest.mark.ids("F52", "F53")
def test_work_comes_back_on_no_branch_when_its_branch_is_checked_out_elsewhere(
    home: Path, repo: Repo, workspace: Workspace, tree: Repo
) -> None:
    tip = tree.commit("more")
    tree.write("new")
    ref = remove(str(home), workspace, force=True).snapshot
    repo.git("checkout", "-q", "fix")
    back = restore(str(home), workspace)
    assert (back.snapshot, tree.head, sorted(tree.files())) == (ref, tip, ["README", "more", "new"])
    assert back.notes == (
        f"branch fix is checked out in {repo.path}, so the worktree is on no branch, at {tip[:12]}, where its work was",
    )


@pytest.mark.ids("F52", "F53")
@pytest.mark.parametrize("words", [("--detach",), ("-b", "other")])
def test_work_on_another_line_comes_back_where_it_was(
    home: Path, workspace: Workspace, tree: Repo, words: tuple[str, ...]
) -> None:
    tree.git("checkout", "-q", *words)
    tip = tree.commit("more")
    tree.write("new")
    ref = remove(str(home), workspace, force=True).snapshot
    back = restore(str(home), workspace)
    assert (back.snapshot, tree.head, sorted(tree.files())) == (ref, tip, ["README", "more", "new"])
    assert "branch fix does not contain the commit that was checked out" in back.notes[0]


def test_a_worktree_whose_git_folder_is_gone_gets_another_and_keeps_its_files(
    home: Path, workspace: Workspace, tree: Repo
) -> None:
    tree.commit("more")
    tree.write("new")
    lose_admin(workspace)
    back = restore(str(home), workspace)
    assert back.notes == (f"git's notes about {tree.path} were missing and have been recreated; it is on branch fix",)
    assert tree.git("status", "--porcelain", "--branch").splitlines() == ["## fix", "?? new"]


def lose_admin(workspace: Workspace) -> None:
    admin = os.path.join(str(workspace.repo), store.own_folder(workspace))
    assert admin is not None
    shutil.rmtree(admin)


def test_a_restored_workspace_gets_another_name_when_its_own_is_taken(
    home: Path, repo: Repo, workspace: Workspace, tree: Repo
) -> None:
    tree.write("new")
    remove(str(home), workspace, force=True)
    clone = repo.path.parent / "clone"
    repo.git("clone", "-q", repo.path, clone)
    worktree.make(str(home), str(clone), "fix")
    assert restore(str(home), workspace).workspace.name == "fix-2"


def test_a_plain_folder_cannot_be_restored(home: Path, leak_watch: LeakWatch) -> None:
    folder = leak_watch.scratch / "plain"
    folder.mkdir()
    with pytest.raises(Refused, match="is a plain folder: there is nothing to restore it from"):
        restore(str(home), store.register(str(home), str(folder)))


def test_a_repository_that_is_gone_is_said(home: Path, repo: Repo, workspace: Workspace, tree: Repo) -> None:
    shutil.rmtree(tree.path)
    repo.path.rename(repo.path.parent / "moved")
    with pytest.raises(Refused, match=r"the repository .* is gone"):
        restore(str(home), workspace)
