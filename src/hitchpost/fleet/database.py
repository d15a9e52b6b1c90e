"""The fleet's PostgreSQL: its tables, transactions, and the word that something has changed.

Calls block, and each has a time limit. They raise ``DatabaseAway`` when PostgreSQL cannot be used.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import structlog

from hitchpost.errors import HitchpostError
from hitchpost.fleet.connections import MOST, Connection, Connections
from hitchpost.fleet.migrations import STEPS, Step, may_write, migrate

CHANNEL = "hitchpost"
PING_EVERY_S = 2.0
TURN_S = 0.5
RETRY_S = 0.25
LEAVE_S = 5.0

log = structlog.get_logger()
OnChange = Callable[[str, int], None]


class Database:
    """``fleet`` is the id of the fleet, once it is open."""

    def __init__(self, address: str, *, most: int = MOST, steps: tuple[Step, ...] = STEPS, name: str = "") -> None:
        self.connections = Connections(address, most, name)
        self.fleet = ""
        self._steps = steps
        self._leaving = threading.Event()
        self._listeners: list[threading.Thread] = []

    @property
    def where(self) -> str:
        return self.connections.where

    @property
    def away(self) -> tuple[float, str] | None:
        """Since when PostgreSQL cannot be reached, in seconds since 1970, and why; None while it can."""
        return self.connections.away

    def open(self) -> None:
        """Bring the tables up to date, and learn which fleet this is. Raises ``OtherVersion``."""
        with self.connections.connection() as asking:
            if done := migrate(asking, self.where, self._steps):
                log.info("the database was brought up to date", steps=done)
            row = asking.execute("select id from fleet").fetchone()
            assert row is not None
            self.fleet = row[0]

    def close(self) -> None:
        self._leaving.set()
        for listener in self._listeners:
            listener.join(LEAVE_S)
        self.connections.close()

    @contextmanager
    def transaction(self, isolation: str = "") -> Iterator[Connection]:
        """Durable when it has ended. ``isolation``: another than that each statement sees what is committed by then."""
        with self.connections.connection() as held, held.transaction():
            if isolation:
                held.execute(f"set transaction isolation level {isolation}")
            yield held

    def snapshot(self) -> Any:
        """A transaction that reads everything as it is at one moment."""
        return self.transaction("repeatable read read only")

    # changes ------------------------------------------------------------------------------------------------------

    def revision(self) -> int:
        """The newest one."""
        with self.connections.connection() as asking:
            return newest(asking)

    def listen(self, on_change: OnChange, since: int | None = None) -> None:
        """Call ``on_change`` with a session and its revision for every change after ``since`` (now, when None), in a
        thread. Several changes of one session may be told as one: the newest.

        A connection that breaks is made again, and what was missed meanwhile is told then.
        """
        listener = threading.Thread(target=self._listen, args=(on_change, since), name="listen", daemon=True)
        self._listeners.append(listener)
        listener.start()

    def _listen(self, on_change: OnChange, since: int | None) -> None:
        following, trouble = Following(on_change, since), ""
        while not self._leaving.is_set():
            try:
                with self.connections.connect(probing=True) as listening, self.connections.translated():
                    may_write(listening, self.where, self._steps)
                    following.follow(listening, self._leaving)
            except HitchpostError as error:
                if str(error) != trouble:  # it is tried again often, and said once
                    trouble = str(error)
                    log.warning("nothing is heard from PostgreSQL", error=trouble)
            self._leaving.wait(RETRY_S)


class Following:
    """Tells of every change in the order of revisions. ``told`` is the newest that was told; None before the first."""

    def __init__(self, on_change: OnChange, told: int | None) -> None:
        self.on_change, self.told = on_change, told

    def follow(self, listening: Connection, leaving: threading.Event) -> None:
        """Until the hub leaves. What goes wrong is raised, and nothing is forgotten."""
        listening.execute(f"listen {CHANNEL}")  # first that, then the query: what changes in between is heard
        while not leaving.is_set():
            self._query(listening)
            asked_s = time.monotonic()
            while not leaving.is_set() and time.monotonic() - asked_s < PING_EVERY_S:
                missed = [notify for notify in listening.notifies(timeout=TURN_S) if not self._tell_next(notify)]
                if missed:
                    break

    def _query(self, listening: Connection) -> None:
        if self.told is None:
            self.told = newest(listening)
            return
        changed = "select id, revision from sessions where revision > %s order by revision"
        for session, revision in listening.execute(changed, (self.told,)).fetchall():
            self._tell(session, revision)

    def _tell_next(self, notify: psycopg.Notify) -> bool:
        """False when there are others before it: they are asked for. Revisions have no gaps, and come in order."""
        session, _, number = notify.payload.partition(" ")
        revision = int(number)
        assert self.told is not None
        if revision == self.told + 1:
            self._tell(session, revision)
        return revision <= self.told

    def _tell(self, session: str, revision: int) -> None:
        self.on_change(session, revision)
        self.told = revision


def newest(connection: Connection) -> int:
    row = connection.execute("select revision from fleet").fetchone()
    assert row is not None
    return int(row[0])


def next_revision(connection: psycopg.Connection[Any]) -> int:
    """The next one. The row is locked until the transaction has ended, so the order of revisions is that of commits:
    whoever sees a revision sees all before it. Take it last."""
    row = connection.execute("update fleet set revision = revision + 1 returning revision").fetchone()
    assert row is not None
    return int(row[0])
