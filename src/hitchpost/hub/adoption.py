"""Taking up, at the hub's start, every session that is there."""

from __future__ import annotations

import asyncio
import json
import os
import time

import structlog

from hitchpost.hub.changes import Changes
from hitchpost.hub.observer import Observer
from hitchpost.hub.pools import run_in
from hitchpost.hub.session import HubSession
from hitchpost.model.facts import has_sandbox
from hitchpost.ops.sessions.create import sweep
from hitchpost.ops.views.listing import is_settled
from hitchpost.store.home import is_id, session_folder, sessions_folder
from hitchpost.store.index import Index, few

BUDGET_S = 10.0
log = structlog.get_logger()


class Adoption:
    """Ended sessions come from the index; the others are looked at, all at once and for at most ``BUDGET_S``."""

    def __init__(self, home: str, observer: Observer, changes: Changes) -> None:
        self.home, self.observer, self.changes = home, observer, changes

    async def run(self) -> Index:
        """Adopt every session, and finish what a killed operation left half done. Returns the index that was read."""
        began = time.monotonic()
        await run_in(self.observer.threads, sweep, self.home)
        index = await run_in(self.observer.threads, self._watch_all)
        sessions, shapes = self.observer.table.by_id, index.shapes
        for session_id, line in index.lines.items():
            if session_id in shapes:
                sessions[session_id] = HubSession.from_index(session_id, line, shapes[session_id])
        session_ids = [session_id for session_id in (*index.changed, *index.lines) if session_id not in sessions]
        try:
            async with asyncio.timeout(BUDGET_S):
                await asyncio.gather(*(self.observer.look_at(session_id, quiet=True) for session_id in session_ids))
        except TimeoutError:
            log.warning("adoption goes on in the background", seconds=BUDGET_S)
            for session_id in session_ids:
                if session_id not in sessions or sessions[session_id].latest is None:
                    self.observer.request(session_id, quiet=True)
        live = sum(session.watch is not None for session in sessions.values())
        log.info("adopted", sessions=len(sessions), live=live, seconds=round(time.monotonic() - began, 3))
        return index

    async def finish(self, index: Index) -> None:
        """Store what was looked at for the next start. Then look at containers: they change without our files."""
        sessions = self.observer.table.by_id.values()
        looked_at = [
            (session, seen) for session in sessions if (seen := session.latest) and session.id in index.changed
        ]

        def store() -> list[str]:
            for session, seen in looked_at:
                index.remember(session.line, session.text, "" if is_settled(seen) else few(session.id, seen.record))
            index.save()
            return [session_id for session_id in index.lines if _has_sandbox(index.shapes.get(session_id))]

        for session_id in await run_in(self.observer.threads, store):
            await self.observer.look_at(session_id)

    def _watch_all(self) -> Index:
        """First the watches, then the index: what changes in between is reported."""
        folder = sessions_folder(self.home)
        self.changes.watch(folder)
        for session_id in filter(is_id, os.listdir(folder)):
            self.changes.watch(session_folder(self.home, session_id))
        index = Index(self.home).check()
        index.shapes  # noqa: B018 - read here, not in the event loop
        return index


def _has_sandbox(text: str | None) -> bool:
    return text is not None and has_sandbox(json.loads(text)["runtime"])
