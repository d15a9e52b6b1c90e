"""The table of sessions: finding one, and listing them. Nothing here waits for anything."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from hitchpost.errors import HitchpostError, NoSuchSession
from hitchpost.hub.session import HubSession
from hitchpost.model.record import ALL
from hitchpost.ops.views.find import resolve_in
from hitchpost.ops.views.listing import Row, is_wanted


class SessionTable:
    """``by_id`` has every session. ``unreadable`` has the rows of those that cannot be looked at."""

    def __init__(self) -> None:
        self.by_id: dict[str, HubSession] = {}
        self.unreadable: dict[str, Row] = {}

    def get(self, session_id: str) -> HubSession:
        """A session that was looked at. Raises ``NoSuchSession``, or what keeps it from being looked at."""
        if session_id in self.unreadable and isinstance(why := self.unreadable[session_id].why, HitchpostError):
            raise why
        session = self.by_id.get(session_id)
        if session is None or session.latest is None:
            raise NoSuchSession(session_id)
        return session

    def find(self, name: str) -> HubSession:
        """By id, then name, then index, then the unique beginning of an id, as the command line does."""
        return self.get(name if name in self.by_id else self.resolve(name))

    def find_unopened(self, name: str) -> HubSession | None:
        """As ``find``, whether or not it was looked at; None when there is no such session."""
        try:
            return self.by_id.get(name) or self.by_id[self.resolve(name)]
        except HitchpostError:
            return None

    def resolve(self, name: str) -> str:
        """The id that ``name`` means. Raises ``NoSuchSession``, or ``HitchpostError`` when it means several."""
        readable = {session.id: session.index_row for session in self.by_id.values() if session.line}
        unreadable = {id_: HubSession.from_index(id_, row.line).index_row for id_, row in self.unreadable.items()}
        return resolve_in(readable | unreadable, name)

    def listed(self, *, records: tuple[str, ...] = ALL) -> list[HubSession]:
        """All sessions in the order of their index."""
        sessions = [session for session in self.by_id.values() if session.line and is_wanted(session, records)]
        return sorted(sessions, key=attrgetter("place"))

    def rows(self, *, records: tuple[str, ...]) -> Sequence[HubSession | Row]:
        """As the command lists them: with those that cannot be looked at, or that a newer version wrote."""
        readable = [session for session in self.listed(records=records) if session.id not in self.unreadable]
        others = [row for row in self.unreadable.values() if is_wanted(row, records)]
        return sorted([*readable, *others], key=attrgetter("place")) if others else readable
