from __future__ import annotations

from pathlib import Path

import pytest

from hitchpost.errors import Refused
from hitchpost.workspaces import snapshot, worktree
from hitchpost.workspaces.store import Workspace
from tests.repos import Repo, change_unseen


@pytest.fixture
def workspace(home: Path, repo: Repo) -> Workspace:
    repo.commit(".gitignore", "ignored\n")
    return worktree.make(str(home), str(repo.path), "fix").workspace


@pytest.fixture
def tree(workspace: Workspace) -> Repo:
    return Repo(Path(workspace.path))


def home_of(workspace: Workspace) -> str:
    return str(Path(workspace.path).parents[2])


def taken(workspace: Workspace) -> str:
    ref = snapshot.take(home_of(workspace), workspace, "a test")
    assert ref is not None
    return ref


@pytest.mark.ids("F53")
def test_a_change_in_the_instant_of_a_commit_is_in_the_snapshot(workspace: Workspace, tree: Repo, repo: Repo) -> None:
    change_unseen(tree, "shop.py", "return 1\n", "return 2\n")
    assert repo.git("show", f"{taken(workspace)}:shop.py") == "return 2"


@pytest.mark.ids("F53")
def test_a_snapshot_holds_changed_staged_untracked_and_deleted_files_but_no_ignored_ones(
    workspace: Workspace, tree: Repo, repo: Repo
) -> None:
    tree.write("README", "changed\n")
    tree.write("staged")
    tree.git("add", "staged")
    tree.write("deep/new", "new\n")
    tree.write("ignored")
    (tree.path / ".gitignore").unlink()
    ref = taken(workspace)
    assert ref.startswith(f"refs/hitchpost/snapshots/{workspace.id}/")
    assert repo.git("ls-tree", "-r", "--name-only", ref).splitlines() == ["README", "deep/new", "ignored", "staged"]
    tree.git("checkout", "--", ".gitignore")
    assert repo.git("ls-tree", "-r", "--name-only", taken(workspace)).splitlines() == [
        ".gitignore",
        "README",
        "deep/new",
        "staged",
    ]
    assert repo.git("show", f"{ref}:README") == "changed"
    assert repo.git("rev-parse", f"{ref}^") == tree.head


def test_index_head_branch_and_stash_stay_as_they_are(workspace: Workspace, tree: Repo) -> None:
    tree.write("staged")
    tree.git("add", "staged")
    tree.write("README", "changed\n")
    words = (
        ("status", "--porcelain"),
        ("rev-parse", "HEAD"),
        ("branch", "-v"),
        ("stash", "list"),
        ("diff", "--cached"),
    )
    before = [tree.git(*one) for one in words]
    taken(workspace)
    assert [tree.git(*one) for one in words] == before


def test_a_clean_worktree_needs_no_snapshot(workspace: Workspace) -> None:
    assert snapshot.take(home_of(workspace), workspace, "a test") is None
    assert snapshot.listing(workspace) == []


def test_the_same_work_is_stored_once(workspace: Workspace, tree: Repo) -> None:
    tree.write("new")
    first = taken(workspace)
    assert taken(workspace) == first
    tree.write("newer")
    second = taken(workspace)
    assert [one.ref for one in snapshot.listing(workspace)] == [second, first]


@pytest.mark.ids("F52")
def test_a_lock_that_was_left_behind_is_not_in_the_way_of_a_snapshot(workspace: Workspace, tree: Repo) -> None:
    lock = Path(tree.git("rev-parse", "--absolute-git-dir")) / "index.lock"
    lock.touch()
    tree.write("new")
    taken(workspace)
    assert lock.exists()


@pytest.mark.ids("F52")
def test_commits_on_a_detached_head_are_kept(workspace: Workspace, tree: Repo, repo: Repo) -> None:
    tree.git("checkout", "-q", "--detach")
    loose = tree.commit("loose")
    assert repo.git("rev-parse", f"{taken(workspace)}^") == loose


@pytest.mark.ids("F52")
def test_a_merge_that_is_not_finished_can_be_stored(workspace: Workspace, tree: Repo, repo: Repo) -> None:
    repo.commit("README", "one\n")
    tree.commit("README", "two\n")
    tree.git("merge", "-q", "main", check=False)
    assert "<<<<<<<" in repo.git("show", f"{taken(workspace)}:README")
    assert "UU README" in tree.git("status", "--porcelain")


@pytest.mark.ids("F52")
def test_in_a_sparse_checkout_the_other_files_are_still_in_the_snapshot(home: Path, repo: Repo) -> None:
    repo.commit("in/file")
    repo.commit("out/file")
    repo.git("sparse-checkout", "set", "in")
    workspace = worktree.make(str(home), str(repo.path), "sparse").workspace
    tree = Repo(Path(workspace.path))
    tree.write("in/new")
    tree.write("elsewhere/new")
    names = repo.git("ls-tree", "-r", "--name-only", taken(workspace)).splitlines()
    assert names == ["README", "elsewhere/new", "in/file", "in/new", "out/file"]


@pytest.mark.ids("F53")
def test_a_repository_inside_is_refused_because_its_files_would_not_be_stored(workspace: Workspace, tree: Repo) -> None:
    tree.git("clone", "-q", ".", "inner")
    with pytest.raises(Refused, match="inner is a git repository of its own; move it elsewhere first"):
        snapshot.take(home_of(workspace), workspace, "a test")


def test_no_name_or_address_is_needed(workspace: Workspace, tree: Repo, repo: Repo) -> None:
    (repo.path.parent / "gitconfig").write_text("[user]\nuseConfigOnly = true\n")
    tree.write("new")
    assert repo.git("log", "-1", "--format=%an %s", taken(workspace)) == "hitchpost hitchpost: a test"
