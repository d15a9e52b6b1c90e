"""What a caller may do: one type, and one check for every route and every WebSocket message."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from hitchpost.errors import HitchpostError
from hitchpost.model.people import MEMBER, OWNER, VIEWER, Person, least

__all__ = ["MEMBER", "OWNER", "VIEWER", "Forbidden", "Grant", "Need"]


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
    LOOK_AROUND = "look around"
    """Not to be limited to some sessions: it is about what sessions can be made of."""
    CHANGE = "change"
    """To be an owner of the session, or the member whose session it is."""
    CREATE = "create"
    """To have sessions of one's own: every owner and member has, unless limited to some sessions."""
    CHANGE_ALL = "change all"
    """To be an owner of every session, those to come included."""


CHANGES = (Need.CHANGE, Need.CREATE, Need.CHANGE_ALL)
WHOLE = (Need.LOOK_AT_ALL, Need.CHANGE_ALL)
UNLIMITED = (Need.LOOK_AROUND, Need.CREATE, *WHOLE)
A_SESSION = (Need.LOOK, Need.CHANGE)
DRIVERS = (OWNER, MEMBER)
MAY = {"change": Need.CHANGE, "create": Need.CREATE, "manage": Need.CHANGE_ALL}
"""What a page is told that its caller may do, and the need that says so."""


@dataclass(frozen=True, slots=True)
class Grant:
    """``sessions`` are ids, None for all of them, those to come included; without ``expires_at`` it lasts.

    ``user`` is the person whose grant it is; empty for who has no name here, as the hub's own user. With ``own``, only
    that person's sessions are covered.
    """

    role: str
    sessions: frozenset[str] | None = None
    expires_at: datetime | None = None
    user: str = ""
    own: bool = False

    def of(self, person: Person) -> Grant:
        """As far as the person may go at this moment: a member has only their own sessions, whatever is done there."""
        role = least(self.role, person.role)
        return replace(self, role=role, own=MEMBER in (role, person.role))

    @property
    def is_whole(self) -> bool:
        """Whether it allows everything: an owner's, of every session."""
        return self.role == OWNER and self.sees_all

    @property
    def sees_all(self) -> bool:
        """Whether it covers every session, those to come included."""
        return self.sessions is None and not self.own

    @property
    def may_drive(self) -> bool:
        """Whether it may change the sessions that it covers."""
        return self.role in DRIVERS

    @property
    def may(self) -> list[str]:
        """What a page offers to who has it."""
        return [word for word, need in MAY.items() if self._refusal(need, is_covered=True, local=False) is None]

    def covers(self, session: str, owner: str) -> bool:
        """``owner`` is whose session it is; empty when it is nobody's in particular, or not known."""
        is_named = self.sessions is None or session in self.sessions
        return is_named and (not self.own or (owner != "" and owner == self.user))

    def holds(self, now: datetime) -> bool:
        return self.expires_at is None or now < self.expires_at

    def check(self, need: Need, *, is_covered: bool = False, local: bool = False) -> None:
        """Raises ``Forbidden``. ``is_covered`` says that it is about one session, which the grant covers."""
        if refusal := self._refusal(need, is_covered=is_covered, local=local):
            raise Forbidden(refusal)

    def _refusal(self, need: Need, *, is_covered: bool, local: bool) -> str | None:
        if need is Need.SOCKET and not local:
            return "only the hub's own socket may ask that"
        if need in CHANGES and not self.may_drive:
            return "only the owner may do that"
        if need in UNLIMITED and self.sessions is not None:
            return "this sign-in is for some sessions only"
        if need in WHOLE and (self.own or (need in CHANGES and self.role != OWNER)):
            return "only an owner may do that; members have their own sessions"
        if need in A_SESSION and not self.sees_all and not is_covered:
            return "this sign-in is for some sessions only"
        return None
