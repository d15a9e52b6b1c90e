"""The output of runs: parts of the log, shipped while it is written, and brought back where somebody looks."""

from __future__ import annotations

import os
import zlib

from hitchpost import wire
from hitchpost.errors import NoSuchSession
from hitchpost.fleet import stored
from hitchpost.fleet.connections import Connection
from hitchpost.fleet.copied import BadName
from hitchpost.fleet.database import Database
from hitchpost.store import files
from hitchpost.store.home import make_run_folder

CAP_BYTES = 64 << 20
TRIM_EVERY = 16
"""The oldest output is dropped after each such part of the cap."""
JOINED_BYTES = 4 << 10
"""The last part of a file grows until it has so much: a session that prints a little each second has no row for each.
Compressed, that stays small enough to be changed in its place."""


class Output:
    """At most ``cap_bytes`` of each run are kept, as in the log itself: the newest."""

    def __init__(self, database: Database, cap_bytes: int = CAP_BYTES) -> None:
        self.database, self.cap_bytes = database, cap_bytes
        self._shipped: dict[tuple[str, int], int] = {}

    def ship(self, session: str, run: int, name: str, offset: int, data: bytes, written_at: float) -> None:
        """Durable when it returns. What is there already is left out. A time index from its beginning replaces the
        old one, as it is rewritten now and then, unless that one only goes on further: another hub knew more of it.
        Raises ``NoSuchSession``.

        A part never gets shorter, and others may add behind it what they believe to be new, as hubs do that join
        nothing: parts may overlap, and readers take from each what they do not have yet.
        """
        check(name)
        with self.database.transaction() as held:
            there = stored.head(held, session)
            if there is None or there.gone:
                raise NoSuchSession(session)
            if name == wire.TIMES and offset == 0:
                if _begins_with(held, session, run, name, data):
                    return
                _delete(held, session, run, name)
            joined = min(JOINED_BYTES, self.cap_bytes // TRIM_EVERY)
            start, size, last = _last(held, session, run, name, joined) or (offset, 0, None)
            end = start + size
            new = data[max(0, end - offset) :]
            if not new:
                return
            if last is not None and offset <= end and len(new) < joined:
                stored.append(held, session, run, name, start, zlib.decompress(last) + new, written_at)
            else:
                stored.append(held, session, run, name, max(offset, end), new, written_at)
            key = session, run
            self._shipped[key] = self._shipped.get(key, 0) + len(new)
            if self._shipped[key] > self.cap_bytes // TRIM_EVERY:
                del self._shipped[key]
                _trim(held, session, run, self.cap_bytes)

    def shipped(self, session: str, run: int) -> dict[str, int]:
        """How far PostgreSQL has each file of the output."""
        with self.database.connections.connection() as asking:
            return _ends(asking, session, run)

    def fetch(self, session_folder: str, run: int) -> None:
        """Bring what PostgreSQL has of a run's output into the copy. What is there already stays."""
        session = os.path.basename(session_folder)
        with self.database.snapshot() as asking:
            folder = os.path.join(make_run_folder(session_folder, run), wire.OUTPUT)
            for name in sorted(_ends(asking, session, run)):
                self._fetch(asking, session, run, name, folder)

    def _fetch(self, asking: Connection, session: str, run: int, name: str, folder: str) -> None:
        check(name)
        os.makedirs(folder, 0o700, exist_ok=True)
        rows = asking.execute(
            "select start, size, data, written_at from segments where session = %s and run = %s and name = %s"
            " order by start",
            (session, run, name),
        )
        path, begin = os.path.join(folder, name), 0
        for start, size, data, written_at in rows:
            if start > begin + _size(path):  # what was between was lost: a log says so by its next segment's beginning
                if name == wire.TIMES:
                    return
                begin = start
                path = os.path.join(folder, wire.segment_name((wire.segment_offset(name) or 0) + start))
            _add(path, start - begin, size, data, written_at)


def check(name: str) -> None:
    if name != wire.TIMES and wire.segment_offset(name) is None:
        raise BadName(name)


def _ends(asking: Connection, session: str, run: int) -> dict[str, int]:
    rows = asking.execute(
        "select name, max(start + size) from segments where session = %s and run = %s group by name", (session, run)
    )
    return {name: int(end) for name, end in rows}


def _last(held: Connection, session: str, run: int, name: str, joined: int) -> tuple[int, int, bytes | None] | None:
    """Where the last part of a file begins, how much it has, and its content where it may grow; None where there is
    none. One row is looked at, however many there are."""
    row = held.execute(
        "select start, size, case when size < %s then data end from segments"
        " where session = %s and run = %s and name = %s order by start desc limit 1",
        (joined, session, run, name),
    ).fetchone()
    return None if row is None else (int(row[0]), int(row[1]), row[2])


def _begins_with(held: Connection, session: str, run: int, name: str, data: bytes) -> bool:
    rows = held.execute(
        "select start, data from segments where session = %s and run = %s and name = %s and start < %s order by start",
        (session, run, name, len(data)),
    )
    there = b""
    for start, part in rows:
        if start > len(there):
            return False
        there += zlib.decompress(part)[len(there) - start :]
    return there.startswith(data)


def _delete(held: Connection, session: str, run: int, name: str) -> None:
    held.execute("delete from segments where session = %s and run = %s and name = %s", (session, run, name))


def _trim(held: Connection, session: str, run: int, cap_bytes: int) -> None:
    held.execute(
        "delete from segments using ("
        " select name, start, sum(size) over (order by name desc, start desc) as behind from segments"
        " where session = %s and run = %s and name <> %s) as old"
        " where segments.session = %s and segments.run = %s and segments.name = old.name"
        " and segments.start = old.start and old.behind > %s",
        (session, run, wire.TIMES, session, run, cap_bytes),
    )


def _size(path: str) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0


def _add(path: str, at: int, size: int, compressed: bytes, written_at: float) -> None:
    """What a file lacks of a part. At its place: another who brings the same writes the same there. A file that was
    removed or rewritten meanwhile is left as it is."""
    try:
        fd = os.open(path, os.O_WRONLY | (0 if at else os.O_CREAT) | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        if at:
            return
        raise
    try:
        end = os.fstat(fd).st_size
        if at <= end < at + size:
            files.write_all_at(fd, end, zlib.decompress(compressed)[end - at :])
            os.utime(fd, (written_at, written_at))
    finally:
        os.close(fd)
