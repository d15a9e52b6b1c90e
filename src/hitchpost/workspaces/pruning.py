"""Pruning: workspaces that nobody uses and that hold nothing are removed. Each decision has its reason."""

from __future__ import annotations

import os

from hitchpost.errors import FAILURES
from hitchpost.values import value
from hitchpost.workspaces import git, lease, removal, snapshot, store, worktree
from hitchpost.workspaces.changes import changes, loose
from hitchpost.workspaces.store import Workspace


@value
class Decision:
    """Whether a workspace goes, and why."""

    workspace: Workspace
    remove: bool
    why: str


def prune(home: str, *, dry_run: bool = False) -> list[Decision]:
    """Remove what can go. Plain folders are not looked at: only their record is ours."""
    worktree.sweep(home)
    decisions = []
    for workspace in store.everything(home):
        if not workspace.managed or not workspace.made:
            continue
        try:
            decision = decide(home, workspace)
            if decision.remove and not dry_run:
                removal.remove(home, workspace)
        except FAILURES as error:
            decision = Decision(workspace, False, str(error))
        decisions.append(decision)
    return decisions


def decide(home: str, workspace: Workspace) -> Decision:
    if held := lease.holders(home, workspace):
        return Decision(workspace, False, f"in use by {', '.join(map(str, held))}")
    if not os.path.lexists(workspace.path):
        return _decide_gone(home, workspace)
    removal.refuse_container(home, workspace)
    removal.refuse_stranger(workspace)
    tree = store.tree(home, workspace)
    removal.refuse_lock(tree)
    if not (found := changes(tree)).is_clean:
        return Decision(workspace, False, f"it has {found}")
    if own_commits(workspace):
        return Decision(workspace, False, f"branch {workspace.branch} has commits that no other branch has")
    return Decision(workspace, True, "clean, and its branch has no commits of its own")


def _decide_gone(home: str, workspace: Workspace) -> Decision:
    if found := snapshot.listing(workspace):
        return Decision(workspace, False, f"its folder is gone, and {found[0].ref} holds its work")
    tree = store.tree(home, workspace) if store.own_folder(workspace) else None
    if tree is not None and loose(tree.common, tree.head().commit) is not None:
        return Decision(workspace, False, "its folder is gone, and it had commits that are on no branch")
    return Decision(workspace, True, "its folder is gone, and it has no snapshot")


def own_commits(workspace: Workspace) -> bool:
    """Whether the branch has commits that neither its base nor another branch has."""
    ref = f"refs/heads/{workspace.branch}"
    if git.commit("/", ref, workspace.repo) is None:
        return False
    others = ("--not", f"--exclude={workspace.branch}", "--branches", "--remotes", *filter(None, (workspace.base,)))
    return bool(git.run("/", "rev-list", "-n1", ref, *others, git_dir=workspace.repo).out)
