"""Every session at a glance. Sessions that have ended come from the index; the others are looked at.

The imports that looking needs are made when there is something to look at: thousands of ended sessions are listed
faster than those imports take.
"""

from __future__ import annotations

import os
import time

from hitchpost import lightjson
from hitchpost.errors import FAILURES, NoSuchSession
from hitchpost.model import run as runs
from hitchpost.model.durations import duration
from hitchpost.model.record import ALL, LISTED
from hitchpost.ops import parallel
from hitchpost.store import files, index
from hitchpost.store.home import ID_LENGTH, session_folder
from hitchpost.store.index import Index
from hitchpost.text import readable

UNLISTED = 1 << 64
"""The place of a session that is not usually listed is beyond this."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any, Protocol

    from hitchpost.ops.views.observe import Observation
    from hitchpost.ops.views.session_types import Session as SessionJson

    class Listed(Protocol):
        """A row of a list: the index's line, and its place."""

        line: str
        place: int


class Row:
    """One session: its line as in the index, its place in the list, and its JSON shape as ``text``.

    ``known`` is the index that has the text. ``why`` the session cannot be looked at, if so.
    """

    __slots__ = ("_known", "_text", "line", "place", "why")

    def __init__(self, line: str, known: Index | None = None, text: str = "", why: Exception | None = None) -> None:
        self.line, self.place, self.why = line, place_in_list(line), why
        self._known, self._text = known, text

    @property
    def id(self) -> str:
        return self.line[:ID_LENGTH]

    @property
    def text(self) -> str:
        """The shape as one line of JSON."""
        return self._text if self._known is None else self._known.shapes[self.id]

    @property
    def shape(self) -> SessionJson:
        shape: SessionJson = lightjson.loads(self.text)  # type: ignore[assignment]
        return shape


def listing(
    home: str, *, records: tuple[str, ...] = LISTED, now: datetime | None = None, shapes: bool = False
) -> list[Row]:
    """The sessions with such records, in the order of their index. ``shapes``: the rows can tell their shapes."""
    now_s = time.time() if now is None else now.timestamp()
    try:
        known = Index(home).check()
    except FileNotFoundError:
        return []
    if shapes:
        # another process may just have stored a newer index: those whose shapes went with the old one are looked at
        for session in known.lines.keys() - known.shapes.keys():
            del known.lines[session]
            known.changed[session] = 0
    found = [Row(line, known) for line in known.lines.values()]
    for looked in parallel.done(list(known.changed), lambda session: _looked_at(known, session, now_s)):
        if looked:
            line, text, few = looked
            found.append(Row(line, text=text))
            known.remember(line, text, few)
    known.save()
    found = [row for row in found if is_wanted(row, records)]
    found.sort(key=lambda row: row.place)
    return found


def is_wanted(row: Listed, records: tuple[str, ...]) -> bool:
    """Whether a list of these records has the row."""
    if records == LISTED:
        return row.place < UNLISTED
    return records == ALL or row.line.split("\t", index.NUMBER)[index.RECORD] in records


def as_json(texts: list[str]) -> bytes:
    """A list of the shapes, one on each line, ready to be printed."""
    inside = ",\n".join(texts)
    return f"[\n{inside}\n]\n".encode() if texts else b"[]\n"


def place_in_list(line: str) -> int:
    """Sessions are listed in this order. Those that are not usually listed come last, and may share a number."""
    session, _, record, number, _ = line.split("\t", index.NAME)
    return int(number) if record in LISTED else (1 + int(number)) * UNLISTED + int(session, base=36)


def place_of(shape: SessionJson) -> str:
    """What the WORKSPACE column shows: the branch, else the folder's own name."""
    path, branch = shape["workspace"]["path"], shape["workspace"]["branch"]
    return str(branch or os.path.basename(path) or path)


def _looked_at(known: Index, session: str, now_s: float) -> tuple[str, ...]:
    """A session by its files: its line, its shape, and the few fields to remember where it has not ended.

    Nothing when it is gone.
    """
    from hitchpost.model.compat import agent_state
    from hitchpost.model.status import status
    from hitchpost.ops.views import moments
    from hitchpost.ops.views.observe import observe
    from hitchpost.ops.views.session_json import to_json

    try:
        seen = observe(known.home, session)
    except NoSuchSession:
        return ()
    except FAILURES as error:
        row = _foreign(known, session, error)
        return row.line, row.text, known.read(session)
    now = moments.at(now_s)
    words = status(seen.facts, now)
    made = to_json(seen, now, words)
    since_s, total = now_s - words.in_status_s, index.total_field(words.total_s, now_s, grows=words.total_grows)
    line = index.line_of(made, since_s, total, words.colour, agent_state(seen.facts), place_of(made))
    return line, lightjson.dumps(made), "" if is_settled(seen) else index.few(session, seen.record)


def is_settled(seen: Observation) -> bool:
    """Whether what was seen can change no more without a change to the session's folder."""
    ended = seen.facts.state in runs.TERMINAL and seen.facts.state != runs.ORPHANED
    quiet = seen.facts.snoozed_until is None and seen.facts.sandbox_alive is not True
    return ended and not seen.problem and quiet


def foreign(home: str, session: str, why: Exception) -> Row:
    """The row of a session that cannot be looked at."""
    return _foreign(Index(home), session, why)


def _foreign(known: Index, session: str, why: Exception) -> Row:
    """A session that cannot be looked at, or that a newer version wrote: there, and nothing can be said about it."""
    try:
        since_s = os.stat(session_folder(known.home, session)).st_ctime
    except OSError:
        since_s = time.time()
    known.lines[session] = known.read(session)
    made = _foreign_shape(known.row(session), index.owner_of(known.lines[session]), why)
    line = index.line_of(made, since_s, duration(0.0), made["colour"], "unknown", place_of(made))
    return Row(line, text=lightjson.dumps(made), why=why)


def _foreign_shape(row: dict[str, Any], owner: str, why: Exception) -> SessionJson:
    from hitchpost.model.headline import DOUBT
    from hitchpost.model.headline import UNLISTED as NOT_LISTED

    newer = isinstance(why, files.NewerSchema)
    return {
        "id": row["id"],
        "index": row["index"],
        "name": readable(row["name"]),
        "owner": owner or None,
        "description": readable(str(why)),
        "agent": "",
        "runtime": "",
        "node": None,
        "record": row["record"],
        "workspace": {"id": None, "path": "", "branch": None, "repository": None},
        "run": 0,
        "state": "unknown",
        "status": "unknown",
        "label": "unknown (written by a newer hitchpost)" if newer else "unknown (see hitch doctor)",
        "quiet_since": None,
        "attention": "unknown",
        "headline": "Unknown",
        "detail": readable(str(why)),
        "report": None,
        "since": None,
        "rank": DOUBT.rank if row["record"] in LISTED else NOT_LISTED,
        "glyph": DOUBT.glyph,
        "colour": DOUBT.colour,
        "section": DOUBT.section,
        "actions": [],
        "changes": None,
        "pinned": False,
        "snoozed_until": None,
        "seen_at": None,
        "live": False,
        "takes_prompt": False,
        "refusal": None,
        "sandbox_alive": None,
        "session_alive": None,
        "exit": None,
        "survivors": None,
        "created_at": None,
        "started_at": None,
        "state_changed_at": None,
        "last_activity_at": None,
        "last_active_at": None,
        "idle_after_s": None,
        "supports_resume": False,
        "conversation": None,
        "chat": False,
        "when_limit": "stop",
    }
