"""Bringing a workspace back: its worktree from its branch, its uncommitted files from a snapshot."""

from __future__ import annotations

import os

from hitchpost.errors import NOT_READ, Refused
from hitchpost.store import files
from hitchpost.values import replace, value
from hitchpost.workspaces import include, removal, snapshot, store, worktree
from hitchpost.workspaces.changes import changes
from hitchpost.workspaces.git import Progress, Repository, silent
from hitchpost.workspaces.repair import repair
from hitchpost.workspaces.snapshot import Snapshot
from hitchpost.workspaces.store import Workspace
from hitchpost.workspaces.tree import pointed


@value
class Restored:
    """``snapshot`` is the ref whose files were brought back, if any."""

    workspace: Workspace
    snapshot: str | None = None
    notes: tuple[str, ...] = ()


def restore(home: str, workspace: Workspace, name: str | None = None, progress: Progress = silent) -> Restored:
    """Make a worktree that is gone once more, at the same path. ``name`` names a snapshot; else the newest counts.

    The newest is used only when it was taken at the commit that the branch is at: otherwise it would undo commits. In
    a worktree that is there, a snapshot is brought back only when it is named; what is there is snapshotted first.
    """
    with store.lock(home, workspace.id):
        workspace = store.read(home, workspace.id)
        if not workspace.managed:
            raise Refused(f"workspace {workspace.name!r} is a plain folder: there is nothing to restore it from")
        named = None if name is None else snapshot.chosen(workspace, name)
        if workspace.is_present:
            mended = repair(home, workspace)
            workspace = store.read(home, workspace.id)
            if mended is not None and named is None:
                return Restored(workspace, None, (mended,))
            return _brought_back(home, workspace, named)
        if _is_ours(workspace):
            return _taken_in(home, workspace, named)
        return _made_again(home, workspace, named, progress)


def _brought_back(home: str, workspace: Workspace, named: Snapshot | None) -> Restored:
    if named is None:
        known = ", ".join(item.at for item in snapshot.listing(workspace)) or "none"
        raise Refused(
            f"{workspace.path} is there; name a snapshot with --snapshot to bring it back; there are: {known}"
        )
    removal.refuse_in_use(home, workspace)
    tree = store.tree(home, workspace)
    removal.refuse_lock(tree)
    kept = snapshot.take(home, workspace, f"before {named.at} was brought back")
    snapshot.bring_back(tree, named)
    return Restored(workspace, named.ref, () if kept is None else (f"the previous content is kept in {kept}",))


def _is_ours(workspace: Workspace) -> bool:
    """Whether another folder is at the path that is a whole worktree of ours, say from a backup."""
    own = store.own_folder(workspace)
    if not own or os.path.islink(workspace.path) or not os.path.isdir(workspace.path):
        return False
    try:
        target = pointed(files.read_bytes(os.path.join(workspace.path, ".git"), 4096))
    except NOT_READ:
        return False
    return os.path.realpath(target) == os.path.realpath(f"{workspace.repo}/{own}")


def _taken_in(home: str, workspace: Workspace, named: Snapshot | None) -> Restored:
    """The folder that is there takes the place of the one that was."""
    workspace = store.write(home, replace(store.placed(workspace), removed_at=None))
    if named is not None:
        return _brought_back(home, workspace, named)
    found = changes(store.tree(home, workspace))
    return Restored(workspace, None, () if found.is_clean else (f"the folder already existed, with {found}",))


def _made_again(home: str, workspace: Workspace, named: Snapshot | None, progress: Progress) -> Restored:
    if os.path.lexists(workspace.path) and (not os.path.isdir(workspace.path) or os.listdir(workspace.path)):
        removal.refuse_stranger(workspace)
    kept = snapshot.keep_head(home, workspace)
    known = [item for item in snapshot.listing(workspace) if item.ref != kept]
    newest = named or next(iter(known), None)
    workspace, told = worktree.again(home, workspace, newest.parent if newest else None, progress)
    workspace = replace(workspace, name=store.free_name(home, workspace.name, workspace.id))
    notes = told if kept is None else [*told, f"commits that were on no branch are kept in {kept}"]
    used = named
    if newest is not None and named is None:
        if newest.parent == store.tree(home, workspace).head().commit:
            used = newest
        else:
            notes.append(f"the newest snapshot is of an older commit; --snapshot {newest.at} brings its files back")
    if used is not None:
        snapshot.bring_back(store.tree(home, workspace), used)
    notes += include.copy(home, Repository(workspace.origin[0], None), workspace.path)
    store.write(home, workspace)
    return Restored(workspace, None if used is None else used.ref, tuple(notes))
