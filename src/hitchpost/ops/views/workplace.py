"""Where a session works, as it was written down: its folder, workspace and worktree. Nothing is written here."""

from __future__ import annotations

import os

from hitchpost.errors import FAILURES, Refused
from hitchpost.model.facts import is_elsewhere
from hitchpost.ops.views.observe import Observation
from hitchpost.store.home import session_folder
from hitchpost.store.records import Record
from hitchpost.values import replace
from hitchpost.workspaces import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.workspaces.store import Workspace
    from hitchpost.workspaces.tree import Tree


def tree_of(home: str, record: Record) -> Tree | None:
    """The worktree that a session works in, as it was written down; None when it works in none.

    Raises ``Refused`` when nobody can tell any more.
    """
    if is_elsewhere(record.runtime):
        return None
    workspace = workspace_of(home, record)
    if workspace is not None and workspace.managed:
        return store.tree(home, workspace)
    from hitchpost.workspaces import container_writes, tree
    from hitchpost.workspaces.container_git import FOLDER

    known = tree.read(record.git)
    if known is None and record.base is not None:  # written down by an older version
        known = tree.discover(record.folder, home)
    if known is None:
        return None
    if container_writes.could_write(home, known.common):
        raise container_writes.not_yours(known.common)
    folder = session_folder(home, record.id)
    inside = os.path.join(folder, FOLDER)
    return replace(known, keep=folder, inside=inside if os.path.isdir(inside) else "")


def workspace_of(home: str, record: Record) -> Workspace | None:
    """The workspace that a session's runs belong to: its own, or one that its folder has become since."""
    if is_elsewhere(record.runtime):
        return None
    if record.workspace_id is not None:
        try:
            return store.read(home, record.workspace_id)
        except FileNotFoundError:
            pass
    return store.at(home, record.folder_dev, record.folder_ino) or store.around(home, record.folder)


def current(home: str, seen: Observation) -> tuple[Record, Workspace | None]:
    """The session's record with the folder that its workspace has now, and the workspace.

    Raises ``Refused`` unless the folder is there and is the one that the session belongs to. On another machine, the
    keeper looks.
    """
    if is_elsewhere(seen.record.runtime):
        return seen.record, None
    record, workspace = _where(home, seen.record)
    if not _is_present(record, workspace):
        move = f"hitch restart {record.word} --workspace FOLDER moves the session"
        restorable = workspace is not None and workspace.managed and not workspace.is_present
        back = f"hitch workspace restore {workspace.word} brings it back, or " if workspace and restorable else ""
        raise Refused(
            f"{record.name} cannot start: {record.folder} is gone or is another folder than the session's", back + move
        )
    return record, workspace


def is_there(home: str, record: Record) -> bool:
    """Whether a run of the session could begin where it belongs."""
    try:
        return _is_present(*_where(home, record))
    except FAILURES:
        return False


def _where(home: str, record: Record) -> tuple[Record, Workspace | None]:
    workspace = workspace_of(home, record)
    return (record if workspace is None else _placed(record, workspace)), workspace


def _is_present(record: Record, workspace: Workspace | None) -> bool:
    return _is_there(record) and (workspace is None or workspace.is_present)


def _placed(record: Record, workspace: Workspace) -> Record:
    """With the workspace's folder, or the one below it that the session works in."""
    record = replace(record, workspace_id=workspace.id, branch=workspace.branch)
    if record.folder != workspace.path and store.is_below(record.folder, workspace.path):
        try:
            here = os.stat(record.folder)
        except OSError:
            return record
        if os.path.realpath(record.folder) != record.folder:
            return record  # somebody has put a link in its place
        return replace(record, folder_dev=here.st_dev, folder_ino=here.st_ino)
    return replace(record, folder=workspace.path, folder_dev=workspace.dev, folder_ino=workspace.ino)


def _is_there(record: Record) -> bool:
    try:
        here = os.stat(record.folder)
    except OSError:
        return False
    return (here.st_dev, here.st_ino) == (record.folder_dev, record.folder_ino)
