from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hitchpost.errors import GitFailed, GitLocked, NotARepository, Refused
from hitchpost.workspaces import git, store, worktree
from tests.repos import Repo
from tests.support import LeakWatch, eventually


def make(home: Path, repo: Repo, branch: str = "fix") -> Repo:
    return Repo(Path(worktree.make(str(home), str(repo.path), branch).workspace.path))


def test_a_new_branch_starts_at_the_head_in_a_folder_named_like_the_repository(home: Path, repo: Repo) -> None:
    made = worktree.make(str(home), str(repo.path), "fix").workspace
    tree = Repo(Path(made.path))
    assert tree.path == home / "workspaces" / made.id / "shop"
    assert (tree.git("branch", "--show-current"), tree.head) == ("fix", repo.head)
    assert (made.name, made.branch, made.base, made.repo) == ("fix", "fix", repo.head, str(repo.path / ".git"))
    assert made.is_present
    assert json.loads((home / "workspaces" / made.id / "workspace.json").read_bytes())["made"] is True
    assert repo.git("branch", "--show-current") == "main"


def test_a_branch_that_is_there_is_taken_as_it_is(home: Path, repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "fix")
    tip = repo.commit("more")
    repo.git("checkout", "-q", "main")
    assert make(home, repo).head == tip


def test_a_branch_of_a_remote_is_tracked(home: Path, repo: Repo) -> None:
    repo.git("branch", "fix")
    clone = repo.path.parent / "clone"
    repo.git("clone", "-q", repo.path, clone)
    tree = make(home, Repo(clone))
    assert tree.git("rev-parse", "--abbrev-ref", "fix@{upstream}") == "origin/fix"


def test_a_branch_of_several_remotes_is_refused(home: Path, repo: Repo) -> None:
    repo.git("branch", "fix")
    clone = Repo(repo.path.parent / "clone")
    repo.git("clone", "-q", repo.path, clone.path)
    clone.git("remote", "add", "second", repo.path)
    clone.git("fetch", "-q", "second")
    with pytest.raises(Refused, match="several remotes have fix: origin/fix, second/fix"):
        make(home, clone)


def test_a_branch_that_shares_its_name_with_a_tag_is_the_branch(home: Path, repo: Repo) -> None:
    repo.git("tag", "fix")
    repo.git("checkout", "-q", "-b", "fix")
    tip = repo.commit("more")
    repo.git("checkout", "-q", "main")
    tree = make(home, repo)
    assert (tree.head, tree.git("symbolic-ref", "HEAD")) == (tip, "refs/heads/fix")


def test_the_workspace_of_a_branch_is_used_again_from_anywhere_in_the_repository(home: Path, repo: Repo) -> None:
    first = make(home, repo)
    below = Repo(repo.path / "below")
    below.path.mkdir()
    assert make(home, below) == first
    assert make(home, first) == first
    assert len(store.everything(str(home))) == 1


def test_a_workspace_whose_branch_was_changed_is_used_with_a_note(home: Path, repo: Repo) -> None:
    tree = make(home, repo)
    tree.git("checkout", "-q", "-b", "other")
    assert worktree.make(str(home), str(repo.path), "fix").notes == ("workspace fix is on branch other now",)


def test_the_same_branch_of_two_repositories_has_two_workspaces(home: Path, repo: Repo) -> None:
    clone = Repo(repo.path.parent / "clone")
    repo.git("clone", "-q", repo.path, clone.path)
    make(home, repo)
    make(home, clone)
    assert [one.name for one in store.listed(str(home))] == ["fix", "fix-2"]


def test_who_waits_for_a_maker_that_fails_makes_it_anew(home: Path, repo: Repo) -> None:
    mark, go = repo.path.parent / "mark", repo.path.parent / "go"
    hook = repo.write(
        ".git/hooks/post-checkout",
        f"#!/bin/sh\n[ -e {mark} ] && exit 0\ntouch {mark}\nwhile ! [ -e {go} ]; do sleep 0.02; done\nexit 1\n",
    )
    hook.chmod(0o700)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(make, home, repo)
        eventually(mark.exists, what="the hook")
        second = pool.submit(make, home, repo)
        go.touch()
        with pytest.raises(GitFailed):
            first.result()
        assert second.result().head == repo.head
    assert [one.name for one in store.everything(str(home))] == ["fix"]


