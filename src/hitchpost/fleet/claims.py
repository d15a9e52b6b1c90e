"""What one replica does and no other: watching a session, or the regular jobs.

They are PostgreSQL's advisory locks on one connection, and end with it, and with the process that has it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import structlog

from hitchpost.errors import DatabaseAway
from hitchpost.fleet.connections import Connection, Row
from hitchpost.fleet.database import Database
from hitchpost.fleet.migrations import LOCK
from hitchpost.store.home import is_id

LEADING = 2
IDLE_S = 10
"""A replica that stands still for so long has given everything up: the server closes its connection. ``turn`` is a
sign of life."""
IDLE_TIMEOUT_SINCE = 140000

log = structlog.get_logger()


class Claims:
    """``watched`` and ``leads`` are what this replica has, as far as it knows.

    A connection that breaks takes all with it. It is known at the next turn, which then asks for the same again.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.watched: set[str] = set()
        self.leads = False
        self._connection: Connection | None = None
        self._lock = threading.Lock()

    def watch(self, session: str) -> bool:
        """Try to have the session; True when this replica has it. Raises ``DatabaseAway``."""
        with self._lock:
            if session not in self.watched:
                self._take([session])
            return session in self.watched

    def unwatch(self, sessions: Iterable[str]) -> None:
        with self._lock:
            ours = [session for session in sessions if session in self.watched]
            self.watched.difference_update(ours)
            if ours and self._connection is not None:
                with self.database.connections.translated():
                    self._connection.execute(
                        "select pg_advisory_unlock(key) from unnest(%s::bigint[]) key", ([*map(key_of, ours)],)
                    )

    def lead(self) -> bool:
        """Try to be who does the regular jobs. Raises ``DatabaseAway``."""
        with self._lock:
            self._lead()
            return self.leads

    def turn(self, wanted: Iterable[str], *, new: bool = True) -> None:
        """Once a second: take what nobody has of ``wanted``, if ``new``, and lead if nobody does. One statement.

        Raises ``DatabaseAway``; then this replica has nothing any more, and what it had is in ``watched`` no longer.
        """
        with self._lock:
            self._lead()
            others = [session for session in wanted if session not in self.watched] if new else []
            self._take(others)

    def close(self) -> None:
        """Give everything back, so that others have it at once, and not when the server finds the connection closed."""
        with self._lock:
            if self._connection is not None:
                try:
                    self._execute("select pg_advisory_unlock_all()", ())
                except DatabaseAway:
                    log.info("claims end with their connection")
            self._forget()

    def _take(self, sessions: list[str]) -> None:
        if not sessions:
            return
        by_key = {key_of(session): session for session in sessions}
        taken = self._execute("select key from unnest(%s::bigint[]) key where pg_try_advisory_lock(key)", ([*by_key],))
        self.watched.update(by_key[key] for (key,) in taken)

    def _lead(self) -> None:
        """Also where it leads already: the answer says that the connection holds."""
        wanted = "select true" if self.leads and self._connection is not None else "select pg_try_advisory_lock(%s, %s)"
        words = () if wanted == "select true" else (LOCK, LEADING)
        self.leads = self._execute(wanted, words)[0][0]

    def _execute(self, sql: str, words: tuple[object, ...]) -> list[Row]:
        try:
            connection = self._connected()
            with self.database.connections.translated():
                return connection.execute(sql, words or None).fetchall()
        except DatabaseAway:
            self._forget()
            raise

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._forget()
            self._connection = self.database.connections.connect()
            if self._connection.info.server_version >= IDLE_TIMEOUT_SINCE:
                with self.database.connections.translated():
                    self._connection.execute(f"set idle_session_timeout = {IDLE_S * 1000}")
        return self._connection

    def _forget(self) -> None:
        self.watched.clear()
        self.leads = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def key_of(session: str) -> int:
    """The id as a number, which every session has for itself."""
    assert is_id(session)
    return int(session, 36)
