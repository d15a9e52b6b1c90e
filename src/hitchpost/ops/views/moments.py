"""Moments: aware datetimes, and texts as RFC 3339 has them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import UTC, datetime
else:
    from _datetime import UTC, datetime  # the same classes: the module that hands them on takes as long again to load


def now() -> datetime:
    return datetime.now(UTC)


def at(seconds: float) -> datetime:
    """So many seconds after the beginning of 1970."""
    return datetime.fromtimestamp(seconds, UTC)


def utc_text(at: datetime) -> str:
    """As RFC 3339 writes it."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def rfc3339(at: datetime | None) -> str | None:
    return None if at is None else utc_text(at)


def moment(text: object) -> datetime | None:
    """An RFC 3339 text as an aware datetime; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
