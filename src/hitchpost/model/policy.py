"""What is due as time passes: restarts after a crash, idle processes, old records. Decisions only; others act.

Seconds are those of a clock that nobody can turn: what is ended or deleted does not depend on the wall clock alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from hitchpost.model import record, run
from hitchpost.model.facts import Facts
from hitchpost.model.limits import goes_on_at
from hitchpost.model.status import as_told
from hitchpost.values import value

NEVER, ON_FAILURE = "never", "on-failure"
DAY_S = 24 * 3600.0
NOTHING: Mapping[str, float] = {}


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


def restart_decision(policy: RestartPolicy, facts: Facts, restarts: Sequence[float], now_s: float) -> RestartDecision:
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
    recent = [at_s for at_s in restarts if now_s - at_s < policy.window_s]
    over = len(restarts) - policy.burst
    if len(recent) < policy.burst and (over < 0 or not recent):
        return RestartDecision(0.0, f"restart {len(recent) + 1} of {policy.burst} in {policy.window_s:g} s")
    full = 0 < policy.burst <= len(recent)
    until_room_s = policy.window_s - (now_s - recent[-policy.burst]) if full else 0.0
    growing_s = min(policy.first_delay_s * 2 ** min(over, 64), policy.longest_delay_s)
    delay_s = max(growing_s, until_room_s)
    return RestartDecision(delay_s, f"{len(restarts)} restarts and failed again, so the next waits {delay_s:g} s")


@value
class Retention:
    """How long records are kept. A record goes when it was due for ``sure_after_s``, and not too many go in a day."""

    suspended: timedelta = timedelta(days=7)
    resumable: timedelta = timedelta(days=30)
    error: timedelta = timedelta(hours=24)
    sure_after_s: float = DAY_S
    most_per_day: int = 20


def delete_at(retention: Retention, facts: Facts, last_active_at: datetime) -> datetime | None:
    """When the record may be deleted; None for never. Archived records stay until a person deletes them."""
    if facts.record == record.SUSPENDED:
        return last_active_at + (retention.resumable if facts.supports_resume else retention.suspended)
    if facts.record == record.ERROR:
        return last_active_at + retention.error
    return None


@value
class Watched:
    """What retention has seen so far: for how many seconds each record has been due, and how long ago some went.

    ``at_s`` is when it looked last, in seconds since the boot ``boot_id``.
    """

    boot_id: str = ""
    at_s: float = 0.0
    due_s: Mapping[str, float] = NOTHING
    deleted_s: tuple[float, ...] = ()


def confirm(
    retention: Retention, watched: Watched, due: Iterable[str], boot_id: str, at_s: float
) -> tuple[Watched, list[str]]:
    """Another look at the records that are ``due`` by the calendar: what has been seen now, and which may go.

    The wall clock may be wrong, so a record has to be due for long enough by the clock of the boot. Between two boots
    nobody knows how much time has passed: none.
    """
    passed_s = max(0.0, at_s - watched.at_s) if boot_id == watched.boot_id else 0.0
    due_s = {session: watched.due_s[session] + passed_s if session in watched.due_s else 0.0 for session in due}
    deleted_s = tuple(ago_s + passed_s for ago_s in watched.deleted_s if ago_s + passed_s < DAY_S)
    sure = sorted(
        (session for session in due_s if due_s[session] >= retention.sure_after_s), key=lambda session: -due_s[session]
    )
    going = sure[: max(0, retention.most_per_day - len(deleted_s))]
    return Watched(boot_id, at_s, due_s, (*deleted_s, *(0.0 for _ in going))), going


def reap_due(facts: Facts, silent_s: float, idle_for_s: float) -> bool:
    """Whether the process has been silent long enough to be ended. The record stays active."""
    if facts.state != run.RUNNING or facts.keeper_alive is not True:
        return False
    if facts.report is not None and facts.report.state in ("working", "blocked"):
        return False
    if goes_on_at(facts) is not None:
        return False
    return silent_s >= idle_for_s
