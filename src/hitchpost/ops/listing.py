"""Every session at a glance. Sessions that have ended come from the index; the others are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hitchpost.errors import HitchpostError
from hitchpost.model import run as runs
from hitchpost.model.durations import seconds_between
from hitchpost.model.record import ACTIVE, LISTED, SUSPENDED
from hitchpost.model.status import COLOURS, status
from hitchpost.ops.look import look, moment
from hitchpost.ops.view import shape
from hitchpost.state import files
from hitchpost.state.index import Index


@dataclass(slots=True)
class Row:
    """One session: its JSON shape, and what only the table shows."""

    shape: dict[str, Any]
    colour: str
    in_status_s: float
    total_s: float


def listing(home: str, *, everything: bool = False, now: datetime | None = None) -> list[Row]:
    """All sessions in the order of their index. Archived and error records only with ``everything``."""
    now = now or datetime.now(UTC)
    try:
        index = Index(home).refresh()
    except FileNotFoundError:
        return []
    found = []
    for session, row in index.rows.items():
        if not everything and row["record"] not in LISTED:
            continue
        kept = row.get("shape")
        if kept is not None:
            since = moment(kept["state_changed_at"] or kept["created_at"])
            found.append(Row(kept, COLOURS[kept["status"]], seconds_between(since, now), row["total_s"]))
            continue
        try:
            seen = look(home, session)
        except FileNotFoundError:
            continue
        except (files.NewerSchema, HitchpostError, OSError) as error:
            found.append(Row(_foreign(session, row, error), "yellow", 0.0, 0.0))
            continue
        words = status(seen.facts, now)
        made = shape(seen, now, words)
        found.append(Row(made, words.colour, words.in_status_s, words.total_s))
        if seen.facts.state in runs.TERMINAL and seen.facts.state != runs.ORPHANED and not seen.problem:
            index.remember(session, shape=made, total_s=words.total_s)
    index.save()
    found.sort(key=lambda item: (item.shape["record"] not in (ACTIVE, SUSPENDED), item.shape["index"]))
    return found


def _foreign(session: str, row: dict[str, Any], why: Exception) -> dict[str, Any]:
    """A session that cannot be looked at, or that a newer version wrote: there, and nothing can be said about it."""
    newer = isinstance(why, files.NewerSchema)
    empty = dict.fromkeys(("sandbox_alive", "session_alive", "exit", "created_at", "started_at", "state_changed_at"))
    return {
        **empty,
        "id": session,
        "index": row["index"],
        "name": row["name"],
        "description": str(why),
        "agent": "",
        "runtime": "",
        "record": row["record"],
        "workspace": {"id": None, "path": "", "branch": None},
        "run": 0,
        "state": "unknown",
        "status": "unknown",
        "label": "unknown (written by a newer hitchpost)" if newer else "unknown (see hitch doctor)",
        "attention": "unknown",
        "last_activity_at": None,
        "supports_resume": False,
    }
