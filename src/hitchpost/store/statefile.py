"""``state.json``: ADR 31's file, read, checked and changed. The keeper imports this module, as it does ``files``."""

from __future__ import annotations

import os

from hitchpost import lightjson
from hitchpost.model import run as runs
from hitchpost.store import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_STATE_TYPES = {
    "state_changed_at": str,
    "updated_by": int,
    "session_id": str,
    "workspace_id": str,
    "run": int,
}
_ACTIVITY = {"last_activity_hash": int, "last_activity_at": str, "last_checked_at": str}


def checked_state(path: str, value: dict[str, object]) -> dict[str, object]:
    """``value`` when it is a whole state file. Raises ``files.Unreadable`` with the first thing that is wrong."""
    if value.get("state") not in tuple(runs.TRANSITIONS):
        raise files.Unreadable(path, f"expected a state, but got {value.get('state')!r}")
    for key, kind in _STATE_TYPES.items():
        if type(value.get(key)) is not kind:
            raise files.Unreadable(path, f"expected {key} to be {kind.__name__}, but got {value.get(key)!r}")
    for key, kind in _ACTIVITY.items():
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


def change_state(
    folder: str,
    run: int,
    new: str,
    *,
    actor: str,
    reason: str = "",
    evidence: dict[str, object] | None = None,
    now: str | None = None,
    since: str | None = None,
    spare: str | None = None,
    before: Callable[[str, str], None] | None = None,
    value: dict[str, object] | None = None,
) -> dict[str, object]:
    """Move run ``run`` to ``new``. The caller holds the session's lock; the change is durable when this returns.

    The story is written first, so a lost state file can be rebuilt from it. A story that cannot grow (full disk) does
    not stop the state from being true. ``before`` is called with the old and the new state and may veto by raising.
    ``since`` is when that came about, where it is found out late: words about time go by it.
    ``value`` is the state as the caller has just read it, for one who understands older files too.
    """
    if value is None:
        value = read_state(folder)
    if value["run"] != run:
        raise files.WrongRun(run, int(str(value["run"])))
    old = str(value["state"])
    runs.check(old, new)
    if before is not None:
        before(old, new)
    moment = now or files.stamp()
    fields: dict[str, object] = {"from": old, "to": new, "reason": reason}
    if since:
        fields["since"] = since
    if evidence:
        fields["evidence"] = evidence
    try:
        files.append_line(f"{folder}/{files.STORY}", story_line("state", run, actor, moment, fields))
    except OSError as error:
        if error.errno not in files.FULL:
            raise
    value.update(schema=files.SCHEMA, state=new, state_changed_at=since or moment, updated_by=os.getpid())
    files.write_object(f"{folder}/{files.STATE}", value, spare=spare)
    return value


def record_activity(
    folder: str, run: int, digest: int, at: str, checked_at: str, value: dict[str, object] | None = None
) -> None:
    """Note when output was last seen and its hash. A fact, not a change: it is not forced to the disk.

    The caller holds the session's lock; ``value`` is as in ``change_state``.
    """
    if value is None:
        value = read_state(folder)
    if value["run"] != run:
        raise files.WrongRun(run, int(str(value["run"])))
    value.update(last_activity_hash=digest, last_activity_at=at, last_checked_at=checked_at)
    files.write_object(f"{folder}/{files.STATE}", value, durable=False)
