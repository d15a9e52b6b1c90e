"""Snapshots: everything in a worktree that is not ignored, as a commit under a ref of ours.

The user's index, head, branches and stash are not touched. Ignored files are not in a snapshot.
"""

from __future__ import annotations

import os

from hitchpost.errors import GitFailed, Refused
from hitchpost.state import files
from hitchpost.values import value
from hitchpost.workspaces import git
from hitchpost.workspaces.changes import GITLINK, loose_commit, scratch_index
from hitchpost.workspaces.store import Workspace

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


def take(workspace: Workspace, why: str) -> str | None:
    """Store what is in the worktree; the ref, or None when the branch has all of it already.

    What the newest snapshot holds already is not stored again. Raises ``Refused`` when there is something that no
    snapshot can hold.
    """
    folder = workspace.path
    head = git.head(folder)
    tree = _tree(folder, head)
    same = head is not None and tree == git.run(folder, "rev-parse", "--verify", "-q", f"{head}^{{tree}}").line
    if same and loose_commit(folder) is None:
        return None
    for newest in listing(workspace)[:1]:
        if newest.parent == head and newest.tree == tree:
            return newest.ref
    parent = () if head is None else ("-p", head)
    commit = git.run(folder, "commit-tree", *parent, "-m", f"hitchpost: {why}", tree, env=AUTHOR).line
    return _store(folder, workspace.id, commit)


def keep_head(workspace: Workspace, admin: str) -> str | None:
    """Store the head of a worktree that is gone, when nothing else leads to its commit."""
    commit = loose_commit("/", admin)
    return None if commit is None else _store("/", workspace.id, commit, admin)


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


def chosen(workspace: Workspace, wanted: str) -> Snapshot:
    """The snapshot that ``wanted`` names: its ref, the last part of it, or its commit."""
    for one in listing(workspace):
        if wanted in (one.ref, one.at, one.commit):
            return one
    known = ", ".join(one.at for one in listing(workspace)) or "none"
    raise Refused(f"workspace {workspace.name!r} has no snapshot {wanted!r}; it has: {known}")


def bring_back(folder: str, snapshot: Snapshot) -> None:
    """Give the worktree ``folder`` the files of the snapshot. Its branch and head stay; nothing is staged."""
    git.run(folder, "read-tree", "--reset", "-u", snapshot.commit, timeout_s=git.WRITE_S)
    git.run(folder, "reset", "-q", timeout_s=git.WRITE_S)


def _tree(folder: str, head: str | None) -> str:
    with scratch_index(folder) as env:
        sparse = git.run(folder, "config", "--bool", "core.sparseCheckout", check=False).line == "true"
        words = ("add", "-A", *(("--sparse",) if sparse else ()))
        git.run(folder, *words, env=env, timeout_s=git.WRITE_S)
        _refuse_repositories(folder, head, env)
        return git.run(folder, "write-tree", env=env).line


def _refuse_repositories(folder: str, head: str | None, env: dict[str, str]) -> None:
    """A repository inside the worktree would be stored as the name of a commit, without its files."""
    if head is None:
        items = git.run(folder, "ls-files", "-z", "--stage", env=env).items
        inside = [item.partition("\t")[2] for item in items if item.startswith(GITLINK)]
    else:
        words = ("diff-index", "--cached", "--raw", "-z", "--no-renames", "--diff-filter=AT", head)
        items = git.run(folder, *words, env=env).items
        inside = [path for told, path in zip(items[::2], items[1::2], strict=True) if told.split(" ")[1] == GITLINK]
    if inside:
        raise Refused(f"{os.path.join(folder, inside[0])} is a git repository of its own; move it elsewhere first")


def _store(folder: str, workspace: str, commit: str, git_dir: str | None = None) -> str:
    for _ in range(3):
        moment = files.stamp().replace("-", "").replace(":", "")
        ref = f"{REFS}/{workspace}/{moment}"
        try:
            git.run(folder, "update-ref", ref, commit, MUST_BE_NEW, git_dir=git_dir)
        except GitFailed as error:
            last = error
            continue
        return ref
    raise last
