"""When a usage limit ends, as the agent's own text says it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from hitchpost.errors import MALFORMED

_WHEN = re.compile(
    r"\b(?:try again|retry|resets?|renews?|available(?: again)?) (?:at|in|on|after) "
    r"(?P<when>[^.,;()]*(?:\.\d[^.,;()]*)*(?-i:\((?:[A-Z]{2,5}|[A-Z]\w*/[\w/+-]+)\))?)",
    re.IGNORECASE,
)
_SPAN = re.compile(
    r"(\d+(?:\.\d+)?)\s*(days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])", re.IGNORECASE
)
_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_CLOCK = re.compile(
    r"(?:(?P<month>[a-z]{3})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?,?(?: (?P<year>\d{4}),?)? (?:at )?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::\d\d)? ?(?P<half>[ap]m)?(?: \((?P<zone>[\w/+-]+)\))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
A_MINUTE = timedelta(minutes=1)
JUST_OVER = timedelta(minutes=10)
"""A time of day that has passed by so little is the one that is meant, and not tomorrow's."""


def ends_at(text: str) -> str:
    """``18:30``, ``in 20 minutes`` … without its preposition; empty when the text does not say it."""
    found = _WHEN.search(text)
    when = found["when"].strip() if found is not None else ""
    return when if any(letter.isdigit() for letter in when) else ""


def moment_of(when: str, told_at: datetime) -> datetime | None:
    """The moment that is meant by a text such as ``3pm (Europe/Berlin)``, ``2 hours 5 minutes`` or an ISO 8601 time.

    None when it is not understood. ``told_at`` is when it was said, in the time zone of a person who reads it.
    """
    when = when.strip()
    try:
        if when.isdecimal() and len(when) in (10, 13):
            return datetime.fromtimestamp(int(when[:10]), told_at.tzinfo)
        if spans := _SPAN.findall(when):
            whole = _SPAN.sub("", when).replace("and", "").strip(" ,") == ""
            seconds = sum(float(number) * _UNITS[unit[0].lower()] for number, unit in spans)
            return told_at + timedelta(seconds=seconds) if whole else None
        if clock := _CLOCK.fullmatch(when):
            return _on_clock(clock, told_at)
        found = datetime.fromisoformat(when)
    except (*MALFORMED, OverflowError, OSError):
        return None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(told_at.tzinfo)


def _on_clock(clock: re.Match[str], told_at: datetime) -> datetime | None:
    """The minute's end: what ends within it has not ended before. Raises ``ValueError`` for a time that is none."""
    hour, minute = int(clock["hour"]), int(clock["minute"] or 0)
    if half := (clock["half"] or "").lower():
        hour = hour % 12 + (12 if half == "pm" else 0)
    elif clock["minute"] is None:
        return None  # a bare number
    there = told_at
    if clock["zone"]:
        from zoneinfo import ZoneInfo  # few say it

        there = told_at.astimezone(ZoneInfo(clock["zone"]))
    earliest = there - JUST_OVER
    begins = earliest.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if clock["month"] is not None:
        month = _MONTHS.index(clock["month"].lower()) + 1
        begins = begins.replace(month=month, day=int(clock["day"]), year=int(clock["year"] or earliest.year))
    if clock["year"] is None and begins + A_MINUTE < earliest:
        begins = begins + timedelta(days=1) if clock["month"] is None else begins.replace(year=begins.year + 1)
    return (begins + A_MINUTE).astimezone(told_at.tzinfo)
