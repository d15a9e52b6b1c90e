"""What is due as time passes: idle processes are ended, old records deleted. The model's policy decides.

The wall clock decides nothing by itself: silence, pauses and looks are measured by clocks that nobody can turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from hitchpost.errors import FAILURES
from hitchpost.hub.core import ACTOR, Hub
from hitchpost.hub.reboots import look_at_boot
from hitchpost.hub.restarts import Restarts
from hitchpost.hub.session import HubSession
from hitchpost.hub.tasks import Tasks
from hitchpost.model import run as runs
from hitchpost.model.facts import Facts
from hitchpost.model.limits import NOT_YET, Wait, due, went_on
from hitchpost.model.policy import ON_FAILURE, Retention, delete_at, reap_due
from hitchpost.model.record import ACTIVE, RECORD_TRANSITIONS, SUSPENDED
from hitchpost.ops.sessions.retention import prune_when_sure
from hitchpost.settings import Settings
from hitchpost.store.home import session_folder
from hitchpost.store.session import Session

PRUNE_EVERY_S = 3600.0
LIMITS_EVERY_S = 2.0
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
        self._tasks = Tasks("janitor")
        self._restarts = Restarts(hub, self.clocks.awake_s)
        self._silent_since: dict[str, tuple[object, float]] = {}
        self._waits: dict[str, Wait] = {}

    def start(self) -> None:
        self._repeat("deleting old records", self.prune, self.prune_every_s)
        if self.settings.reap_idle_minutes > 0:
            self._repeat("ending idle processes", self.reap, self.settings.reap_every_minutes * 60)
        self._repeat("going on after usage limits", self.go_on, LIMITS_EVERY_S)
        if self.settings.restart == ON_FAILURE:
            self._restarts.start()
        if self.hub.replica is None:  # the boots of one machine say nothing about a fleet's sessions
            self._tasks.start(look_at_boot(self.hub, resume=self.settings.resume_after_reboot))

    async def close(self) -> None:
        """End the jobs."""
        await self._restarts.close()
        await self._tasks.close()

    async def shut_down(self) -> None:
        """End the jobs; and, where the settings say so, the sessions too, with their records suspended.

        Those of a fleet go on: it has other hubs.
        """
        await self.close()
        if self.settings.on_shutdown == "suspend" and self.hub.replica is None:
            sessions = [session for session in self.hub.registry.by_id.values() if session.line]
            active = [session for session in sessions if session.index_row["record"] == ACTIVE]
            active.sort(key=lambda session: not session.lives)  # processes first: they take longest, and matter most
            await asyncio.gather(*map(self._suspend, active))

    def _repeat(self, name: str, job: Callable[[], Awaitable[object]], every_s: float) -> None:
        """Do a job now and then for ever. An error is reported as a problem, and the job is tried again."""

        async def repeat() -> None:
            while True:
                try:
                    await job()
                    self.hub.failing.pop(name, None)
                except Exception as error:
                    self.hub.failing[name] = f"{type(error).__name__}: {error}"
                    log.error("a regular job failed", job=name, error=repr(error))
                await asyncio.sleep(every_s)

        self._tasks.start(repeat())

    async def _suspend(self, session: HubSession) -> None:
        try:
            if session.lives and session.latest is not None and session.latest.facts.state != runs.CREATED:
                await self.hub.stop(session.id, actor=ACTOR, by=runs.SHUTDOWN, reason="the hub shuts down")
            await self.hub.do(_suspend_record, session_folder(self.hub.home, session.id))
        except FAILURES as error:
            log.warning("not suspended", session_id=session.id, error=str(error))

    async def reap(self) -> list[str]:
        """End the processes that have been idle for too long; their records stay active. Returns their sessions."""
        idle_for_s = self.settings.reap_idle_minutes * 60
        live = [session for session in self.hub.registry.by_id.values() if session.lives]
        before = self._silent_since
        self._silent_since = {session.id: before[session.id] for session in live if session.id in before}
        reaped = []
        for session in live:
            await self.hub.registry.look_at(session.id)
            if session.latest is None:
                continue
            facts = session.latest.facts
            if not reap_due(facts, self._silent_s(session.id, facts), idle_for_s):
                continue
            try:
                await self.hub.stop(session.id, actor=ACTOR, run=facts.run, by=runs.REAPER, reason="idle for too long")
            except FAILURES as error:
                log.warning("not reaped", session_id=session.id, error=str(error))
                continue
            log.info("reaped", session_id=session.id)
            reaped.append(session.id)
        return reaped

    async def go_on(self) -> None:
        """Let the sessions go on whose usage limit has ended, where somebody wants that. Nothing but memory is read."""
        live = [session for session in self.hub.registry.by_id.values() if session.lives]
        facts = {session.id: session.latest.facts for session in live if session.latest is not None}
        self._waits, going = due(self._waits, facts, self.clocks.wall(), self.clocks.boot_s())
        for session_id in going:
            self._tasks.start(self._go_on(session_id))

    async def _go_on(self, session_id: str) -> None:
        try:
            if await self.hub.go_on(session_id, actor=ACTOR):
                wait = self._waits.get(session_id, NOT_YET)
                self._waits[session_id] = went_on(wait, self.clocks.boot_s())
                log.info("went on after a usage limit", session_id=session_id)
        except FAILURES as error:
            log.warning("not gone on", session_id=session_id, error=str(error))

    def _silent_s(self, session_id: str, facts: Facts) -> float:
        """For how long nothing has been heard of a session, as far as this hub has listened."""
        activity, now_s = (facts.run, facts.last_activity_at, facts.report), self.clocks.awake_s()
        before, since_s = self._silent_since.get(session_id, (None, 0.0))
        if activity != before:
            self._silent_since[session_id] = (activity, now_s)
            return 0.0
        return now_s - since_s

    def _deletable(self) -> list[str]:
        """What the policy may ever delete, by its record: the thousands of others need no look."""
        now, policy = self.clocks.wall(), Retention()
        words = [word for word in RECORD_TRANSITIONS if delete_at(policy, Facts(created_at=now, record=word), now)]
        sessions = [session for session in self.hub.registry.by_id.values() if session.line]
        return [session.id for session in sessions if session.index_row["record"] in words]

    async def prune(self) -> None:
        """Delete the records that were due at looks that lie far enough apart."""
        now, at_s = self.clocks.wall(), self.clocks.boot_s()
        done = await self.hub.do(prune_when_sure, self.hub.home, now, at_s, actor=ACTOR, among=self._deletable())
        await self.hub.tidy()
        for decision in done:
            if decision.delete:
                log.info("pruned", session_id=decision.session, why=decision.why)
                await self.hub.registry.look_at(decision.session)


def _suspend_record(folder: str) -> None:
    stored = Session(folder, actor=ACTOR)
    with stored.lock():
        if stored.record().record == ACTIVE:
            stored.change_record(SUSPENDED, run=stored.read().run, reason="the hub shuts down")
