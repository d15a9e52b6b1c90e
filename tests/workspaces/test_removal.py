from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hitchpost.errors import GitLocked, Refused
from hitchpost.workspaces import lease, store, worktree
from hitchpost.workspaces.removal import Gone, remove
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


def gone(home: Path, workspace: Workspace, *, force: bool = False) -> Gone:
    return remove(str(home), workspace, force=force)


def test_a_clean_workspace_goes_with_gits_notes_and_its_branch_stays(
    home: Path, repo: Repo, workspace: Workspace, tree: Repo
) -> None:
    tip = tree.commit("more")
    gone(home, workspace)
    assert not tree.path.parent.exists()
    assert repo.worktrees == [str(repo.path)]
    assert repo.git("rev-parse", "fix") == tip


@pytest.mark.ids("A31-13")
@pytest.mark.parametrize("force", [False, True])
def test_a_workspace_in_use_is_not_removed(home: Path, workspace: Workspace, tree: Repo, force: bool) -> None:
    held = [lease.take(str(home), workspace, session="x", name="x", share=share) for share in (False, True)]
    with pytest.raises(Refused) as raised:
        gone(home, workspace, force=force)
    assert str(raised.value) == "cannot remove workspace 'fix' - currently in use by 2 session(s)"
    for fd in held:
        os.close(fd)
    assert tree.path.exists()


@pytest.mark.ids("F53")
def test_uncommitted_work_is_refused_with_what_it_is(home: Path, workspace: Workspace, tree: Repo) -> None:
    tree.write("README", "changed\n")
    tree.write("a/new")
    tree.write("a/newer")
    with pytest.raises(Refused) as raised:
        gone(home, workspace)
    assert str(raised.value) == (
        "cannot remove workspace 'fix': it has 1 changed and 2 new files; "
        "commit the work, or use --force, which keeps it in a snapshot"
    )
    assert tree.files() == {"README": "changed\n", "a/new": "text\n", "a/newer": "text\n"}


@pytest.mark.ids("F53")
def test_force_keeps_the_work_in_a_snapshot_from_which_it_comes_back(
    home: Path, repo: Repo, workspace: Workspace, tree: Repo
) -> None:
    tree.write("README", "changed\n")
    tree.write("a/new")
    before, status = tree.files(), tree.git("status", "--porcelain")
    answer = gone(home, workspace, force=True)
    assert answer.snapshot is not None
    assert not tree.path.exists()
    assert repo.worktrees == [str(repo.path)]
    assert store.listed(str(home)) == []
    back = restore(str(home), store.find(str(home), "fix", removed=True))
    assert back.snapshot == answer.snapshot
    assert (tree.files(), tree.git("status", "--porcelain")) == (before, status)
    assert [one.name for one in store.listed(str(home))] == ["fix"]


@pytest.mark.ids("F52", "F53")
def test_commits_that_are_on_no_branch_count_as_work(home: Path, repo: Repo, workspace: Workspace, tree: Repo) -> None:
    tree.git("checkout", "-q", "--detach")
    loose = tree.commit("loose")
    with pytest.raises(Refused, match="it has commits that are on no branch"):
        gone(home, workspace)
    ref = gone(home, workspace, force=True).snapshot
    assert repo.git("rev-parse", f"{ref}^") == loose


@pytest.mark.ids("F53")
def test_commits_on_no_branch_survive_a_folder_that_was_deleted(
    home: Path, repo: Repo, workspace: Workspace, tree: Repo
) -> None:
    tree.git("checkout", "-q", "--detach")
    loose = tree.commit("loose")
    tree.path.rename(repo.path.parent / "moved")
    ref = gone(home, workspace).snapshot
    assert repo.git("rev-parse", str(ref)) == loose


@pytest.mark.ids("F52", "F53")
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("work", ["changed", "untracked", "committed"])
def test_work_in_a_submodule_is_refused_because_no_snapshot_holds_it(
    home: Path, repo: Repo, force: bool, work: str
) -> None:
    inner = Repo(repo.path.parent / "inner")
    repo.git("clone", "-q", repo.path, inner.path)
    repo.git("submodule", "add", "-q", inner.path, "lib")
    repo.git("commit", "-q", "-m", "lib")
    workspace = worktree.make(str(home), str(repo.path), "fix").workspace
    tree, lib = Repo(Path(workspace.path)), Repo(Path(workspace.path) / "lib")
    tree.git("submodule", "update", "-q", "--init")
    if work == "committed":
        lib.commit("README", "mine\n")
        tree.git("commit", "-q", "-a", "-m", "newer lib")
    else:
        lib.write("README" if work == "changed" else "new", "mine\n")
    with pytest.raises(Refused, match="the submodule lib is checked out, and a snapshot cannot hold what is in it"):
        gone(home, workspace, force=force)
    assert "mine\n" in lib.files().values()


