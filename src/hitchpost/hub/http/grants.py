"""What a caller may do: one type, and one check for every route and every WebSocket message."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from hitchpost.errors import HitchpostError

OWNER, VIEWER = "owner", "viewer"


class Forbidden(HitchpostError):
    """Raised when a caller may not do what it asks for."""

    exit_code = 4
    http_status = 403
    code = "forbidden"


class Need(StrEnum):
    """What a route or a message asks of a grant."""

    NOTHING = "nothing"
    """What a browser needs before it is signed in."""
    SOCKET = "socket"
    """The hub's own Unix socket."""
    SIGNED_IN = "signed in"
    """Any sign-in or token: it is about the caller alone, or shows what the caller may see."""
    LOOK = "look"
    """To see the session."""
    LOOK_AT_ALL = "look at all"
    """To see every session."""
    CHANGE = "change"
    """To be an owner of the session."""
    CHANGE_ALL = "change all"
    """To be an owner of every session, those to come included."""


CHANGES = (Need.CHANGE, Need.CHANGE_ALL)
WHOLE = (Need.LOOK_AT_ALL, Need.CHANGE_ALL)
A_SESSION = (Need.LOOK, Need.CHANGE)


@dataclass(frozen=True, slots=True)
class Grant:
    """``sessions`` are ids, None for all of them, those to come included; without ``expires_at`` it lasts."""

    role: str
    sessions: frozenset[str] | None = None
    expires_at: datetime | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it allows everything: an owner's, of every session."""
        return self.role == OWNER and self.sessions is None

    def sees(self, session: str) -> bool:
        return self.sessions is None or session in self.sessions

    def holds(self, now: datetime) -> bool:
        return self.expires_at is None or now < self.expires_at

    def check(self, need: Need, *, is_covered: bool = False, local: bool = False) -> None:
        """Raises ``Forbidden``. ``is_covered`` says that it is about one session, which the grant covers."""
        if need is Need.SOCKET and not local:
            raise Forbidden("only the hub's own socket may ask that")
        if need in CHANGES and self.role != OWNER:
            raise Forbidden("only the owner may do that")
        if need in WHOLE and self.sessions is not None:
            raise Forbidden("this sign-in is for some sessions only")
        if need in A_SESSION and self.sessions is not None and not is_covered:
            raise Forbidden("this sign-in is for some sessions only")
