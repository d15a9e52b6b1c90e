"""Usage limits: whether the hub lets a session go on when one has ended, and when that is due. Decisions only."""

from __future__ import annotations

from hitchpost.model import record, run
from hitchpost.model.attention import ERROR, LIMIT
from hitchpost.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from hitchpost.model.facts import Facts

STOP, WAIT = "stop", "wait"
WHEN_LIMIT = (STOP, WAIT)
AGAIN_S = 120.0
"""One that should have gone on and is still where it was is tried again after this time, twice as long each time."""
LATE_AFTER_S = 300.0
"""One that has not gone on so long after the end of its limit needs somebody: perhaps no hub is running."""
TELLING_S = 120.0
"""So long a hub may take to tell an agent to go on. Then it is not known whether it has: it may have died meanwhile."""
FIRST_PAUSE_S, LONGEST_PAUSE_S, FORGOTTEN_AFTER_S = 60.0, 3600.0, 6 * 3600.0
"""Limits that follow each other are waited out at least so long, twice as long each time. The longest is for both."""


def at_limit(facts: Facts) -> bool:
    """Whether the agent sits at its prompt because of a usage limit. One that is blocked by it tries again itself."""
    report = facts.report
    running = facts.state == run.RUNNING and facts.keeper_alive is not False and facts.record == record.ACTIVE
    return running and report is not None and report.state == ERROR and report.kind == LIMIT


def goes_on_at(facts: Facts) -> datetime | None:
    """When a hub that is running lets the session go on; None when it does not."""
    report = facts.report
    if report is None or facts.when_limit != WAIT or not at_limit(facts) or facts.gone_on_from == report.at:
        return None
    return report.ends_at


def is_late(facts: Facts, now: datetime) -> bool:
    """Whether the session should have gone on some minutes ago, and has not."""
    ends_at = goes_on_at(facts)
    return ends_at is not None and (now - ends_at).total_seconds() > LATE_AFTER_S


def is_told_now(facts: Facts, now: datetime) -> bool:
    """Whether a hub is telling the agent to go on at this moment."""
    set_about = facts.gone_on_at
    return _is_in_doubt(facts) and set_about is not None and (now - set_about).total_seconds() <= TELLING_S


def left_s(facts: Facts, now: datetime) -> list[float]:
    """How long ``is_late`` and ``is_told_now`` say the same; less than 0.0 where they always will from now on."""
    ends_at, set_about = goes_on_at(facts), facts.gone_on_at
    late = [] if ends_at is None else [LATE_AFTER_S - (now - ends_at).total_seconds()]
    return late if set_about is None else [*late, TELLING_S - (now - set_about).total_seconds()]


def is_not_known(facts: Facts, now: datetime) -> bool:
    """Whether a hub set about telling the agent to go on, and nobody knows whether it did. It does not try again: the
    agent would go on twice. Somebody has to look."""
    return _is_in_doubt(facts) and not is_told_now(facts, now)


def _is_in_doubt(facts: Facts) -> bool:
    report = facts.report
    return report is not None and at_limit(facts) and facts.gone_on_from == report.at and not facts.gone_on_known


@value
class Wait:
    """A session that waits for the end of a limit, or has. ``limit`` is its run and when the limit was told.

    ``due_s`` and ``gone_on_s``, when it has gone on, are seconds of a clock that nobody can turn. ``tries`` counts how
    often it should have gone on from this limit.
    """

    limit: tuple[int, datetime] | None = None
    due_s: float = 0.0
    tries: int = 0
    gone_on_s: tuple[float, ...] = ()


NOT_YET = Wait()


def due(
    waits: Mapping[str, Wait], sessions: Mapping[str, Facts], now: datetime, at_s: float
) -> tuple[dict[str, Wait], list[str]]:
    """Another look at all sessions that run: who waits, and who goes on now. ``went_on`` is for who has.

    The calendar says how long a limit lasts when it is first seen; from then on only the clock of the boot counts.
    """
    found: dict[str, Wait] = {}
    going = []
    for session, facts in sessions.items():
        wait = waits.get(session, NOT_YET)
        gone_on_s = tuple(then_s for then_s in wait.gone_on_s if at_s - then_s < FORGOTTEN_AFTER_S)
        wait = replace(wait, gone_on_s=gone_on_s)
        ends_at, report = goes_on_at(facts), facts.report
        if ends_at is not None and report is not None:
            limit = (facts.run, report.at)
            if limit != wait.limit:
                wait = Wait(limit, at_s + (ends_at - now).total_seconds(), 0, gone_on_s)
            if max(wait.due_s, _rested_s(gone_on_s)) <= at_s:
                going.append(session)
                wait = replace(wait, due_s=at_s + _grown_s(AGAIN_S, wait.tries), tries=wait.tries + 1)
        if wait != NOT_YET:
            found[session] = wait
    return found, going


def went_on(wait: Wait, at_s: float) -> Wait:
    """The agent was told to go on."""
    return replace(wait, gone_on_s=(*wait.gone_on_s, at_s))


def _rested_s(gone_on_s: tuple[float, ...]) -> float:
    """When the next may be, after so many of late."""
    return gone_on_s[-1] + _grown_s(FIRST_PAUSE_S, len(gone_on_s) - 1) if gone_on_s else 0.0


def _grown_s(first_s: float, times: int) -> float:
    pause_s: float = first_s * 2 ** min(times, 16)
    return min(pause_s, LONGEST_PAUSE_S)
