"""News: a session's headline that a person is to be told of, and what it is known by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hitchpost.model.facts import KEPT_BY_ANOTHER_HUB
from hitchpost.model.headline import NEWS
from hitchpost.model.run import TERMINAL
from hitchpost.settings import NEWS_KINDS

*OF_SESSIONS, HUB = NEWS_KINDS
"""``HUB`` is news about the hub itself, which has no session."""
KINDS: dict[int, str] = dict(enumerate(OF_SESSIONS, 1))
"""By the rank of a headline."""


@dataclass(frozen=True, slots=True)
class News:
    """``session`` is an id; empty for the hub. ``since`` is as the session's JSON has it."""

    session: str
    name: str
    run: int
    kind: str
    headline: str
    detail: str
    since: str
    is_end: bool = False
    """Whether the run has ended."""

    @property
    def key(self) -> str:
        """The same for the same event, however often and by whichever hub it is seen.

        A run ends once, whatever the time of it: that is another one before the end is written down.
        """
        return f"{self.session or HUB} {self.run} {'end' if self.is_end else self.since} {self.headline}"

    @property
    def at(self) -> datetime | None:
        return _moment(self.since)


def of_session(shape: Mapping[str, Any]) -> News | None:
    """None when there is nothing to tell: it works, rests, sleeps, or has ended as somebody wanted. What another
    hub of the fleet has is news when that one has told it."""
    if shape["rank"] > NEWS or shape["detail"] == KEPT_BY_ANOTHER_HUB:
        return None
    return News(
        shape["id"],
        shape["name"],
        shape["run"],
        KINDS[shape["rank"]],
        shape["headline"],
        shape["detail"],
        shape["since"] or "",
        shape["status"] in TERMINAL,
    )


def is_seen(shape: Mapping[str, Any]) -> bool:
    """Whether somebody has looked since the headline holds."""
    seen_at, since = _moment(shape["seen_at"]), _moment(shape["since"])
    return seen_at is not None and since is not None and seen_at >= since


def _moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text or "")
    except ValueError:
        return None


def of_hub(problem: str, since: str) -> News:
    return News("", "Hitchpost", 0, HUB, "Hub trouble", problem, since)
