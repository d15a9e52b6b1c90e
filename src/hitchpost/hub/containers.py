"""Containers: their engine tells what happens to them, and every ten seconds each is looked at all the same.

The words come from looking (``runtimes/docker.py``), as for every session. An engine that hangs or is gone tells
nothing, and then nothing is concluded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

from hitchpost.errors import HitchpostError
from hitchpost.hub.registry import Registry, Tracked
from hitchpost.model.facts import WITHOUT_SANDBOX
from hitchpost.model.run import RUNNING
from hitchpost.model.status import STALE_NOTE, is_stale
from hitchpost.runtimes import engine
from hitchpost.runtimes.docker import read_box, remove_left
from hitchpost.runtimes.engine import Box

SYNC_S = 10.0
log = structlog.get_logger()


class Boxes:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._engines: dict[str, asyncio.Task[None]] = {}
        self._stale: set[str] = set()
        self._sync: asyncio.Task[None] | None = None
        self._leave: Callable[[], None] = lambda: None
        self._new = asyncio.Event()
        self._silent: dict[str, int] = {}
        self._known: set[str] = set()
        """Sessions whose container lives, and whose engine is listened to."""

    def start(self) -> None:
        for one in self._boxed():
            if one.seen is not None and is_stale(one.seen.facts):
                self._stale.add(one.id)
                log.info(f"Discovered stale container for {one.seen.record.name} {STALE_NOTE}", session_id=one.id)
        self._leave = self.registry.subscribe(self._heard)
        self._sync = asyncio.get_running_loop().create_task(self._regularly())

    def close(self) -> None:
        self._leave()
        for task in (*self._engines.values(), *filter(None, [self._sync])):
            task.cancel()

    def _boxed(self) -> list[Tracked]:
        known = self.registry.sessions.values()
        return [one for one in known if one.seen is not None and one.seen.record.runtime not in WITHOUT_SANDBOX]

    def _heard(self, event: dict[str, Any]) -> None:
        one = self.registry.sessions.get(event["sessionId"])
        if one is None or one.seen is None:
            self._stale.discard(event["sessionId"])
            return
        if one.seen.record.runtime in WITHOUT_SANDBOX:
            return
        if one.seen.facts.sandbox_alive is not True:
            self._known.discard(one.id)
        elif one.id not in self._known:
            self._new.set()
        if not is_stale(one.seen.facts):
            self._stale.discard(one.id)
        elif one.id not in self._stale:
            self._stale.add(one.id)
            log.warning(f"{one.seen.record.name} is stale {STALE_NOTE}", session_id=one.id)

    async def _regularly(self) -> None:
        while True:
            try:
                await self._look()
            except Exception as error:  # the net must not tear for one session that nobody thought of
                log.error("cannot look at the containers", error=repr(error))
            try:
                await asyncio.wait_for(self._new.wait(), SYNC_S)
                self._new.clear()
            except TimeoutError:
                continue

    async def _look(self) -> None:
        folders = {one.id: one.seen.folder for one in self._boxed() if one.seen is not None}
        boxes = await asyncio.to_thread(lambda known: {one: read_box(known[one]) for one in known}, folders)
        for session, box in boxes.items():
            if box is not None:
                self._known.add(session)
                if box.engine not in self._engines:
                    self._engines[box.engine] = asyncio.create_task(self._listen(box.engine))
        await asyncio.gather(*(self._check(session, box) for session, box in boxes.items() if box is not None))
        for session in await asyncio.to_thread(remove_left, self.registry.home):
            log.info("removed a container whose session is gone", session_id=session)

    async def _check(self, session: str, box: Box) -> None:
        """The net below the keeper's own watch: one that sleeps through an end would be found out here."""
        one = await self.registry.look_at(session)
        if one is None or one.seen is None or one.seen.facts.state != RUNNING or one.seen.facts.sandbox_paused:
            return
        try:
            alive = await engine.answer(box.engine, lambda docker: engine.session_is_alive(docker, box), engine.PROBE_S)
        except HitchpostError as error:
            log.warning("the engine does not tell", session_id=session, error=str(error))
            return
        run = one.seen.facts.run
        if alive:
            self._silent.pop(session, None)
            if self.registry.session_lost.pop(session, None) is not None:
                await self.registry.look_at(session)
        elif self._silent.get(session) == run:
            self.registry.session_lost[session] = run  # twice in a row: its keeper sleeps, or cannot know
            await self.registry.look_at(session)
        else:
            self._silent[session] = run
            log.warning("tmux has no session in the container", session_id=session)
            self._new.set()

    async def _listen(self, url: str) -> None:
        """Until the engine ends; the next regular look listens again when it is back."""
        try:
            async for session in engine.events(url, self.registry.home):
                await self.registry.look_at(session)
        except Exception as error:
            log.warning("the engine's events ended", engine=url, error=str(error))
        finally:
            self._engines.pop(url, None)
