"""Every session at a glance. Sessions that have ended come from the index; the others are looked at.

The imports that looking needs are made when there is something to look at: thousands of ended sessions are listed
faster than those imports take.
"""

from __future__ import annotations

import os
import time

from hitchpost import lightjson
from hitchpost.errors import HitchpostError
from hitchpost.model import run as runs
from hitchpost.model.durations import duration
from hitchpost.model.record import LISTED
from hitchpost.state import files, index
from hitchpost.state.index import ALL_FIELDS, Index, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any


class Row:
    """One session: its JSON shape, and what only the table shows. ``cells`` are the table's texts up to the label."""

    __slots__ = ("_known", "_shape", "cells", "colour", "id", "in_status_s", "is_plain", "order", "total")

    def __init__(self, shape: dict[str, Any], colour: str, in_status_s: float, total_s: float) -> None:
        self._shape: dict[str, Any] | None = shape
        self._known: Index | None = None
        self.id: str = shape["id"]
        self.colour, self.in_status_s, self.total = colour, in_status_s, duration(total_s)
        self.order = (shape["record"] not in LISTED, shape["index"])
        number = str(shape["index"]) if shape["index"] else shape["id"]
        self.cells = [number, shape["name"], shape["description"], shape["agent"], place_of(shape), shape["label"]]
        self.is_plain = False

    @classmethod
    def kept(cls, fields: list[str], is_plain: bool, known: Index, now_s: float) -> Row:
        """The row of a session that has ended, from its line in the index. ``is_plain``: nothing in it is escaped."""
        session, _, _, record, number, name, since, total, colour, description, agent, place, label = fields
        row = cls.__new__(cls)
        row._shape, row._known, row.id = None, known, session
        row.colour, row.in_status_s, row.total = colour, now_s - float(since), total
        row.order = (record not in LISTED, int(number))
        cells = [number if number != "0" else session, name, description, agent, place, label]
        row.cells = cells if is_plain else list(map(text_of, cells))
        row.is_plain = is_plain
        return row

    @property
    def text(self) -> str:
        """The shape as one line of JSON."""
        if self._known is not None and (text := self._known.shape(self.id)) is not None:
            return text
        return lightjson.dumps(self.shape)

    @property
    def shape(self) -> dict[str, Any]:
        if self._shape is None:
            assert self._known is not None
            text = self._known.shape(self.id)
            self._shape = _shape_of(text) if text is not None else _shape_now(self._known.home, self.id)
        return self._shape


def listing(home: str, *, everything: bool = False, now: datetime | None = None) -> list[Row]:
    """All sessions in the order of their index. Archived and error records only with ``everything``."""
    now_s = time.time() if now is None else now.timestamp()
    try:
        known = Index(home).refresh()
    except FileNotFoundError:
        return []
    found = []
    for session, line in known.lines.items():
        fields = line.split("\t")
        if not everything and fields[index.RECORD] not in LISTED:
            continue
        if len(fields) == ALL_FIELDS:
            found.append(Row.kept(fields, "\\" not in line, known, now_s))
        elif (row := _looked_at(known, session, fields, now_s)) is not None:
            found.append(row)
    known.save()
    found.sort(key=lambda row: row.order)
    return found


def place_of(shape: dict[str, Any]) -> str:
    """What the WORKSPACE column shows: the branch, else the folder's own name."""
    path, branch = shape["workspace"]["path"], shape["workspace"]["branch"]
    return str(branch or os.path.basename(path) or path)


def _shape_of(text: str) -> dict[str, Any]:
    value = lightjson.loads(text)
    assert isinstance(value, dict)
    return value


def _shape_now(home: str, session: str) -> dict[str, Any]:
    """For a row whose stored shape was replaced since: another process has just stored a newer index."""
    from datetime import UTC, datetime

    from hitchpost.ops.look import look
    from hitchpost.ops.view import shape

    return shape(look(home, session), datetime.now(UTC))


def _looked_at(known: Index, session: str, fields: list[str], now_s: float) -> Row | None:
    """The row of a session by its files; None when it is gone. What can change no more is remembered."""
    from datetime import UTC, datetime

    from hitchpost.model.status import status
    from hitchpost.ops.look import look, moment
    from hitchpost.ops.view import shape

    try:
        seen = look(known.home, session)
    except FileNotFoundError:
        return None
    except (files.NewerSchema, HitchpostError, OSError) as error:
        row = {"index": int(fields[index.NUMBER]), "name": text_of(fields[index.NAME]), "record": fields[index.RECORD]}
        return Row(_foreign(session, row, error), "yellow", 0.0, 0.0)
    now = datetime.fromtimestamp(now_s, UTC)
    words = status(seen.facts, now)
    made = shape(seen, now, words)
    if seen.facts.state in runs.TERMINAL and seen.facts.state != runs.ORPHANED and not seen.problem:
        since = moment(made["state_changed_at"] or made["created_at"]) or now
        known.remember(
            session,
            shape=made,
            since_s=since.timestamp(),
            total=duration(words.total_s),
            colour=words.colour,
            place=place_of(made),
        )
    return Row(made, words.colour, words.in_status_s, words.total_s)


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
