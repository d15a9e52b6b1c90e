"""Usage limits: whether a session goes on by itself when one has ended, and when that is due. Decisions only."""

from __future__ import annotations

from hitchpost.model import record, run
from hitchpost.model.attention import ERROR, LIMIT
from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from hitchpost.model.facts import Facts

STOP, WAIT = "stop", "wait"
WHEN_LIMIT = (STOP, WAIT)
AGAIN_S = 120.0
"""One that should have gone on and is still there where it was is tried again after this time."""
FIRST_PAUSE_S, LONGEST_PAUSE_S, FORGOTTEN_AFTER_S = 60.0, 3600.0, 6 * 3600.0
"""Limits that follow each other are waited out at least so long, twice as long each time."""


def at_limit(facts: Facts) -> bool:
    """Whether the agent sits at its prompt because of a usage limit. One that is blocked by it tries again itself."""
    report = facts.report
    running = facts.state == run.RUNNING and facts.keeper_alive is not False and facts.record == record.ACTIVE
    return running and report is not None and report.state == ERROR and report.kind == LIMIT


def goes_on_at(facts: Facts) -> datetime | None:
    """When the session goes on by itself; None when nothing makes it go on."""
    report = facts.report
    if report is None or facts.when_limit != WAIT or not at_limit(facts) or facts.gone_on_from == report.at:
        return None
    return report.ends_at


@value
class Wait:
    """A session that waits for the end of a limit, or has. ``limit`` is its run and when the limit was told.

    ``due_s`` and ``gone_on_s``, when it has gone on, are seconds of a clock that nobody can turn.
    """

    limit: tuple[int, datetime] | None = None
    due_s: float = 0.0
    gone_on_s: tuple[float, ...] = ()


NOT_YET = Wait()


def due(
    waits: Mapping[str, Wait], sessions: Mapping[str, Facts], now: datetime, at_s: float
) -> tuple[dict[str, Wait], list[str]]:
    """Another look at all sessions that run: who waits, and who goes on now.

    The calendar says how long a limit lasts when it is first seen; from then on only the clock of the boot counts.
    """
    found: dict[str, Wait] = {}
    going = []
    for session, facts in sessions.items():
        before = waits.get(session, NOT_YET)
        gone_on_s = tuple(then_s for then_s in before.gone_on_s if at_s - then_s < FORGOTTEN_AFTER_S)
        ends_at, report = goes_on_at(facts), facts.report
        if ends_at is None or report is None:
            if gone_on_s:
                found[session] = Wait(gone_on_s=gone_on_s)
            continue
        limit, due_s = (facts.run, report.at), before.due_s
        if limit != before.limit:
            due_s = max(at_s + (ends_at - now).total_seconds(), _rested_s(gone_on_s))
        if due_s <= at_s:
            going.append(session)
            due_s, gone_on_s = at_s + AGAIN_S, (*gone_on_s, at_s)
        found[session] = Wait(limit, due_s, gone_on_s)
    return found, going


def _rested_s(gone_on_s: tuple[float, ...]) -> float:
    """When the next may be, after so many of late."""
    if not gone_on_s:
        return 0.0
    pause_s: float = FIRST_PAUSE_S * 2 ** min(len(gone_on_s) - 1, 16)
    return gone_on_s[-1] + min(pause_s, LONGEST_PAUSE_S)
