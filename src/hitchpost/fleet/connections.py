"""Connections to PostgreSQL: each call has a time limit, and what goes wrong is an error of ours."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import conninfo, errors
from psycopg.abc import PQGen

from hitchpost.errors import DatabaseAway, HitchpostError
from hitchpost.system.readable import readable

T = TypeVar("T")
Row = tuple[Any, ...]

CONNECT_S = 3
ANSWER_S = 10.0
"""For one statement. A server that is slower than that cannot be used."""
WAIT_S = 10.0
"""For a connection, while others have all of them."""
IDLE_IN_TRANSACTION_S = 60
"""So long a hub may stand still in the middle of a change: then the server forgets it, and others go on."""
PROBE_EVERY_S = 0.5
"""A server that is away is not asked more often than that: others are told at once that it is."""
MOST = 8
APPLICATION = "hitchpost"
OPTIONS: dict[str, Any] = {
    "application_name": APPLICATION,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": int(ANSWER_S * 1000),
}
"""A server that has gone without a word is noticed, also on a connection where nothing is asked."""


class NotADatabase(HitchpostError):
    """Raised when the address of the fleet's database makes no sense, or leads to one that we may not use."""

    exit_code = 2
    http_status = 503
    code = "bad_database"


class NoAnswer(HitchpostError, psycopg.OperationalError):
    """Raised when a statement takes too long, because the server or the way to it hangs."""

    http_status = 503
    code = "database_away"


class Counts:
    """What was done at PostgreSQL since the process began: statements, without the begin and end of transactions, and
    connections that were made."""

    def __init__(self) -> None:
        self.statements = self.connections = 0
        self._lock = threading.Lock()

    def add(self, *, statements: int = 0, connections: int = 0) -> None:
        with self._lock:
            self.statements += statements
            self.connections += connections


class Connection(psycopg.Connection[Row]):
    """One that does not wait for ever: after ``ANSWER_S`` it is closed, for nobody knows what becomes of it."""

    counts: Counts | None = None

    def execute(self, query: Any, *params: Any, **named: Any) -> psycopg.Cursor[Row]:
        if self.counts is not None:
            self.counts.add(statements=1)
        return super().execute(query, *params, **named)

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        if timeout is not None:
            return super().wait(gen, ANSWER_S, timeout)
        began = time.monotonic()
        try:
            return super().wait(gen, ANSWER_S, ANSWER_S)
        except psycopg.OperationalError as error:
            if error.sqlstate is not None or time.monotonic() - began < ANSWER_S:
                raise
            self.pgconn.finish()
            raise NoAnswer(f"no answer within {ANSWER_S:g} s") from None


class Connections:
    """A pool of at most ``most``. ``away`` says since when nobody could connect, and why; None while one can.

    Who finds all of them in use waits, at most ``WAIT_S``. ``name`` is that of the replica.
    """

    def __init__(self, address: str, most: int = MOST, name: str = "") -> None:
        try:
            self._options = dict(conninfo.conninfo_to_dict(address))
        except psycopg.ProgrammingError as error:
            raise NotADatabase(f"expected an address like postgresql://user@host/name: {_line(error)}") from None
        if name:
            self._options["application_name"] = f"{APPLICATION} {name}"  # by which other replicas know who is there
        self.where = _where(self._options)
        self.counts = Counts()
        self.away: tuple[float, str] | None = None
        self._idle: list[Connection] = []
        self._free = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._probed_s = 0.0
        self._is_closed = False

    def connect(self, *, probing: bool = False) -> Connection:
        """A connection of one's own. Raises ``DatabaseAway``, at once where another has just found that out, unless
        this is who finds out."""
        with self._lock:
            soon = time.monotonic() - self._probed_s < PROBE_EVERY_S
            if self.away is not None and soon and not probing:
                raise DatabaseAway(self.where, self.away[1])
            self._probed_s = time.monotonic()
        try:
            made = Connection.connect(
                conninfo.make_conninfo("", **{**OPTIONS, **self._options}),
                autocommit=True,
                connect_timeout=CONNECT_S,
            )
        except psycopg.Error as error:
            raise self._away(error) from None
        try:
            made.execute(
                f"set statement_timeout = {int(ANSWER_S * 1000)};"
                f"set idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_S * 1000};"
                "set client_min_messages = warning"
            )
        except psycopg.Error as error:
            made.close()
            raise self._away(error) from None
        with self._lock:
            self.away = None
        made.counts = self.counts
        self.counts.add(connections=1)
        return made

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """One of the pool. What PostgreSQL refuses is raised as ``DatabaseAway``, and the connection is not used again
        unless it is as it was."""
        if not self._free.acquire(timeout=WAIT_S):
            raise DatabaseAway(self.where, f"all connections are in use for more than {WAIT_S:g} s")
        try:
            held = self._idle_one() or self.connect()
            try:
                with self.translated():
                    yield held
            finally:
                self._give_back(held)
        finally:
            self._free.release()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """What goes wrong with PostgreSQL, in words of ours. What its tables do not allow is passed on."""
        try:
            yield
        except (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError) as error:
            if isinstance(error, errors.LockNotAvailable):
                raise
            if isinstance(error, NoAnswer):
                raise self._away(error) from None
            raise DatabaseAway(self.where, _line(error)) from None
        except psycopg.ProgrammingError as error:
            raise NotADatabase(f"the database at {self.where} cannot be used: {_line(error)}") from None

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _idle_one(self) -> Connection | None:
        """One that nobody uses. A server that has gone has closed its end, or said so: then it can be read from."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                found = self._idle.pop()
            if not found.closed and not readable([found], 0):
                return found
            found.close()

    def _give_back(self, held: Connection) -> None:
        is_well = not held.closed and held.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._lock:
            if is_well and not self._is_closed:
                self._idle.append(held)
                return
        held.close()

    def _away(self, error: psycopg.Error) -> DatabaseAway:
        """Nobody can connect: others need not try before somebody could."""
        why = _line(error)
        with self._lock:
            self.away = (time.time(), why) if self.away is None else (self.away[0], why)
        return DatabaseAway(self.where, why)


def _line(error: psycopg.Error) -> str:
    """PostgreSQL's own last word, without what comes before and behind it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = next((line for line in lines if "failed:" in line or "FATAL" in line), lines[0] if lines else "no reason")
    return text.rpartition("FATAL:")[2].rpartition("failed:")[2].strip() or text


def _where(options: dict[str, Any]) -> str:
    """For people: nothing that is secret."""
    host, port, name = (str(options.get(key) or "") for key in ("host", "port", "dbname"))
    return f"{host or 'localhost'}{f':{port}' if port else ''}/{name or options.get('user') or ''}"
