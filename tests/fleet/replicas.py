"""Databases and copies of a fleet, as hubs have them, in the test's own process."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hitchpost import wire
from hitchpost.fleet.database import Database
from hitchpost.fleet.marker import mark
from hitchpost.fleet.mirror import Mirror
from hitchpost.store import files
from hitchpost.store.home import make_run_folder, new_id, session_folder, sessions_folder
from hitchpost.store.records import Record
from hitchpost.store.session import Session
from hitchpost.values import asdict


@contextmanager
def opened(address: str, most: int = 4, name: str = "") -> Iterator[Database]:
    database = Database(address, most=most, name=name)
    try:
        database.open()
        yield database
    finally:
        database.close()


@dataclass(slots=True)
class Replica:
    """A home with its copy."""

    home: str
    database: Database
    mirror: Mirror

    def folder(self, session: str) -> str:
        return session_folder(self.home, session)

    def session(self, session: str) -> Session:
        return Session(self.folder(session), actor="test")

    def make(self, name: str = "dev", session: str = "") -> str:
        """A session that nobody has started."""
        session = session or new_id()
        with self.mirror.making(session) as claim:
            name, number = claim([name])
            write_new(self.home, record_of(session, name, number))
        return session

    def read(self, session: str, name: str) -> bytes:
        with open(os.path.join(self.folder(session), name), "rb") as file:
            return file.read()


def record_of(session: str, name: str, number: int) -> Record:
    now = files.stamp()
    return Record(session, number, name, "cat", ("cat",), "/", 0, 0, now, record_changed_at=now, last_active_at=now)


def write_new(home: str, record: Record) -> None:
    """As ``create`` does."""
    made = os.path.join(sessions_folder(home), f".new-{record.id}")
    os.mkdir(made, 0o700)
    stored = Session(made, actor="test")
    stored.create(record.id, "", record=asdict(record))
    stored.save(record)
    os.rename(made, session_folder(home, record.id))


@contextmanager
def replica(address: str, home: str | Path | None = None, *, catches_up: bool = True) -> Iterator[Replica]:
    home = os.fspath(home or tempfile.mkdtemp(prefix="home-"))
    os.makedirs(sessions_folder(home), 0o700, exist_ok=True)
    with opened(address) as database:
        mark(home, database.fleet, database.where)
        mirror = Mirror(home, database)
        mirror.open()
        try:
            if catches_up:
                mirror.catch_up()
            yield Replica(home, database, mirror)
        finally:
            mirror.close()


@contextmanager
def kept(session_folder: str | Path, run: int = 1) -> Iterator[str]:
    """Somebody has the keeper's lock of a run in this copy."""
    where = make_run_folder(os.fspath(session_folder), run)
    fd = os.open(os.path.join(where, wire.KEEPER_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield where
    finally:
        os.close(fd)
