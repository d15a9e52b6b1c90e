from __future__ import annotations

import dataclasses

import pytest

from hitchpost.errors import Refused
from hitchpost.values import replace
from hitchpost.workspaces.diff import File, difference
from hitchpost.workspaces.tree import discover
from tests.repos import Repo, change_unseen
from tests.support import LeakWatch


def test_committed_uncommitted_and_untracked_work_is_in_one_difference(repo: Repo) -> None:
    repo.commit("old", "".join(f"line {n}\n" for n in range(20)))
    base = repo.commit("gone", "to go\n")
    repo.commit("committed", "1\n2\n")
    repo.write("README", "changed\n")
    repo.write("staged")
    repo.git("add", "staged")
    (repo.path / "old").rename(repo.path / "renamed")
    (repo.path / "gone").unlink()
    (repo.path / "picture").write_bytes(bytes(range(256)))
    repo.write("deep/new file")
    status = repo.git("status", "--porcelain")
    found = difference(repo.tree, base)
    assert set(found.files) == {
        File("README", None, "M", 1, 1, False, False),
        File("committed", None, "A", 2, 0, False, False),
        File("deep/new file", None, "A", 1, 0, False, True),
        File("gone", None, "D", 0, 1, False, False),
        File("picture", None, "A", None, None, True, True),
        File("renamed", "old", "R", 0, 0, False, True),
        File("staged", None, "A", 1, 0, False, True),
    }
    assert b"Binary files /dev/null and b/picture differ" in found.patch
    assert b"rename from old\nrename to renamed" in found.patch
    assert (found.base, found.head, found.branch) == (base, repo.head, "main")
    assert repo.git("status", "--porcelain") == status
    assert found.counts == difference(repo.tree, base, stat=True).counts == (7, 5, 2)


def test_nothing_changed_counts_as_nothing_and_a_cut_difference_is_not_counted(repo: Repo) -> None:
    assert difference(repo.tree, repo.head).counts == (0, 0, 0)
    assert difference(repo.tree, repo.head, stat=True).counts == (0, 0, 0)
    assert dataclasses.replace(difference(repo.tree, repo.head), cut=True).counts is None


def test_a_patch_can_be_applied(repo: Repo) -> None:
    base = repo.head
    repo.commit("a", "a\n")
    repo.write("b", "b\n")
    repo.write("README", "no newline")
    patch = repo.path.parent / "patch"
    patch.write_bytes(difference(repo.tree, base).patch)
    repo.git("worktree", "add", "-q", "--detach", "../other", base)
    other = Repo(repo.path.parent / "other")
    other.git("apply", str(patch))
    assert other.files() == repo.files()


def test_from_a_folder_below_the_whole_worktree_is_compared(repo: Repo) -> None:
    repo.write("above")
    below = repo.write("below/file").parent
    assert [one.path for one in difference(Repo(below).tree, repo.head).files] == ["above", "below/file"]


def test_names_with_control_characters_are_quoted_and_others_are_plain(repo: Repo) -> None:
    for name in ("a\x1b[2J\nb", "ünï", "-x", ":(top)*", 'quo"te'):
        repo.write(name)
    found = difference(repo.tree, repo.head)
    assert {one.path for one in found.files} == {"a\x1b[2J\nb", "ünï", "-x", ":(top)*", 'quo"te'}
    assert b"\x1b" not in found.patch
    assert "b/ünï" in found.patch.decode()


@pytest.mark.ids("F52")
def test_a_lock_a_detached_head_and_a_repository_inside_are_no_obstacle(repo: Repo) -> None:
    base = repo.head
    repo.git("checkout", "-q", "--detach")
    lock = repo.write(".git/index.lock", "")
    repo.write("new")
    repo.git("init", "-q", "inner")
    found = difference(repo.tree, base)
    assert [one.path for one in found.files] == ["new", "inner/"]
    assert (found.branch, lock.exists()) == (None, True)


@pytest.mark.ids("F52")
def test_a_merge_that_is_not_finished_is_compared_as_the_files_are(repo: Repo) -> None:
    base = repo.head
    repo.git("checkout", "-q", "-b", "other")
    repo.commit("README", "one\n")
    repo.git("checkout", "-q", "main")
    repo.commit("README", "two\n")
    repo.git("merge", "-q", "other", check=False)
    repo.write("new")
    found = difference(repo.tree, base)
    assert [(one.path, one.status) for one in found.files] == [("README", "M"), ("new", "A")]
    assert b"+<<<<<<< HEAD" in found.patch
    assert "UU README" in repo.git("status", "--porcelain")


@pytest.mark.ids("F52")
def test_a_repository_without_commits_is_compared_with_nothing(repo: Repo) -> None:
    empty = Repo(repo.path.parent / "empty")
    repo.git("init", "-q", empty.path)
    empty.write("new")
    empty.write("added")
    empty.git("add", "added")
    found = difference(empty.tree, None)
    assert sorted((one.path, one.untracked) for one in found.files) == [("added", True), ("new", True)]
    assert (found.base, found.head) == (None, None)


@pytest.mark.ids("F52")
def test_in_a_sparse_checkout_the_other_files_are_not_deleted(repo: Repo) -> None:
    repo.commit("in/file")
    base = repo.commit("out/file")
    repo.git("sparse-checkout", "set", "in")
    repo.write("in/new")
    assert [one.path for one in difference(repo.tree, base).files] == ["in/new"]


@pytest.mark.ids("F52")
def test_a_checkout_that_becomes_sparse_later_has_no_deleted_files(repo: Repo) -> None:
    keep = repo.path.parent / "keep"
    keep.mkdir()
    tree = replace(repo.tree, keep=str(keep))
    repo.commit("in/file")
    base = repo.commit("out/file")
    assert difference(tree, base).files == ()
    repo.git("sparse-checkout", "set", "in")
    assert difference(tree, base).files == ()
    repo.write("out/file", "hidden\n")
    assert [one.path for one in difference(tree, base).files] == ["out/file"]


def test_without_changes_there_is_no_difference(repo: Repo) -> None:
    found = difference(repo.tree, repo.head)
    assert (found.files, found.patch, found.stat) == ((), b"", b"")


@pytest.mark.ids("F52")
def test_what_cannot_be_compared_is_said(repo: Repo, leak_watch: LeakWatch) -> None:
    assert discover(str(leak_watch.scratch)) is None
    for base in ("0" * 40, "--output=x", "HEAD"):
        with pytest.raises(Refused, match="that it started from is not in"):
            difference(repo.tree, base)
    bare = leak_watch.scratch / "bare.git"
    repo.git("clone", "-q", "--bare", repo.path, bare)
    assert discover(str(bare)) is None


def test_programs_of_the_repository_are_not_run(repo: Repo) -> None:
    canary = repo.path.parent / "canary"
    repo.commit(".gitattributes", "* diff=evil\n")
    repo.git("config", "diff.evil.textconv", f"touch {canary};")
    repo.git("config", "diff.evil.command", f"touch {canary};")
    repo.git("config", "diff.external", f"touch {canary};")
    repo.write("README", "changed\n")
    assert [one.path for one in difference(repo.tree, repo.head).files] == ["README"]
    assert not canary.exists()


def test_a_change_in_the_instant_of_a_commit_is_seen(repo: Repo) -> None:
    change_unseen(repo, "shop.py", "return 1\n", "return 2\n")
    repo.write("new.txt", "new\n")
    assert [one.path for one in difference(repo.tree, None).files] == ["shop.py", "new.txt"]
