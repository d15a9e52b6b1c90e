"""What is due as time passes: idle processes are reaped, old records deleted. The model's policy decides.

The wall clock decides nothing by itself: silence, pauses and looks are measured by clocks that nobody can turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from hitchpost.errors import HitchpostError
from hitchpost.hub.core import Hub
from hitchpost.hub.registry import Tracked
from hitchpost.model import run as runs
from hitchpost.model.facts import Facts
from hitchpost.model.policy import ON_FAILURE, RestartPolicy, Retention, delete_at, reap_due, restart_decision
from hitchpost.model.record import ACTIVE, RECORD_TRANSITIONS, SUSPENDED
from hitchpost.ops.sessions.retention import prune_when_sure
from hitchpost.settings import Settings
from hitchpost.store.home import session_folder
from hitchpost.store.session import Session

ACTOR = "hub"
PRUNE_EVERY_S = FORGOTTEN_AFTER_S = 3600.0
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Clocks:
    """``wall`` can be turned. ``awake_s`` stands still while the machine sleeps, as agents do; ``boot_s`` does not."""

    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    awake_s: Callable[[], float] = time.monotonic
    boot_s: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)


class Janitor:
    def __init__(
        self, hub: Hub, settings: Settings, clocks: Clocks | None = None, prune_every_s: float = PRUNE_EVERY_S
    ) -> None:
        self.hub, self.settings = hub, settings
        self.clocks, self.prune_every_s = clocks or Clocks(), prune_every_s
        self._tasks: list[asyncio.Task[None]] = []
        self._restarts: dict[str, list[float]] = {}
        self._silent: dict[str, tuple[object, float]] = {}
        self._leave: Callable[[], None] = lambda: None

    def start(self) -> None:
        self._repeat("deleting old records", self.prune, self.prune_every_s)
        if self.settings.reap_idle_minutes > 0:
            self._repeat("ending idle processes", self.reap, self.settings.reap_every_minutes * 60)
        if self.settings.restart == ON_FAILURE:
            self._leave = self.hub.registry.subscribe(self._heard)

    async def shut_down(self) -> None:
        """End the jobs; and, where the settings say so, the sessions too, with their records suspended."""
        self._leave()
        for task in self._tasks:
            task.cancel()
        if self.settings.on_shutdown == "suspend":
            active = [one for one in self.hub.registry.sessions.values() if one.line and one.row["record"] == ACTIVE]
            active.sort(key=lambda one: not one.lives)  # processes first: they take longest, and matter most
            await asyncio.gather(*map(self._suspend, active))

    def _repeat(self, name: str, job: Callable[[], Awaitable[object]], every_s: float) -> None:
        """Do a job now and then for ever: what fails today may work tomorrow, and nothing else would try again."""

        async def repeat() -> None:
            while True:
                try:
                    await job()
                    self.hub.failing.pop(name, None)
                except Exception as error:
                    self.hub.failing[name] = f"{type(error).__name__}: {error}"
                    log.error("a regular job failed", job=name, error=repr(error))
                await asyncio.sleep(every_s)

        self._tasks.append(asyncio.create_task(repeat()))

    async def _suspend(self, one: Tracked) -> None:
        try:
            if one.lives and one.seen is not None and one.seen.facts.state != runs.CREATED:
                await self.hub.stop(one.id, actor=ACTOR, by=runs.SHUTDOWN, reason="the hub shuts down")
            await self.hub.do(_suspend_record, session_folder(self.hub.home, one.id))
        except (HitchpostError, OSError) as error:
            log.warning("not suspended", session_id=one.id, error=str(error))

    def _heard(self, event: dict[str, Any]) -> None:
        """A run has ended. Where the settings allow it, a crashed one starts again, with the policy's patience."""
        one = self.hub.registry.sessions.get(event["sessionId"])
        if event["type"] != "terminal.exit" or one is None or one.seen is None:
            return
        now_s = self.clocks.awake_s()
        before = [at_s for at_s in self._restarts.get(one.id, []) if now_s - at_s < FORGOTTEN_AFTER_S]
        self._restarts[one.id] = before
        decision = restart_decision(RestartPolicy(ON_FAILURE), one.seen.facts, before, now_s)
        log.info("restart decided", session_id=one.id, delay_s=decision.delay_s, why=decision.why)
        if decision.delay_s is not None:
            task = asyncio.create_task(self._restart(one.id, one.seen.facts.run, decision.delay_s))
            self._tasks.append(task)
            task.add_done_callback(self._tasks.remove)

    async def _restart(self, session: str, run: int, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        one = self.hub.registry.sessions.get(session)
        if one is None or one.seen is None or one.seen.facts.run != run:
            return  # somebody was faster
        self._restarts.setdefault(session, []).append(self.clocks.awake_s())
        try:
            await self.hub.resume(session, actor=ACTOR)
        except (HitchpostError, OSError) as error:
            log.warning("not restarted", session_id=session, error=str(error))

    async def reap(self) -> list[str]:
        """End the processes that have been idle for too long; their records stay active."""
        idle_for_s = self.settings.reap_idle_minutes * 60
        living = [one for one in self.hub.registry.sessions.values() if one.lives]
        self._silent = {one.id: self._silent[one.id] for one in living if one.id in self._silent}
        reaped = []
        for one in living:
            await self.hub.registry.look_at(one.id)
            if one.seen is None or not reap_due(one.seen.facts, self._silent_s(one.id, one.seen.facts), idle_for_s):
                continue
            run = one.seen.facts.run
            try:
                await self.hub.stop(one.id, actor=ACTOR, run=run, by=runs.REAPER, reason="idle for too long")
            except (HitchpostError, OSError) as error:
                log.warning("not reaped", session_id=one.id, error=str(error))
                continue
            log.info("reaped", session_id=one.id)
            reaped.append(one.id)
        return reaped

    def _silent_s(self, session: str, facts: Facts) -> float:
        """For how long nothing has been heard of a session, as far as this hub has listened."""
        heard, now_s = (facts.run, facts.last_activity_at, facts.report), self.clocks.awake_s()
        before, since_s = self._silent.get(session, (None, 0.0))
        if heard != before:
            self._silent[session] = (heard, now_s)
            return 0.0
        return now_s - since_s

    def _deletable(self) -> list[str]:
        """What the policy may ever delete, by its record: the thousands of others need no look."""
        now, policy = self.clocks.wall(), Retention()
        words = [word for word in RECORD_TRANSITIONS if delete_at(policy, Facts(created_at=now, record=word), now)]
        return [one.id for one in self.hub.registry.sessions.values() if one.line and one.row["record"] in words]

    async def prune(self) -> None:
        """Delete the records that were due at looks that lie far enough apart."""
        now, at_s = self.clocks.wall(), self.clocks.boot_s()
        done = await self.hub.do(prune_when_sure, self.hub.home, now, at_s, actor=ACTOR, among=self._deletable())
        for decision in done:
            if decision.delete:
                log.info("pruned", session_id=decision.session, why=decision.why)
                await self.hub.registry.look_at(decision.session)


def _suspend_record(folder: str) -> None:
    stored = Session(folder, actor=ACTOR)
    with stored.lock():
        stored.change_record(SUSPENDED, run=stored.read().run, reason="the hub shuts down")
