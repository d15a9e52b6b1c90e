"""Words of two of the seed documents, as projections of the same facts: nothing in the product says them."""

from __future__ import annotations

from datetime import datetime

from hitchpost.model import record, run
from hitchpost.model.durations import duration, seconds_between
from hitchpost.model.facts import Facts
from hitchpost.model.status import IDLE, QUIET, WORKING, as_told, attention, interrupted, sandbox_gone
from hitchpost.values import replace


def adr22(facts: Facts, now: datetime) -> str:
    """Working, idle, completed or failed; empty where it has none."""
    facts = replace(as_told(facts), probe_failed=False)
    if facts.record == record.ARCHIVED:
        return ""
    if facts.state == run.RUNNING and not facts.sandbox_paused:
        return IDLE if attention(facts, now) in QUIET else WORKING
    unseen = facts.exit is None or (facts.exit.code is None and facts.exit.signal is None)
    if unseen and sandbox_gone(facts) and not interrupted(facts):
        return ""
    return facts.state if facts.state in (run.COMPLETED, run.FAILED) else ""


def adr31(facts: Facts, now: datetime) -> str:
    """The state with its idle attribute: ``running (idle 2m 15s)``."""
    facts = as_told(facts)
    if facts.state != run.RUNNING:
        return facts.state
    if facts.sandbox_paused:
        return "running (paused)"
    idle_s = seconds_between(facts.last_activity_at or facts.started_at, now)
    return f"running (idle {duration(idle_s)})" if idle_s >= facts.idle_after_s else run.RUNNING
