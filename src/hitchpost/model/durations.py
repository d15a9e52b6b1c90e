"""Durations as people read them: ``45s``, ``3m 5s``, ``2h 0m``, ``4d 3h``."""

from __future__ import annotations

from datetime import datetime

_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def duration(seconds: float) -> str:
    """The two largest units; a clock that went back reads as ``0s``."""
    left = max(0, int(seconds))
    for position, (name, size) in enumerate(_UNITS):
        if left >= size or size == 1:
            rest = _UNITS[position + 1 : position + 2]
            small = "".join(f" {left % size // smaller}{letter}" for letter, smaller in rest)
            return f"{left // size}{name}{small}"
    raise AssertionError("unreachable")  # pragma: no cover


def seconds_between(start: datetime | None, end: datetime) -> float:
    return 0.0 if start is None else max(0.0, (end - start).total_seconds())
