"""Removing workspaces. Work that nothing else has is refused, or stored in a snapshot first."""

from __future__ import annotations

import os

from hitchpost.errors import GitLocked, Refused
from hitchpost.store import files
from hitchpost.values import value
from hitchpost.workspaces import container_writes, lease, project, snapshot, store, worktree
from hitchpost.workspaces.changes import Changes, changes
from hitchpost.workspaces.git import Progress, silent
from hitchpost.workspaces.repair import repair
from hitchpost.workspaces.store import Workspace
from hitchpost.workspaces.tree import Tree


@value
class Gone:
    """A workspace that was removed. ``snapshot`` is the ref that holds its work, when it had any."""

    workspace: Workspace
    snapshot: str | None = None
    notes: tuple[str, ...] = ()


def remove(home: str, workspace: Workspace, *, force: bool = False, progress: Progress = silent) -> Gone:
    """Remove the worktree; its branch and its snapshots stay. Of a plain folder only our record goes.

    Raises ``Refused`` while somebody uses it, when a folder of somebody else is in its place, and, without ``force``,
    when it holds uncommitted work.
    """
    try:
        with store.lock(home, workspace.id):
            workspace = store.read(home, workspace.id)
            refuse_in_use(home, workspace)
            if not workspace.managed or workspace.removed_at is not None:
                store.forget(home, workspace)
                return Gone(workspace)
            return _remove_worktree(home, workspace, force, progress)
    except FileNotFoundError:
        raise Refused(f"workspace {workspace.name!r} has just been removed") from None


def refuse_in_use(home: str, workspace: Workspace) -> None:
    if held := len(lease.holders(home, workspace)):
        raise Refused(f"cannot remove workspace {workspace.name!r} - currently in use by {held} session(s)")
    refuse_container(home, workspace)


def refuse_container(home: str, workspace: Workspace) -> None:
    """Raise ``Refused`` while a container lives that can write there, whether its agent has ended or not."""
    container_writes.refuse_live(home, workspace.path, f"in workspace {workspace.name!r}")


def refuse_stranger(workspace: Workspace) -> None:
    """Raise ``Refused`` when something is at the path of a worktree, and is not that worktree."""
    path = workspace.path
    if os.path.lexists(path) and (os.path.islink(path) or not workspace.is_present):
        raise Refused(f"{path} is another folder than workspace {workspace.name!r}; move it away first")


def refuse_lock(tree: Tree) -> None:
    """Raise ``GitLocked`` while git's lock is there. Somebody may be at work; it is not ours to delete."""
    path = os.path.join(tree.own_folder, "index.lock")
    if os.path.lexists(path):
        raise GitLocked("worktree", path)


def _remove_worktree(home: str, workspace: Workspace, force: bool, progress: Progress) -> Gone:
    refuse_stranger(workspace)
    ref: str | None = None
    notes: list[str] = []
    if workspace.is_present:
        notes += filter(None, [repair(home, workspace)])
        tree = store.tree(home, store.read(home, workspace.id))
        refuse_lock(tree)
        _checked(tree, workspace, force)
        notes += project.take_down(home, workspace, progress)
        if not _checked(tree, workspace, force).is_clean:
            ref = snapshot.take(home, workspace, f"before {workspace.name} was removed")
        refuse_stranger(workspace)
    else:
        ref = snapshot.keep_head(home, workspace)
    worktree.unregister(workspace)
    if os.path.lexists(workspace.path):
        raise Refused(f"git does not know {workspace.path}, so it was not deleted; check it, then delete it yourself")
    if snapshot.listing(workspace):
        store.changed(home, workspace, removed_at=files.stamp())
    else:
        store.forget(home, workspace)
    return Gone(workspace, ref, tuple(notes))


def _checked(tree: Tree, workspace: Workspace, force: bool) -> Changes:
    """What would be lost. Raises ``Refused`` when that is anything, or with ``force`` what no snapshot can hold."""
    found = changes(tree)
    if found.submodules:
        raise Refused(
            f"cannot remove workspace {workspace.name!r}: the submodule {found.submodules[0]} is checked out, and a "
            "snapshot cannot hold what is in it; push its work, then run git submodule deinit --all there"
        )
    if not found.is_clean and not force:
        raise Refused(
            f"cannot remove workspace {workspace.name!r}: it has {found}; "
            "commit the work, or use --force, which keeps it in a snapshot"
        )
    return found
