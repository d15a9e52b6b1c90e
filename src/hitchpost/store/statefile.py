"""The form of ``state.json`` and of a line of the story. ``session.py`` alone writes them."""

from __future__ import annotations

import os

from hitchpost import lightjson
from hitchpost.model import run as runs
from hitchpost.store import files

_STATE_TYPES = {
    "state_changed_at": str,
    "updated_by": int,
    "session_id": str,
    "workspace_id": str,
    "run": int,
}
ACTIVITY = {"last_activity_hash": int, "last_activity_at": str, "last_checked_at": str}


def checked_state(path: str, value: dict[str, object]) -> dict[str, object]:
    """``value`` when it is a whole state file. Raises ``files.Unreadable`` with the first thing that is wrong."""
    if value.get("state") not in tuple(runs.TRANSITIONS):
        raise files.Unreadable(path, f"expected a state, but got {value.get('state')!r}")
    for key, kind in _STATE_TYPES.items():
        if type(value.get(key)) is not kind:
            raise files.Unreadable(path, f"expected {key} to be {kind.__name__}, but got {value.get(key)!r}")
    for key, kind in ACTIVITY.items():
        if key in value and type(value[key]) is not kind:
            raise files.Unreadable(path, f"expected {key} to be {kind.__name__}, but got {value[key]!r}")
    return value


def read_state(folder: str) -> dict[str, object]:
    path = f"{folder}/{files.STATE}"
    return checked_state(path, files.read_object(path))


def new_state(session_id: str, workspace_id: str, run: int, now: str) -> dict[str, object]:
    return {
        "schema": files.SCHEMA,
        "run": run,
        "state": runs.CREATED,
        "state_changed_at": now,
        "updated_by": os.getpid(),
        "session_id": session_id,
        "workspace_id": workspace_id,
    }


def story_line(event: str, run: int, actor: str, now: str, fields: dict[str, object]) -> str:
    return lightjson.dumps({"at": now, "event": event, "run": run, "actor": actor, "pid": os.getpid(), **fields})
