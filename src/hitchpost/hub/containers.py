"""Containers: their engine reports what happens to them, and every ten seconds each is looked at all the same.

The words come from looking (``runtimes/docker.py``), as for every session. An engine that hangs or is gone reports
nothing, and then nothing is concluded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from hitchpost.errors import HitchpostError
from hitchpost.hub.events import Event
from hitchpost.hub.registry import Registry
from hitchpost.hub.tasks import Tasks
from hitchpost.model.facts import has_container
from hitchpost.model.run import RUNNING
from hitchpost.model.status import STALE_NOTE, is_stale
from hitchpost.ops.views.observe import Observation
from hitchpost.runtimes import engine
from hitchpost.runtimes.container_file import read_box
from hitchpost.runtimes.container_removal import remove_left
from hitchpost.runtimes.engine import Box
from hitchpost.runtimes.freeze import in_motion
from hitchpost.runtimes.kept import agent_lives

SYNC_S = 10.0
log = structlog.get_logger()


class Containers:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._tasks = Tasks("containers")
        self._engines: set[str] = set()
        """Engines that are listened to."""
        self._stale: set[str] = set()
        self._unsubscribe: Callable[[], None] = lambda: None
        self._look_now = asyncio.Event()
        self._missing_once: dict[str, int] = {}
        """Runs that were not found inside their container at the last look."""
        self._alive: set[str] = set()
        """Sessions whose container lives, and whose engine is listened to."""

    def start(self) -> None:
        for session_id, seen in self._observations().items():
            if is_stale(seen.facts):
                self._stale.add(session_id)
                log.info(f"Discovered stale container for {seen.record.name} {STALE_NOTE}", session_id=session_id)
        self._unsubscribe = self.registry.events.subscribe(self._on_event)
        self._tasks.start(self._look_regularly())

    async def close(self) -> None:
        self._unsubscribe()
        await self._tasks.close()

    def _observations(self) -> dict[str, Observation]:
        """What was last seen of the sessions in containers, by session."""
        observations = {session.id: session.latest for session in self.registry.by_id.values()}
        return {
            session_id: seen
            for session_id, seen in observations.items()
            if seen is not None and has_container(seen.record.runtime)
        }

    def _on_event(self, event: Event) -> None:
        session_id = event["sessionId"]
        session = self.registry.by_id.get(session_id)
        if session is None or session.latest is None:
            self._stale.discard(session_id)
            return
        record, facts = session.latest.record, session.latest.facts
        if not has_container(record.runtime):
            return
        if facts.sandbox_alive is not True:
            self._alive.discard(session_id)
        elif session_id not in self._alive:
            self._look_now.set()
        if not is_stale(facts):
            self._stale.discard(session_id)
        elif session_id not in self._stale:
            self._stale.add(session_id)
            log.warning(f"{record.name} is stale {STALE_NOTE}", session_id=session_id)

    async def _look_regularly(self) -> None:
        """For ever: an error is logged, and the next look comes all the same."""
        while True:
            try:
                await self._look()
            except Exception as error:
                log.error("cannot look at the containers", error=repr(error))
            try:
                await asyncio.wait_for(self._look_now.wait(), SYNC_S)
                self._look_now.clear()
            except TimeoutError:
                continue

    async def _look(self) -> None:
        folders = {session_id: seen.folder for session_id, seen in self._observations().items()}
        boxes = await asyncio.to_thread(_read_boxes, folders)
        for session_id, box in boxes.items():
            self._alive.add(session_id)
            if box.engine not in self._engines:
                self._engines.add(box.engine)
                self._tasks.start(self._listen(box.engine))
        await asyncio.gather(*(self._check(session_id, box) for session_id, box in boxes.items()))
        for session_id in await asyncio.to_thread(remove_left, self.registry.home):
            log.info("removed a container whose session is gone", session_id=session_id)

    async def _check(self, session_id: str, box: Box) -> None:
        """In case that a keeper sleeps through the end of its agent."""
        session = await self.registry.look_at(session_id)
        if session is None or session.latest is None:
            return
        facts = session.latest.facts
        if facts.state != RUNNING or facts.sandbox_paused:
            return
        try:
            alive = await asyncio.to_thread(is_alive, session.latest, box)
        except HitchpostError as error:
            log.warning("the engine does not tell", session_id=session_id, error=str(error))
            return
        lost_inside = self.registry.observer.lost_inside
        if alive:
            self._missing_once.pop(session_id, None)
            if lost_inside.pop(session_id, None) is not None:
                await self.registry.look_at(session_id)
        elif self._missing_once.get(session_id) == facts.run:
            lost_inside[session_id] = facts.run  # twice in a row: its keeper sleeps, or cannot know
            await self.registry.look_at(session_id)
        else:
            self._missing_once[session_id] = facts.run
            log.warning("tmux has no session in the container", session_id=session_id)
            self._look_now.set()

    async def _listen(self, url: str) -> None:
        """Until the engine ends; the next regular look listens again when it is back."""
        try:
            async for session_id in engine.events(url, self.registry.home):
                await self.registry.look_at(session_id)
        except Exception as error:
            log.warning("the engine's events ended", engine=url, error=str(error))
        finally:
            self._engines.discard(url)


def is_alive(seen: Observation, box: Box) -> bool:
    """Where a keeper is awake and the kernel has the agent, that is proof enough.

    The engine is asked only otherwise: a program that is started in a container in the moment in which somebody pauses
    it hangs, and from then on its engine can neither let the container go on nor remove it.
    """
    facts = seen.facts
    is_awake = facts.keeper_alive is True and not facts.keeper_stopped
    if is_awake and agent_lives(seen.run_folder):
        return True
    with in_motion(seen.folder, wait_s=0):
        return engine.ask(box.engine, lambda docker: engine.session_is_alive(docker, box), engine.PROBE_S)


def _read_boxes(folders: dict[str, str]) -> dict[str, Box]:
    boxes = {session_id: read_box(folder) for session_id, folder in folders.items()}
    return {session_id: box for session_id, box in boxes.items() if box is not None}
