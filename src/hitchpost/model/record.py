"""The record axis: what a person keeps of a session, whatever became of its process."""

from __future__ import annotations

from hitchpost.errors import HitchpostError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ACTIVE = "active"
SUSPENDED = "suspended"
ARCHIVED = "archived"
ERROR = "error"

RECORD_TRANSITIONS: dict[str, tuple[str, ...]] = {
    ACTIVE: (SUSPENDED, ARCHIVED, ERROR),
    SUSPENDED: (ACTIVE, ARCHIVED, ERROR),
    ARCHIVED: (SUSPENDED,),
    ERROR: (),
}

ALL = tuple(RECORD_TRANSITIONS)
LISTED = (ACTIVE, SUSPENDED)
"""Shown without ``--all`` and counted in the badge."""

TAKES_INPUT = (ACTIVE,)

NOTES: dict[str, str] = {
    ACTIVE: "",
    SUSPENDED: "may be resumable when agent supports it",
    ARCHIVED: "Session is archived",
    ERROR: "",
}

FORMER_WORDS: dict[str, str] = {"completed": ACTIVE, "cancelled": ARCHIVED}
"""The five-state model's words and what they became."""


class InvalidRecordChange(HitchpostError):
    """Raised when a record may not go from one state to the other."""

    exit_code = 4
    http_status = 409
    code = "wrong_state"

    def __init__(self, old: str, new: str) -> None:
        following = " or ".join(RECORD_TRANSITIONS.get(old, ()))
        what = f"the record is {old} already" if old == new else f"a record that is {old} cannot become {new}"
        super().__init__(f"{what}; it can become {following}" if following else f"{what}; it stays as it is")
        self.old, self.new = old, new


def check_record(old: str, new: str) -> None:
    if new not in RECORD_TRANSITIONS.get(old, ()):
        raise InvalidRecordChange(old, new)


def chosen(texts: Iterable[str], *, everything: bool = False) -> tuple[str, ...]:
    """Which records a list is to have: those that are named, some in one text with commas between, else the usual ones.

    Raises ``UsageError`` for a word that names none.
    """
    words = {word.strip() for text in texts for word in text.split(",")}
    if unknown := sorted(words.difference(ALL)):
        raise UsageError(f"expected a record to be one of {', '.join(ALL)}, but got {unknown[0]!r}")
    if words:
        return tuple(word for word in ALL if word in words)
    return ALL if everything else LISTED
