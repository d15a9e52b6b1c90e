"""Starting crashed sessions again, where the settings allow it and as patiently as the model's policy wants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from hitchpost.errors import FAILURES
from hitchpost.hub.core import ACTOR, Hub
from hitchpost.hub.events import Event
from hitchpost.hub.tasks import Tasks
from hitchpost.model.policy import ON_FAILURE, RestartPolicy, restart_decision

FORGOTTEN_AFTER_S = 3600.0
log = structlog.get_logger()


class Restarts:
    """``awake_s`` is a clock that stands still while the machine sleeps, as agents do."""

    def __init__(self, hub: Hub, awake_s: Callable[[], float]) -> None:
        self.hub, self.awake_s = hub, awake_s
        self._tasks = Tasks("restarts")
        self._restarted_s: dict[str, list[float]] = {}
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        self._unsubscribe = self.hub.registry.events.subscribe(self._on_event)

    async def close(self) -> None:
        self._unsubscribe()
        await self._tasks.close()

    def _on_event(self, event: Event) -> None:
        session = self.hub.registry.by_id.get(event["sessionId"])
        if event["type"] != "terminal.exit" or session is None or session.latest is None:
            return
        facts, now_s = session.latest.facts, self.awake_s()
        before_s = [at_s for at_s in self._restarted_s.get(session.id, []) if now_s - at_s < FORGOTTEN_AFTER_S]
        self._restarted_s[session.id] = before_s
        decision = restart_decision(RestartPolicy(ON_FAILURE), facts, before_s, now_s)
        log.info("restart decided", session_id=session.id, delay_s=decision.delay_s, why=decision.why)
        if decision.delay_s is not None:
            self._tasks.start(self._restart(session.id, facts.run, decision.delay_s))

    async def _restart(self, session_id: str, run: int, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        session = self.hub.registry.by_id.get(session_id)
        if session is None or session.latest is None or session.latest.facts.run != run:
            return  # somebody was faster
        self._restarted_s.setdefault(session_id, []).append(self.awake_s())
        try:
            await self.hub.resume(session_id, actor=ACTOR)
        except FAILURES as error:
            log.warning("not restarted", session_id=session_id, error=str(error))
