"""What is said: a title, a few lines, a link. Whatever an agent wrote is cut, and has no control characters."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

from hitchpost.notify.news import HUB, News

LONGEST_TITLE, LONGEST_LINE, MOST_LINES = 120, 300, 5
URGENT = ("permission", "your-turn", HUB)


@dataclass(frozen=True, slots=True)
class Message:
    """``id`` is the same whenever and however this is sent. ``session`` is empty when it is about several."""

    id: str
    title: str
    body: str
    link: str
    session: str = ""
    kind: str = ""

    @property
    def is_urgent(self) -> bool:
        return self.kind in URGENT

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Message:
        return cls(**{name: str(value.get(name, "")) for name in cls.__slots__})


def compose(news: Sequence[News], page: str) -> Message:
    """``page`` is the address of the hub's page, with a slash at its end."""
    first = news[0]
    if len(news) == 1:
        link = f"{page}?{urlencode({'session': first.session})}" if first.session else page
        title = f"{plain(first.name, 60)}: {first.headline}"
        return Message(new_id(), plain(title, LONGEST_TITLE), plain(first.detail), link, first.session, first.kind)
    counts = Counter(one.headline for one in news)
    title = f"{len(news)} sessions: " + ", ".join(f"{count} × {words}" for words, count in counts.items())
    lines = [_line(one) for one in news[:MOST_LINES]]
    if len(news) > MOST_LINES:
        lines.append(f"and {len(news) - MOST_LINES} more")
    return Message(new_id(), plain(title, LONGEST_TITLE), "\n".join(lines), page, "", first.kind)


def trial(page: str) -> Message:
    return Message(
        new_id(), "Hitchpost: a test", "This is how you are told when a session needs you.", page, "", "test"
    )


def new_id() -> str:
    return secrets.token_hex(12)


def plain(text: str, longest: int = LONGEST_LINE) -> str:
    """One line of printable text, of at most ``longest`` letters."""
    words = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return words if len(words) <= longest else words[: longest - 1].rstrip() + "…"


def _line(news: News) -> str:
    words = f"{plain(news.name, 60)}: {news.headline}"
    return plain(f"{words} · {news.detail}" if news.detail else words, 160)
