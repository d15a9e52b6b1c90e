"""News: a session's headline that a person is to be told of, and what it is known by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hitchpost.model.headline import NEWS
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

    @property
    def key(self) -> str:
        """The same for the same event, however often and by whichever hub it is seen."""
        return f"{self.session or HUB} {self.run} {self.since} {self.headline}"

    @property
    def at(self) -> datetime | None:
        try:
            return datetime.fromisoformat(self.since)
        except ValueError:
            return None


def of_session(shape: Mapping[str, Any]) -> News | None:
    """None when there is nothing to tell: it works, rests, sleeps, or has ended as somebody wanted."""
    if shape["rank"] > NEWS:
        return None
    return News(
        shape["id"],
        shape["name"],
        shape["run"],
        KINDS[shape["rank"]],
        shape["headline"],
        shape["detail"],
        shape["since"] or "",
    )


def is_seen(shape: Mapping[str, Any]) -> bool:
    """Whether somebody has looked since the headline holds."""
    seen_at, since = shape["seen_at"], shape["since"]
    return bool(seen_at and since) and datetime.fromisoformat(seen_at) >= datetime.fromisoformat(since)


def of_hub(problem: str, since: str) -> News:
    return News("", "Hitchpost", 0, HUB, "Hub trouble", problem, since)
