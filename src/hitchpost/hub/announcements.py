"""What changed between two looks at a session, as events."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import structlog

from hitchpost.hub.events import Event, Events
from hitchpost.hub.session import HubSession
from hitchpost.model import run as runs
from hitchpost.model.compat import event_reason, event_status
from hitchpost.model.facts import Facts
from hitchpost.model.status import never_ran, settle
from hitchpost.ops.views.observe import Observation

log = structlog.get_logger()


class Announcements:
    """``ended`` counts the runs whose end was announced, by their state."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self.ended: Counter[str] = Counter()

    def update(self, session: HubSession, observation: Observation, *, quiet: bool = False) -> None:
        """Update the session and announce what is new. ``quiet`` announces nothing: the hub has just started."""
        now = datetime.now(UTC)
        before, old_shape = session.latest, session.shape
        is_known = bool(session.text)
        session.update(observation, now)
        status = event_status(observation.facts, now)
        facts = settle(observation.facts)
        old_status, announced_run = session.announced_status, session.announced_run
        begun = facts.state not in (runs.CREATED, runs.STARTING)  # until then nobody knows what becomes of the run
        if begun:
            session.announced_status, session.announced_run = status, facts.run
        if quiet:
            return
        if not is_known:
            self._publish("session.created", session.id, session=session.shape)
        if before is not None:
            old_run, old_state = before.facts.run, settle(before.facts).state
        else:
            old_run, old_state = old_shape.get("run", 0), old_shape.get("state", "")
            old_status = status if old_shape.get("status") == session.shape["status"] else old_status
            announced_run = old_run
        ended = facts.state in runs.TERMINAL and (old_run != facts.run or old_state not in runs.TERMINAL)
        if ended and facts.state != runs.ORPHANED:
            self._exit(session, facts)
        if begun and (status != old_status or (is_known and announced_run != facts.run)):
            reason = {"reason": event_reason(observation.facts)} if status == "error" else {}
            self._publish("session.status", session.id, status=status, session=session.shape, **reason)
        elif is_known and old_shape != session.shape:
            self._publish("session.updated", session.id, session=session.shape)

    def removed(self, session: HubSession) -> None:
        if session.line:
            self._publish("session.removed", session.id, session=session.shape)

    def reworded(self, session: HubSession) -> None:
        """Nothing has happened but that time has passed, or output has come."""
        self._publish("session.updated", session.id, session=session.shape)

    def resized(self, session: HubSession, cols: int, rows: int) -> None:
        self._publish("terminal.size", session.id, cols=cols, rows=rows)

    def _exit(self, session: HubSession, facts: Facts) -> None:
        end = facts.exit
        self.ended[facts.state] += 1
        if never_ran(facts):
            log.error(f"cannot start {session.id}", session_id=session.id, reason=session.shape["label"])
            return
        code = None if end is None else end.shell_code
        signal = None if end is None else end.signal
        if facts.state == runs.FAILED:
            log.error(
                f"PTY crashed for {session.id}: exitCode={code}, signal={signal}",
                session_id=session.id,
                last_activity=session.shape["last_activity_at"],
                reason=session.shape["label"],
            )
        by_signal = {} if end is None or signal is None else {"signal": signal, "signalNumber": end.signal_number}
        self._publish("terminal.exit", session.id, exitCode=code, run=facts.run, **by_signal)

    def _publish(self, kind: str, session_id: str, **fields: object) -> None:
        event: Event = {"type": kind, "sessionId": session_id, **fields}
        self._events.publish(event)
