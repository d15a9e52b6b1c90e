"""Durations as people read them: ``45s``, ``3m 5s``, ``2h 0m``, ``4d 3h``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime


def duration(seconds: float) -> str:
    """The two largest units; a clock that went back reads as ``0s``."""
    left = max(0, int(seconds))
    if left < 60:
        return f"{left}s"
    if left < 3600:
        return f"{left // 60}m {left % 60}s"
    if left < 86400:
        return f"{left // 3600}h {left % 3600 // 60}m"
    return f"{left // 86400}d {left % 86400 // 3600}h"


def seconds_between(start: datetime | None, end: datetime) -> float:
    return 0.0 if start is None else max(0.0, (end - start).total_seconds())
