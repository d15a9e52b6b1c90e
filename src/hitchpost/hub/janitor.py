"""What is due as time passes: idle processes are reaped, old records deleted. The model's policy decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from hitchpost.errors import HitchpostError
from hitchpost.hub.core import Hub
from hitchpost.hub.registry import Tracked
from hitchpost.model import run as runs
from hitchpost.model.facts import Facts
from hitchpost.model.policy import ON_FAILURE, RestartPolicy, Retention, delete_at, reap_due, restart_decision
from hitchpost.model.record import ACTIVE, RECORD_TRANSITIONS, SUSPENDED
from hitchpost.ops.prune import prune
from hitchpost.settings import Settings
from hitchpost.state import files, records

ACTOR = "hub"
DAY_S = 24 * 3600.0
FORGOTTEN_AFTER = timedelta(hours=1)
log = structlog.get_logger()


class Janitor:
    def __init__(self, hub: Hub, settings: Settings) -> None:
        self.hub, self.settings = hub, settings
        self._tasks: list[asyncio.Task[None]] = []
        self._restarts: dict[str, list[datetime]] = {}
        self._leave: Callable[[], None] = lambda: None

    def start(self) -> None:
        if self.settings.reap_idle_minutes > 0:
            self._tasks.append(asyncio.create_task(self._reap_now_and_then()))
        self._tasks.append(asyncio.create_task(self._prune_daily()))
        if self.settings.restart == ON_FAILURE:
            self._leave = self.hub.registry.subscribe(self._heard)

    async def shut_down(self) -> None:
        """End the jobs; and, where the settings say so, the sessions too, with their records suspended."""
        self._leave()
        for task in self._tasks:
            task.cancel()
        if self.settings.on_shutdown == "suspend":
            await asyncio.gather(*(self._suspend(one) for one in self.hub.registry.sessions.values()))

    async def _suspend(self, one: Tracked) -> None:
        seen = one.seen
        if seen is None or seen.record.record != ACTIVE or seen.facts.state not in runs.LIVE:
            return
        try:
            await self.hub.stop(one.id, actor=ACTOR, by=runs.SHUTDOWN, reason="the hub shuts down")
            await self.hub.do(_suspend_record, seen.folder, seen.facts.run)
        except (HitchpostError, OSError) as error:
            log.warning("not suspended", session_id=one.id, error=str(error))

    def _heard(self, event: dict[str, Any]) -> None:
        """A run has ended. Where the settings allow it, a crashed one starts again, with the policy's patience."""
        one = self.hub.registry.sessions.get(event["sessionId"])
        if event["type"] != "terminal.exit" or one is None or one.seen is None:
            return
        now = datetime.now(UTC)
        before = [at for at in self._restarts.get(one.id, []) if now - at < FORGOTTEN_AFTER]
        self._restarts[one.id] = before
        decision = restart_decision(RestartPolicy(ON_FAILURE), one.seen.facts, before, now)
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
        self._restarts.setdefault(session, []).append(datetime.now(UTC))
        try:
            await self.hub.resume(session, actor=ACTOR)
        except (HitchpostError, OSError) as error:
            log.warning("not restarted", session_id=session, error=str(error))

    async def _reap_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self.settings.reap_every_minutes * 60)
            await self.reap(datetime.now(UTC))

    async def reap(self, now: datetime) -> list[str]:
        """End the processes that have been idle for too long; their records stay active."""
        idle_for = timedelta(minutes=self.settings.reap_idle_minutes)
        reaped = []
        for one in [one for one in self.hub.registry.sessions.values() if one.lives]:
            await self.hub.registry.look_at(one.id)
            if one.seen is None or not reap_due(one.seen.facts, now, idle_for):
                continue
            try:
                await self.hub.stop(one.id, actor=ACTOR, by=runs.REAPER, reason="idle for too long")
            except (HitchpostError, OSError) as error:
                log.warning("not reaped", session_id=one.id, error=str(error))
                continue
            log.info("reaped", session_id=one.id)
            reaped.append(one.id)
        return reaped

    def _deletable(self) -> list[str]:
        """What the policy may ever delete, by its record: the thousands of others need no look."""
        now, policy = datetime.now(UTC), Retention()
        words = [word for word in RECORD_TRANSITIONS if delete_at(policy, Facts(created_at=now, record=word), now)]
        return [one.id for one in self.hub.registry.sessions.values() if one.line and one.row["record"] in words]

    async def _prune_daily(self) -> None:
        while True:
            done = await self.hub.do(
                prune, self.hub.home, datetime.now(UTC), actor=ACTOR, dry_run=False, among=self._deletable()
            )
            for decision in done:
                if decision.delete:
                    log.info("pruned", session_id=decision.session, why=decision.why)
                    await self.hub.registry.look_at(decision.session)
            await asyncio.sleep(DAY_S)


def _suspend_record(folder: str, run: int) -> None:
    with files.SessionLock(folder):
        records.change_record(folder, SUSPENDED, run=run, actor=ACTOR, reason="the hub shuts down")
