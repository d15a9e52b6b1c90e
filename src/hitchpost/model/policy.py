"""What is due as time passes: restarts after a crash, idle processes, old records. Decisions only; others act."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from hitchpost.model import record, run
from hitchpost.model.durations import seconds_between
from hitchpost.model.facts import Facts
from hitchpost.model.status import as_told
from hitchpost.values import value

NEVER, ON_FAILURE = "never", "on-failure"


@value
class RestartPolicy:
    """Opt-in. Never more than ``burst`` restarts in ``window_s``.

    The first follow at once, later ones wait longer each time, and after ``attempts`` nobody tries again.
    """

    mode: str = NEVER
    burst: int = 5
    window_s: float = 10.0
    first_delay_s: float = 10.0
    longest_delay_s: float = 60.0
    attempts: int = 10


@value
class RestartDecision:
    """``delay_s`` is None when no restart is due."""

    delay_s: float | None
    why: str


def restart_decision(
    policy: RestartPolicy, facts: Facts, restarts: Sequence[datetime], now: datetime
) -> RestartDecision:
    """Whether the session starts again by itself. ``restarts``: when it did so before, oldest first."""
    if policy.mode != ON_FAILURE:
        return RestartDecision(None, "restart is off")
    state = as_told(facts).state
    if state != run.FAILED:
        return RestartDecision(None, f"the run is {state}, not failed")
    if facts.record != record.ACTIVE:
        return RestartDecision(None, f"the record is {facts.record}")
    if len(restarts) >= policy.attempts:
        return RestartDecision(None, f"restarted {len(restarts)} times and failed again")
    recent = [moment for moment in restarts if seconds_between(moment, now) < policy.window_s]
    over = len(restarts) - policy.burst
    if len(recent) < policy.burst and (over < 0 or not recent):
        return RestartDecision(0.0, f"restart {len(recent) + 1} of {policy.burst} in {policy.window_s:g} s")
    full = 0 < policy.burst <= len(recent)
    until_room_s = policy.window_s - seconds_between(recent[-policy.burst], now) if full else 0.0
    growing_s = min(policy.first_delay_s * 2 ** min(over, 64), policy.longest_delay_s)
    delay_s = max(growing_s, until_room_s)
    return RestartDecision(delay_s, f"{len(restarts)} restarts and failed again, so the next waits {delay_s:g} s")


@value
class Retention:
    suspended: timedelta = timedelta(days=7)
    resumable: timedelta = timedelta(days=30)
    error: timedelta = timedelta(hours=24)


def delete_at(retention: Retention, facts: Facts, last_active_at: datetime) -> datetime | None:
    """When the record may be deleted; None for never. Archived records stay until a person deletes them."""
    if facts.record == record.SUSPENDED:
        return last_active_at + (retention.resumable if facts.supports_resume else retention.suspended)
    if facts.record == record.ERROR:
        return last_active_at + retention.error
    return None


def reap_due(facts: Facts, now: datetime, idle_for: timedelta) -> bool:
    """Whether the process has been idle long enough to be ended. The record stays active."""
    if facts.state != run.RUNNING or facts.keeper_alive is not True:
        return False
    if facts.report is not None and facts.report.state in ("working", "blocked"):
        return False
    return seconds_between(facts.last_activity_at or facts.started_at, now) >= idle_for.total_seconds()