@pytest.mark.ids("F54")
def test_many_that_want_the_same_branch_at_once_get_the_same_workspace(home: Path, repo: Repo) -> None:
    with ThreadPoolExecutor(6) as pool:
        paths = set(pool.map(lambda _: make(home, repo).path, range(6)))
    assert len(paths) == 1
    assert len(repo.worktrees) == 2


# What can be in the way -----------------------------------------------------------------------------------------


@pytest.mark.ids("F52")
def test_a_branch_that_is_checked_out_elsewhere_is_refused_with_the_place(home: Path, repo: Repo) -> None:
    with pytest.raises(Refused) as raised:
        make(home, repo, "main")
    assert f"branch main is checked out in {repo.path}; " in str(raised.value)
    assert store.everything(str(home)) == []


@pytest.mark.ids("F52")
def test_a_detached_head_is_a_place_to_start_from(home: Path, repo: Repo) -> None:
    repo.git("checkout", "-q", "--detach")
    tip = repo.commit("loose")
    assert make(home, repo).head == tip


@pytest.mark.ids("F52")
def test_a_repository_without_commits_is_said(home: Path, repo: Repo) -> None:
    empty = Repo(repo.path.parent / "empty")
    repo.git("init", "-q", empty.path)
    with pytest.raises(Refused, match="has no commits yet; make one first"):
        make(home, empty)


@pytest.mark.ids("F52")
def test_a_folder_that_is_not_in_git_is_said(home: Path, leak_watch: LeakWatch) -> None:
    with pytest.raises(NotARepository):
        make(home, Repo(leak_watch.scratch))


@pytest.mark.ids("F52")
def test_a_bare_repository_has_worktrees_too(home: Path, repo: Repo) -> None:
    bare = Repo(repo.path.parent / "store.git")
    repo.git("clone", "-q", "--bare", repo.path, bare.path)
    tree = make(home, bare)
    assert (tree.path.name, tree.files()) == ("store", {"README": "shop\n"})


@pytest.mark.ids("F52")
def test_a_sparse_checkout_stays_sparse(home: Path, repo: Repo) -> None:
    repo.commit("in/file")
    repo.commit("out/file")
    repo.git("sparse-checkout", "set", "in")
    assert sorted(make(home, repo).files()) == ["README", "in/file"]


@pytest.mark.ids("F52")
def test_a_repository_with_submodules_works(home: Path, repo: Repo) -> None:
    inner = Repo(repo.path.parent / "inner")
    repo.git("clone", "-q", repo.path, inner.path)
    repo.git("submodule", "add", "-q", inner.path, "lib")
    repo.git("commit", "-q", "-m", "lib")
    tree = make(home, repo)
    tree.git("submodule", "update", "-q", "--init")
    assert (tree.path / "lib" / "README").read_text() == "shop\n"


@pytest.mark.ids("F52")
def test_a_lock_of_git_that_was_left_behind_is_named_stays_and_leaves_no_workspace(home: Path, repo: Repo) -> None:
    lock = repo.write(".git/refs/heads/fix.lock", "")
    with pytest.raises(GitLocked) as raised:
        make(home, repo)
    assert (raised.value.lock, lock.exists()) == (str(lock), True)
    assert store.everything(str(home)) == []
    assert repo.worktrees == [str(repo.path)]


@pytest.mark.ids("F52")
def test_the_index_lock_of_the_main_worktree_is_not_in_the_way(home: Path, repo: Repo) -> None:
    lock = repo.write(".git/index.lock", "")
    make(home, repo)
    assert lock.exists()


@pytest.mark.ids("F52")
def test_hooks_run_and_one_that_fails_leaves_nothing_behind(home: Path, repo: Repo) -> None:
    hook = repo.write(".git/hooks/post-checkout", "#!/bin/sh\npwd > ../../../seen\necho error: no lfs >&2\nexit 3\n")
    hook.chmod(0o700)
    with pytest.raises(GitFailed, match="no lfs"):
        make(home, repo)
    assert (home / "seen").exists()
    assert store.everything(str(home)) == []
    assert repo.worktrees == [str(repo.path)]
    assert repo.git("branch", "--list", "fix") == ""


def test_folder_names_that_are_ours_or_hard_to_type_are_changed(home: Path, repo: Repo) -> None:
    for name, expected in (("slots", "slots-tree"), ("-a b\n$(c)", "a-b---c-"), ("...", "tree")):
        clone = Repo(repo.path.parent / "clones" / name)
        repo.git("clone", "-q", repo.path, clone.path)
        assert make(home, clone).path.name == expected


