"""What agents have used, summed as somebody wants it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from hitchpost.errors import UsageError
from hitchpost.model.attention import LIMIT
from hitchpost.model.usage import NOTHING, Sum, Turn, summed
from hitchpost.ops.views.session_types import Session
from hitchpost.store import usage
from hitchpost.values import asdict

USUAL_DAYS = 30


def _day(turn: Turn) -> str:
    """Where the person is, who thinks of their own days."""
    return datetime.fromisoformat(turn.at).astimezone().date().isoformat()


BY: dict[str, Callable[[Turn], str]] = {
    "day": _day,
    "agent": lambda turn: turn.agent,
    "model": lambda turn: turn.model,
    "project": lambda turn: turn.project,
    "session": lambda turn: turn.name,
}
"""What is summed by."""


def used(home: str, by: str, *, since: datetime | None = None, sessions: frozenset[str] | None = None) -> list[Sum]:
    """One sum for each day, agent … since ``since``; of ``sessions``, by id, or of all that there ever were."""
    if by not in BY:
        raise UsageError(f"expected one of {', '.join(BY)}, but got {by!r}", field="by")
    return summed(turns(home, since, sessions), BY[by])


def turns(home: str, since: datetime | None, sessions: frozenset[str] | None = None) -> list[Turn]:
    first = "" if since is None else since.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return [
        turn
        for turn in usage.read(home, first[:10])
        if turn.at >= first and (sessions is None or turn.session in sessions)
    ]


def days_ago(days: int) -> datetime:
    """The beginning of the day so many days ago; 0 is today."""
    today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=days)


def total(sums: list[Sum]) -> Sum:
    """``turns`` of the sums together: a session's turns are its own, so nothing is counted twice."""
    tokens = sum((one.tokens for one in sums), NOTHING)
    return Sum("total", sum(one.turns for one in sums), tokens)


def limits(sessions: Iterable[Session]) -> list[dict[str, Any]]:
    """The usage limits that agents are at now, with their end where it is known."""
    found = []
    for session in sessions:
        report = session["report"]
        if report is not None and report["kind"] == LIMIT:
            who = {"session": session["id"], "name": session["name"], "agent": session["agent"]}
            end = {"until": report["until"], "ends_at": report["ends_at"]}
            found.append({**who, **end, "detail": session["detail"]})
    return found


def shape(one: Sum) -> dict[str, Any]:
    return {"key": one.key, "turns": one.turns, **asdict(one.tokens), "total": one.tokens.total}
