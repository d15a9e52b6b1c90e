"""Snapshots: everything in a worktree that is not ignored, as a commit under a ref of ours.

The user's index, head, branches and stash are not touched. Ignored files are not in a snapshot.
"""

from __future__ import annotations

import os

from hitchpost.errors import GitFailed, Refused
from hitchpost.store import files
from hitchpost.values import value
from hitchpost.workspaces import git, store
from hitchpost.workspaces.changes import everything_new, gitlinks, loose, loose_commit, submodules_of
from hitchpost.workspaces.store import Workspace
from hitchpost.workspaces.tree import IndexLock, Tree
from hitchpost.workspaces.view import GITLINK, View, listed

REFS = "refs/hitchpost/snapshots"
AUTHOR = {
    "GIT_AUTHOR_NAME": "hitchpost",
    "GIT_AUTHOR_EMAIL": "hitchpost@localhost",
    "GIT_COMMITTER_NAME": "hitchpost",
    "GIT_COMMITTER_EMAIL": "hitchpost@localhost",
}
MUST_BE_NEW = ""


@value
class Snapshot:
    """``parent`` is the commit that was checked out; None in a repository that had none."""

    ref: str
    commit: str
    tree: str
    parent: str | None
    at: str


def take(home: str, workspace: Workspace, why: str) -> str | None:
    """Store what is in the worktree; the ref, or None when the branch has all of it already.

    What the newest snapshot holds already is not stored again. Raises ``Refused`` when there is something that no
    snapshot can hold.
    """
    tree = store.tree(home, workspace)
    with View(tree, writing=True) as view:
        head = view.head.commit
        stored = write_tree(view)
        if head is not None and stored == view.tree_of(head) and loose_commit(view) is None:
            return None
        for newest in listing(workspace)[:1]:
            if newest.parent == head and newest.tree == stored:
                return newest.ref
        commit = _commit(view, stored, why)
    return _store(tree.common, workspace.id, commit)


def of_tree(tree: Tree, why: str) -> Snapshot:
    """What is in a worktree, for somebody who uses it at once: no ref leads to its commit. Raises ``Refused``.

    Its commit is what is checked out when that has all of it already.
    """
    with View(tree, writing=True) as view:
        head, stored = view.head.commit, write_tree(view)
        unchanged = head is not None and stored == view.tree_of(head)
        return Snapshot("", str(head) if unchanged else _commit(view, stored, why), stored, head, "")


def _commit(view: View, stored: str, why: str) -> str:
    parent = () if view.head.commit is None else ("-p", view.head.commit)
    return view.run("commit-tree", *parent, "-m", f"hitchpost: {why}", stored, env=AUTHOR).line


def keep_head(home: str, workspace: Workspace) -> str | None:
    """Store the head of a worktree that is gone, when git has notes of it and nothing else leads to its commit."""
    if not store.own_folder(workspace):
        return None
    tree = store.tree(home, workspace)
    commit = loose(tree.common, tree.head().commit)
    return None if commit is None else _store(tree.common, workspace.id, commit)


def listing(workspace: Workspace) -> list[Snapshot]:
    """The newest first."""
    if workspace.repo is None or not os.path.isdir(workspace.repo):
        return []
    wanted = "--format=%(refname)%00%(objectname)%00%(tree)%00%(parent)"
    done = git.run("/", "for-each-ref", wanted, f"{REFS}/{workspace.id}/", git_dir=workspace.repo)
    found = []
    for line in done.out.decode().splitlines():
        ref, commit, tree, parents = line.split("\0")
        found.append(Snapshot(ref, commit, tree, parents.split(" ")[0] or None, ref.rpartition("/")[2]))
    return found[::-1]


def chosen(workspace: Workspace, name: str) -> Snapshot:
    """The snapshot that ``name`` names: its ref, the last part of it, or its commit."""
    for snapshot in listing(workspace):
        if name in (snapshot.ref, snapshot.at, snapshot.commit):
            return snapshot
    known = ", ".join(snapshot.at for snapshot in listing(workspace)) or "none"
    raise Refused(f"workspace {workspace.name!r} has no snapshot {name!r}; it has: {known}")


def bring_back(tree: Tree, snapshot: Snapshot) -> None:
    """Give the worktree the files of the snapshot. Its branch and head stay; nothing is staged."""
    with View(tree, writing=True) as view, IndexLock(tree) as lock:
        there = {"GIT_INDEX_FILE": view.agents_index()}
        view.run("read-tree", "--reset", "-u", snapshot.commit, env=there, timeout_s=git.WRITE_S)
        if view.head.commit is not None:
            view.run("read-tree", "--reset", view.head.commit, env=there)
        view.run("update-index", "-q", "--refresh", env=there, check=False, timeout_s=git.WRITE_S)
        lock.install(there["GIT_INDEX_FILE"])


def write_tree(view: View) -> str:
    """Everything in the worktree that is not ignored, as a tree. Raises ``Refused``."""
    new, inside = everything_new(view)
    submodules = submodules_of(view, inside)
    if strangers := [path for path in inside if path.removesuffix("/") not in submodules]:
        raise _repository(view, strangers[0])
    view.run("add", "-u", timeout_s=git.WRITE_S)
    if new:
        words = ("add", "--pathspec-from-file=-", "--pathspec-file-nul")
        view.run(*words, stdin=listed(new), timeout_s=git.WRITE_S)
    _check(view, new)
    filled = {path[:place] for path in new for place, letter in enumerate(path) if letter == "/"}
    links = [] if view.head.commit is None else gitlinks(view)
    links = [entry for entry in links if entry.partition("\t")[2] not in filled]
    if links:  # our index has none, so that git does not look into them
        told = "".join(f"{entry}\0" for entry in links).encode("utf-8", "surrogateescape")
        view.run("update-index", "-z", "--index-info", stdin=told)
    return view.run("write-tree").line


def _check(view: View, new: list[str]) -> None:
    """Raise ``Refused`` unless the index has what was found: a file may have become something else meanwhile."""
    entries = [entry.partition("\t") for entry in view.run("ls-files", "-z", "--stage").items]
    if inside := [path for mode, _, path in entries if mode.startswith(GITLINK)]:
        raise _repository(view, inside[0])
    if missing := set(new) - {path for _, _, path in entries}:
        raise Refused(f"{os.path.join(view.tree.top, min(missing))} changed while it was being saved; try again")


def _repository(view: View, path: str) -> Refused:
    where = os.path.join(view.tree.top, path.removesuffix("/"))
    return Refused(f"{where} is a git repository of its own; move it elsewhere first")


def _store(common: str, workspace: str, commit: str) -> str:
    for _ in range(3):
        moment = files.stamp().replace("-", "").replace(":", "")
        ref = f"{REFS}/{workspace}/{moment}"
        try:
            git.run("/", "update-ref", ref, commit, MUST_BE_NEW, git_dir=common)
        except GitFailed as error:
            last = error
            continue
        return ref
    raise last
