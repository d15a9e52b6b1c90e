"""A workspace as it is now, in the shape that ``--json`` prints."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from hitchpost.errors import FAILURES
from hitchpost.workspaces import lease, snapshot, store
from hitchpost.workspaces.changes import changes
from hitchpost.workspaces.store import Workspace

AT_ONCE = 4
CLEAN, DIRTY, FOLDER, GONE, REPLACED, REMOVED, UNKNOWN = (
    "clean",
    "dirty",
    "folder",
    "gone",
    "replaced",
    "removed",
    "unknown",
)


def overviews(home: str, workspaces: list[Workspace]) -> list[dict[str, Any]]:
    """Some at a time: one that an agent has made slow to look at does not keep all others waiting."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(partial(overview, home), workspaces))


def overview(home: str, workspace: Workspace) -> dict[str, Any]:
    """Looks at the folder and the locks; git is asked about worktrees only."""
    try:
        state, text = _state(home, workspace)
        snapshots = [item.ref for item in snapshot.listing(workspace)]
    except FAILURES as error:
        state, text, snapshots = UNKNOWN, str(error), []
    return {
        "id": workspace.id,
        "name": workspace.name,
        "path": workspace.path,
        "repo": workspace.repo,
        "branch": workspace.branch,
        "base": workspace.base,
        "managed": workspace.managed,
        "capacity": workspace.capacity,
        "created_at": workspace.created_at,
        "removed_at": workspace.removed_at,
        "setup_done": workspace.setup_done,
        "state": state,
        "text": text,
        "users": [
            {
                "session": holder.session,
                "name": holder.name,
                "run": holder.run,
                "reader": holder.reader,
                "since": holder.at,
            }
            for holder in lease.holders(home, workspace)
        ],
        "snapshots": snapshots,
    }


def _state(home: str, workspace: Workspace) -> tuple[str, str]:
    if workspace.removed_at is not None:
        return REMOVED, REMOVED
    if not os.path.lexists(workspace.path):
        return GONE, GONE
    if not workspace.is_present:
        return REPLACED, "a different folder is in its place"
    if not workspace.managed:
        return FOLDER, FOLDER
    found = changes(store.tree(home, workspace))
    return (CLEAN if found.is_clean else DIRTY), str(found)
