"""The record axis: what a person keeps of a session, whatever became of its process."""

from __future__ import annotations

from hitchpost.errors import HitchpostError

ACTIVE = "active"
SUSPENDED = "suspended"
ARCHIVED = "archived"
ERROR = "error"

RECORD_TRANSITIONS: dict[str, tuple[str, ...]] = {
    ACTIVE: (SUSPENDED, ARCHIVED, ERROR),
    SUSPENDED: (ACTIVE, ARCHIVED, ERROR),
    ARCHIVED: (),
    ERROR: (),
}

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
        following = ", ".join(RECORD_TRANSITIONS.get(old, ())) or "nothing, it is final"
        super().__init__(f"cannot go from {old} to {new}; from {old} the record may become: {following}")
        self.old, self.new = old, new


def check_record(old: str, new: str) -> None:
    if new not in RECORD_TRANSITIONS.get(old, ()):
        raise InvalidRecordChange(old, new)
