"""Durations as people read them: ``45s``, ``3m 5s``, ``2h 0m``, ``4d 3h``."""

from __future__ import annotations

from datetime import datetime

_UNITS = (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1))


def duration(seconds: float) -> str:
    """The two largest units; a clock that went back reads as ``0s``."""
    left = max(0, int(seconds))
    for name, size, smaller_name, smaller in _UNITS:
        if left >= size:
            return f"{left // size}{name} {left % size // smaller}{smaller_name}"
    return f"{left}s"


def seconds_between(start: datetime | None, end: datetime) -> float:
    return 0.0 if start is None else max(0.0, (end - start).total_seconds())
