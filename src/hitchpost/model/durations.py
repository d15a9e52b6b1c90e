"""Durations as people read them: ``45s``, ``3m 5s``, ``2h 0m``, ``4d 3h``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

_UNITS = (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1))
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def duration(seconds: float) -> str:
    """The two largest units; a clock that went back reads as ``0s``."""
    left = max(0, int(seconds))
    for name, size, smaller_name, smaller in _UNITS:
        if left >= size:
            return f"{left // size}{name} {left % size // smaller}{smaller_name}"
    return f"{left}s"


def seconds_of(text: str) -> float | None:
    """``90s``, ``5m`` or ``1h 30m`` in seconds; None when it is no duration."""
    import re

    if not re.fullmatch(r"\s*(\d{1,9}\s*[smhd]\s*)+", text, re.ASCII):
        return None
    return float(sum(int(count) * _UNIT_S[unit] for count, unit in re.findall(r"(\d+)\s*([smhd])", text)))


def seconds_between(start: datetime | None, end: datetime) -> float:
    return 0.0 if start is None else max(0.0, (end - start).total_seconds())
