"""When a usage limit ends, as the agent's own text says it."""

from __future__ import annotations

import re

_WHEN = re.compile(
    r"\b(?:try again|retry|resets?|renews?|available(?: again)?) (?:at|in|on|after) "
    r"(?P<when>[^.,;()]*(?:\.\d[^.,;()]*)*)",
    re.IGNORECASE,
)


def ends_at(text: str) -> str:
    """``18:30``, ``in 20 minutes`` … without its preposition; empty when the text does not say it."""
    found = _WHEN.search(text)
    when = found["when"].strip() if found is not None else ""
    return when if any(letter.isdigit() for letter in when) else ""
