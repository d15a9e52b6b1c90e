"""A session as the hub knows it."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Any

from hitchpost import lightjson
from hitchpost.errors import NoSuchSession
from hitchpost.hub.watching import Watch
from hitchpost.model import run as runs
from hitchpost.model.compat import agent_state
from hitchpost.model.status import Status, label_after, status
from hitchpost.ops.views.listing import place_in_list, place_of
from hitchpost.ops.views.observe import Observation
from hitchpost.ops.views.session_json import to_json as json_shape
from hitchpost.ops.views.session_types import Session as SessionJson
from hitchpost.store.index import NAME, NUMBER, RECORD, line_of, text_of, total_field, with_label


class HubSession:
    """``to_json`` and ``text`` are its JSON, ``line`` its line in the index, ``place`` its place in a list.

    An ended session is known from the index alone, until somebody needs more: then ``latest`` is what the last look
    saw. ``watch`` is there while the keeper of the current run lives.
    """

    __slots__ = (
        "_from_s",
        "_index_row",
        "_shape",
        "_until_s",
        "_words",
        "announced_run",
        "announced_status",
        "id",
        "latest",
        "line",
        "lives",
        "lock",
        "place",
        "reported_exit",
        "text",
        "watch",
    )

    def __init__(self, session_id: str) -> None:
        self.id = session_id
        self.latest: Observation | None = None
        self.reported_exit: tuple[int, dict[str, Any]] | None = None
        """A run, and how it ended, as its keeper reported it."""
        self.announced_status = ""
        self.announced_run = 0
        self.text = ""
        self.line = ""
        self.place = 0
        self.lives = False
        self.watch: Watch | None = None
        self.lock = asyncio.Lock()
        """Held during a look: there is only one at a time."""
        self._shape: SessionJson | None = None
        self._index_row: dict[str, Any] | None = None
        self._words: Status | None = None
        self._from_s = self._until_s = 0.0
        """Between these moments the same facts have the same words."""

    @classmethod
    def from_index(cls, session_id: str, line: str, text: str = "") -> HubSession:
        session = cls(session_id)
        session.line, session.text, session.place = line, text, place_in_list(line)
        return session

    @property
    def observation(self) -> Observation:
        """What the last look saw. Raises ``NoSuchSession`` before the first one."""
        if self.latest is None:
            raise NoSuchSession(self.id)
        return self.latest

    @property
    def shape(self) -> SessionJson:
        """Its JSON; an empty one before the first look at a session that the index does not have."""
        if self._shape is None:
            self._shape = json.loads(self.text or "{}")
        return self._shape

    @property
    def index_row(self) -> dict[str, Any]:
        """What people find it by: id, index, name and record."""
        if self._index_row is None:
            fields = self.line.split("\t", NAME + 1)
            name, number = text_of(fields[NAME]), int(fields[NUMBER])
            self._index_row = {"id": self.id, "index": number, "name": name, "record": fields[RECORD]}
        return self._index_row

    def exit_reported_for(self, run: int) -> dict[str, Any]:
        """How the run ended, as its keeper reported it; empty when it has not."""
        if self.reported_exit is None or self.reported_exit[0] != run:
            return {}
        return self.reported_exit[1]

    def update(self, observation: Observation, now: datetime) -> None:
        """Describe the session as it was seen, in the words that hold ``now``."""
        self.latest = observation
        words = status(observation.facts, now)
        self._shape = described = json_shape(observation, now, words)
        self._index_row = None
        self.text = lightjson.dumps(described)
        now_s = now.timestamp()
        self._words, self._from_s = words, now_s
        self._until_s = 0.0 if observation.problem else now_s + words.holds_s
        total = total_field(words.total_s, now_s, grows=words.total_grows)
        state = agent_state(observation.facts)
        self.line = line_of(described, now_s - words.in_status_s, total, words.colour, state, place_of(described))
        self.place = place_in_list(self.line)
        self.lives = observation.facts.state in runs.LIVE

    def pass_on_to(self, now: datetime) -> bool:
        """Describe the session in the words that hold ``now``, if these can be no others than those of the last
        ``update``, but for the time that its label counts. False when they have to be derived anew."""
        words, shape, now_s = self._words, self._shape, now.timestamp()
        if words is None or shape is None or not self._from_s <= now_s < self._until_s:
            return False
        before, label = shape["label"], label_after(words, now)
        if label != before:
            self._shape = {**shape, "label": label}
            self.text = self.text.replace(_label_field(before), _label_field(label), 1)
            self.line = with_label(self.line, label)
        return True


def _label_field(label: str) -> str:
    """As the JSON has it. No text in it looks the same: quotes are escaped there."""
    return f'"label": {lightjson.dumps(label)}'
