"""Looking regularly for what the kernel does not report: folders that it cannot watch, and runs not written down."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable

import structlog

from hitchpost.hub.changes import Changes
from hitchpost.hub.observer import Observer
from hitchpost.hub.pools import run_in
from hitchpost.store.home import is_id, sessions_folder
from hitchpost.store.index import TICK_NS

EVERY_S = 3.0
log = structlog.get_logger()


class Rescan:
    def __init__(self, home: str, observer: Observer, changes: Changes, refresh: Callable[[], Awaitable[None]]) -> None:
        self.folder, self.observer, self.changes, self.refresh = sessions_folder(home), observer, changes, refresh
        self.on_turn: Callable[[], None] = lambda: None
        """Called after each turn."""
        self._changed_ns: dict[str, int] = {}
        self._is_warned = False

    async def run(self) -> None:
        """For ever: an error is logged, and the next turn comes all the same."""
        while True:
            self._warn()
            await asyncio.sleep(EVERY_S)
            try:
                await self.refresh()
                await self._watch_again()
                for session_id in list(self.observer.run_ends.unwritten):
                    await self.observer.look_at(session_id)
                self.on_turn()
            except Exception as error:
                log.error("cannot look for unreported changes", error=repr(error))

    @property
    def problems(self) -> list[str]:
        if not (unwatched := self.changes.unwatched):
            return []
        limits = " and ".join(sorted(set(unwatched.values())))
        problem = (
            f"{len(unwatched)} folders cannot be watched because this user's limit {limits} is reached; they are"
            f" looked at every {EVERY_S:g} s instead; raise the limit with sysctl, or close what watches files"
        )
        return [problem]

    async def request_new_and_removed(self) -> None:
        """Look at the sessions that came and went without a report."""
        there = set(filter(is_id, await run_in(self.observer.threads, os.listdir, self.folder)))
        for session_id in there.symmetric_difference(self.observer.table.by_id):
            self.observer.request(session_id)

    def _warn(self) -> None:
        problems = self.problems
        if bool(problems) != self._is_warned:
            self._is_warned = not self._is_warned
            log.warning(*problems) if problems else log.info("every folder is watched again")

    async def _watch_again(self) -> None:
        if not self.changes.unwatched:
            return
        self.changes.open()
        if self.folder in self.changes.unwatched:
            await run_in(self.observer.threads, self.changes.watch, self.folder)
            await self.request_new_and_removed()
        for session_id in await run_in(self.observer.threads, self._unwatched_changes):
            self.observer.request(session_id)

    def _unwatched_changes(self) -> list[str]:
        """Of the folders that were not watched: those that are from now on, and those that changed meanwhile."""
        session_ids = []
        before, self._changed_ns = self._changed_ns, {}
        for folder in list(self.changes.unwatched):
            session_id = os.path.basename(folder)
            if not is_id(session_id):
                continue
            is_watched = self.changes.watch(folder)
            try:
                changed_ns = os.lstat(folder).st_ctime_ns
            except OSError:
                changed_ns = 0
            if is_watched or changed_ns != before.get(session_id):
                session_ids.append(session_id)
            # a change in the tick of the look could hide the next one
            self._changed_ns[session_id] = changed_ns if changed_ns + TICK_NS < time.time_ns() else 0
        return session_ids