@pytest.mark.ids("F52")
def test_a_submodule_that_is_not_checked_out_any_more_is_not_in_the_way(home: Path, repo: Repo) -> None:
    inner = Repo(repo.path.parent / "inner")
    repo.git("clone", "-q", repo.path, inner.path)
    repo.git("submodule", "add", "-q", inner.path, "lib")
    repo.git("commit", "-q", "-m", "lib")
    workspace = worktree.make(str(home), str(repo.path), "fix").workspace
    tree = Repo(Path(workspace.path))
    tree.git("submodule", "update", "-q", "--init")
    tree.git("submodule", "deinit", "-q", "--all")
    gone(home, workspace)
    assert not Path(workspace.path).exists()


@pytest.mark.ids("F52")
def test_a_lock_of_git_is_said_and_neither_it_nor_the_worktree_goes(
    home: Path, workspace: Workspace, tree: Repo
) -> None:
    lock = Path(tree.git("rev-parse", "--absolute-git-dir")) / "index.lock"
    lock.touch()
    with pytest.raises(GitLocked, match=r"index\.lock is there: another git command is at work, or was killed"):
        gone(home, workspace, force=True)
    assert lock.exists()
    assert tree.path.exists()


@pytest.mark.ids("F51")
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_folder_that_is_not_ours_is_never_deleted(
    home: Path, workspace: Workspace, tree: Repo, leak_watch: LeakWatch, kind: str
) -> None:
    moved = leak_watch.scratch / "moved"
    tree.path.rename(moved)
    if kind == "link":
        tree.path.symlink_to(moved)
    else:
        tree.path.mkdir()
        (tree.path / "precious").touch()
    with pytest.raises(Refused, match="is another folder than workspace 'fix'; move it away first"):
        gone(home, workspace, force=True)
    assert (moved / "README").exists()
    assert kind == "link" or (tree.path / "precious").exists()


def test_of_a_plain_folder_only_the_record_goes(home: Path, leak_watch: LeakWatch) -> None:
    folder = leak_watch.scratch / "plain"
    folder.mkdir()
    (folder / "file").touch()
    workspace = store.register(str(home), str(folder))
    gone(home, workspace, force=True)
    assert (folder / "file").exists()
    assert store.everything(str(home)) == []


def test_a_workspace_whose_folder_is_gone_is_forgotten(
    home: Path, repo: Repo, workspace: Workspace, tree: Repo
) -> None:
    tree.path.rename(repo.path.parent / "moved")
    gone(home, workspace)
    assert store.everything(str(home)) == []
    assert repo.worktrees == [str(repo.path)]


def test_a_repository_that_is_gone_leaves_the_work_alone(home: Path, repo: Repo, workspace: Workspace) -> None:
    repo.path.rename(repo.path.parent / "moved")
    with pytest.raises(Refused):
        gone(home, workspace, force=True)
    assert (Path(workspace.path) / "README").exists()


def test_a_worktree_whose_git_folder_is_gone_goes_with_its_work_in_a_snapshot(
    home: Path, repo: Repo, workspace: Workspace, tree: Repo
) -> None:
    tree.write("new")
    admin = os.path.join(str(workspace.repo), store.own_folder(workspace))
    assert admin is not None
    shutil.rmtree(admin)
    with pytest.raises(Refused, match="it has 1 new file"):
        gone(home, workspace)
    shutil.rmtree(os.path.join(str(workspace.repo), store.own_folder(workspace)))
    answer = gone(home, workspace, force=True)
    assert answer.notes == (f"git's notes about {tree.path} were missing and have been recreated; it is on branch fix",)
    assert repo.worktrees == [str(repo.path)]
    assert restore(str(home), workspace).snapshot == answer.snapshot
    assert sorted(tree.files()) == ["README", "new"]


def test_a_clean_worktree_whose_git_folder_is_gone_goes(home: Path, repo: Repo, workspace: Workspace) -> None:
    shutil.rmtree(os.path.join(str(workspace.repo), store.own_folder(workspace)))
    gone(home, workspace)
    assert repo.worktrees == [str(repo.path)]
    assert store.listed(str(home)) == []