# A create that was killed ---------------------------------------------------------------------------------------

SLOW_HOOK = "#!/bin/sh\necho here > {}\nexec sleep 1000\n"


def killed_create(home: Path, repo: Repo, *, git_too: bool = True) -> tuple[Path, int]:
    """Kill the making of a worktree while its hook runs; the path of the half-made worktree, and git's pid."""
    mark = repo.path.parent / "mark"
    hook = repo.write(".git/hooks/post-checkout", SLOW_HOOK.format(mark))
    hook.chmod(0o700)
    script = "import sys; from hitchpost.workspaces import worktree; worktree.make(*sys.argv[1:])"
    maker = subprocess.Popen([sys.executable, "-c", script, str(home), str(repo.path), "fix"])
    eventually(mark.exists, what="the hook")
    hook.unlink()
    (child,) = [int(pid) for pid in Path(f"/proc/{maker.pid}/task/{maker.pid}/children").read_text().split()]
    maker.send_signal(signal.SIGKILL)
    maker.wait()
    if git_too:
        kill_group(child)
    (workspace,) = store.unfinished(str(home))
    return Path(workspace.path), child


def kill_group(leader: int) -> None:
    os.killpg(leader, signal.SIGKILL)
    eventually(lambda: not any(_group(pid) == leader for pid in os.listdir("/proc") if pid.isdigit()))


def _group(pid: str) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    state, _, group = stat.rpartition(")")[2].split()[:3]
    return 0 if state in "ZX" else int(group)


def test_what_a_killed_create_left_is_swept_with_gits_notes_about_it(home: Path, repo: Repo) -> None:
    path, _ = killed_create(home, repo)
    assert path.exists()
    assert worktree.sweep(str(home)) == ["removed the unfinished workspace fix"]
    assert not path.parent.exists()
    assert repo.worktrees == [str(repo.path)]
    assert make(home, repo).head == repo.head


def test_while_git_still_works_for_a_killed_create_nothing_is_swept(home: Path, repo: Repo) -> None:
    path, child = killed_create(home, repo, git_too=False)
    assert worktree.sweep(str(home)) == []
    assert path.exists()
    kill_group(child)
    assert worktree.sweep(str(home)) == ["removed the unfinished workspace fix"]


def test_a_half_made_worktree_that_somebody_wrote_to_is_kept(home: Path, repo: Repo) -> None:
    path, _ = killed_create(home, repo)
    (path / "work").write_text("mine\n")
    assert worktree.sweep(str(home)) == ["kept the unfinished workspace fix: it holds changes"]
    assert (path / "work").read_text() == "mine\n"
    assert [one.name for one in store.listed(str(home))] == ["fix"]


def test_a_worktree_that_is_being_made_is_not_swept(home: Path, repo: Repo) -> None:
    with store.top_lock(str(home)):
        planned = worktree._planned(str(home), git.repository(str(repo.path)), "fix", repo.head, 1)
        making = store.begun(str(home), planned)
        making.__enter__()
    assert worktree.sweep(str(home)) == []
    making.__exit__(None, None, None)
    assert worktree.sweep(str(home)) == ["removed the unfinished workspace fix"]


def test_other_worktrees_of_the_user_keep_gits_notes(home: Path, repo: Repo) -> None:
    """Such as those on a disk that is not there at the moment."""
    repo.git("worktree", "add", "-q", "../away")
    (repo.path.parent / "away").rename(repo.path.parent / "unplugged")
    killed_create(home, repo)
    worktree.sweep(str(home))
    assert str(repo.path.parent / "away") in repo.worktrees


def test_records_that_were_half_begun_or_half_forgotten_are_swept(home: Path, repo: Repo) -> None:
    make(home, repo)
    for name in (".new-aaaaaaaaaaaa", ".removed-bbbbbbbbbbbb"):
        (home / "workspaces" / name / "slots").mkdir(parents=True)
    worktree.sweep(str(home))
    left = sorted(path.name for path in (home / "workspaces").iterdir())
    assert left == sorted([".lock", *(one.id for one in store.listed(str(home)))])


def test_a_workspace_that_is_gone_is_not_used_again(home: Path, repo: Repo) -> None:
    tree = make(home, repo)
    tree.path.rename(tree.path.parent.parent.parent / "elsewhere")
    with pytest.raises(Refused, match="hitch workspace restore fix brings it back"):
        make(home, repo)
    assert not store.find(str(home), "fix").is_present
