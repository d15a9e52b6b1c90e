"""What is due as time passes: idle processes are reaped, old records deleted. The model's policy decides."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import structlog

from hitchpost.errors import HitchpostError
from hitchpost.hub.core import Hub
from hitchpost.hub.registry import Tracked
from hitchpost.model import run as runs
from hitchpost.model.policy import reap_due
from hitchpost.model.record import ACTIVE, SUSPENDED
from hitchpost.ops.prune import prune
from hitchpost.settings import Settings
from hitchpost.state import files, records

DAY_S = 24 * 3600.0
log = structlog.get_logger()


class Janitor:
    def __init__(self, hub: Hub, settings: Settings) -> None:
        self.hub, self.settings = hub, settings
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        if self.settings.reap_idle_minutes > 0:
            self._tasks.append(asyncio.create_task(self._reap_now_and_then()))
        self._tasks.append(asyncio.create_task(self._prune_daily()))

    async def shut_down(self) -> None:
        """End the jobs; and, where the settings say so, the sessions too, with their records suspended."""
        for task in self._tasks:
            task.cancel()
        if self.settings.on_shutdown == "suspend":
            await asyncio.gather(*(self._suspend(one) for one in self.hub.registry.sessions.values()))

    async def _suspend(self, one: Tracked) -> None:
        seen = one.seen
        if seen is None or seen.record.record != ACTIVE or seen.facts.state not in runs.LIVE:
            return
        try:
            await self.hub.stop(one.id, by=runs.SHUTDOWN, reason="the hub shuts down")
            await self.hub.do(_suspend_record, seen.folder, seen.facts.run)
        except (HitchpostError, OSError, files.LockTimeout) as error:
            log.warning("not suspended", session_id=one.id, error=str(error))

    async def _reap_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self.settings.reap_every_minutes * 60)
            await self.reap(datetime.now(UTC))

    async def reap(self, now: datetime) -> list[str]:
        """End the processes that have been idle for too long; their records stay active."""
        idle_for = timedelta(minutes=self.settings.reap_idle_minutes)
        reaped = []
        for one in list(self.hub.registry.sessions.values()):
            await self.hub.registry.look_at(one.id)
            if one.seen is None or not reap_due(one.seen.facts, now, idle_for):
                continue
            try:
                await self.hub.stop(one.id, by=runs.REAPER, reason="idle for too long")
            except (HitchpostError, OSError, files.LockTimeout) as error:
                log.warning("not reaped", session_id=one.id, error=str(error))
                continue
            log.info("reaped", session_id=one.id)
            reaped.append(one.id)
        return reaped

    async def _prune_daily(self) -> None:
        while True:
            done = await self.hub.do(prune, self.hub.home, datetime.now(UTC), dry_run=False)
            for decision in done:
                if decision.delete:
                    log.info("pruned", session_id=decision.session, why=decision.why)
                    await self.hub.registry.look_at(decision.session)
            await asyncio.sleep(DAY_S)


def _suspend_record(folder: str, run: int) -> None:
    with files.SessionLock(folder):
        records.change_record(folder, SUSPENDED, run=run, actor="hub", reason="the hub shuts down")
