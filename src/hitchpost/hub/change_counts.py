"""How much each session has changed in its folder, counted when a turn or a run has ended, and never regularly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import structlog

from hitchpost.errors import FAILURES
from hitchpost.hub.core import Hub
from hitchpost.hub.events import Event
from hitchpost.hub.tasks import Tasks
from hitchpost.model import run as runs
from hitchpost.model.headline import BUSY
from hitchpost.ops.sessions.count import count

EVERY_S = 5.0
REST = 40
"""A session is not counted sooner again than ``EVERY_S``, nor than so many times as long as it took."""

log = structlog.get_logger()


class ChangeCounts:
    """At most one count of a session waits: it will see every change so far. Git's threads and limits are the hub's."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._tasks = Tasks("change counts")
        self._busy: set[str] = set()
        self._ended: dict[str, int] = {}
        """The last run of a session whose end was heard."""
        self._due_s: dict[str, float] = {}
        """When a session may be counted again."""
        self._waiting: set[str] = set()
        self._unsubscribe = hub.registry.events.subscribe(self._on_event)

    async def close(self) -> None:
        self._unsubscribe()
        await self._tasks.close()

    def _on_event(self, event: Event) -> None:
        session_id = event["sessionId"]
        if event["type"] == "session.removed":
            self._busy.discard(session_id)
            self._ended.pop(session_id, None)
            self._due_s.pop(session_id, None)
        elif "session" in event and event["session"]["workspace"]["id"] is not None:
            self._hear(session_id, event["session"])

    def _hear(self, session_id: str, shape: Mapping[str, Any]) -> None:
        was_busy = session_id in self._busy
        if shape["section"] == BUSY:
            self._busy.add(session_id)
            return
        self._busy.discard(session_id)
        has_ended = shape["state"] in runs.TERMINAL and self._ended.get(session_id) != shape["run"]
        if has_ended:
            self._ended[session_id] = shape["run"]
        if (was_busy or has_ended) and session_id not in self._waiting:
            self._waiting.add(session_id)
            self._tasks.start(self._count(session_id))

    async def _count(self, session_id: str) -> None:
        try:
            await asyncio.sleep(max(0.0, self._due_s.get(session_id, 0.0) - time.monotonic()))
        finally:
            self._waiting.discard(session_id)
        session = self._hub.registry.by_id.get(session_id)
        if session is None or session.latest is None or not self._hub.watches(session_id):
            return
        began_s = time.monotonic()
        self._due_s[session_id] = began_s + EVERY_S
        try:
            await self._hub.look_at_files_of(session_id, lambda: count(self._hub.home, session.observation.record))
        except FAILURES as error:  # its folder may be gone; the difference says so to whoever asks for it
            log.info("changes not counted", session_id=session_id, why=str(error))
        took_s = time.monotonic() - began_s
        if session_id in self._due_s:
            self._due_s[session_id] = time.monotonic() + max(EVERY_S, REST * took_s)
