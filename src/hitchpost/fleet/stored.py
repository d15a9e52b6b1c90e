"""Sessions and their files as PostgreSQL has them.

A session has a revision, by which readers of all sessions catch up, and a version, which counts its own changes: each
file has the version in which it last changed. Files that only grow are kept in parts.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hitchpost.errors import HitchpostError, NameTaken
from hitchpost.fleet.connections import Connection
from hitchpost.fleet.database import CHANNEL

WHOLE, GROWING, GONE = "whole", "growing", "gone"
PART_BYTES = 8 << 10
"""A part grows to this size before the next one begins: what is appended is written once or twice, not each time."""
CHUNK_BYTES = 256 << 10
LARGE_BYTES = 512 << 10
"""Of what was appended within a second."""
NO_RUN = 0


class Overtaken(HitchpostError):
    """Raised when another replica has changed a session meanwhile, because this one stood still for too long."""

    http_status = 503
    code = "busy"

    def __init__(self, session: str) -> None:
        super().__init__(f"another hub has changed session {session} meanwhile", "try again")


@dataclass(frozen=True, slots=True)
class Head:
    """A session's row."""

    id: str
    revision: int
    version: int
    gone: bool = False


@dataclass(frozen=True, slots=True)
class StoredFile:
    """``data`` is that of a whole file. ``digest`` is ``copied.digest`` of it, or the CRC of one that grows."""

    session: str
    name: str
    version: int
    kind: str
    size: int
    digest: int
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a file: its content, or, where it grows, what is new of it from ``start`` on.

    ``start`` is 0 when all of it is new, also where it was longer before.
    """

    name: str
    kind: str
    size: int = 0
    digest: int = 0
    data: bytes = b""
    start: int = 0


@dataclass(frozen=True, slots=True)
class About:
    """What the row of a session has of its record. ``name`` is None where that is not known."""

    name: str | None = None
    archived: bool = True


def heads(asking: Connection, since: int) -> list[Head]:
    """Every session that has changed since a revision, those that are gone too; the oldest change first."""
    rows = asking.execute(
        "select id, revision, version, gone_at is not null from sessions where revision > %s order by revision",
        (since,),
    )
    return [Head(*row) for row in rows]


def head(asking: Connection, session: str) -> Head | None:
    row = asking.execute(
        "select id, revision, version, gone_at is not null from sessions where id = %s", (session,)
    ).fetchone()
    return None if row is None else Head(*row)


def files_since(asking: Connection, versions: dict[str, int]) -> list[StoredFile]:
    """The files of some sessions that have changed since a version of theirs, with what whole ones hold."""
    rows = asking.execute(
        "select session, name, version, kind, size, digest, data from files"
        " join unnest(%s::text[], %s::bigint[]) as known (id, since) on session = id and version > since",
        ([*versions], [*versions.values()]),
    )
    return [StoredFile(*row) for row in rows]


def every_file(asking: Connection) -> list[StoredFile]:
    """What is there of all sessions, without what it holds."""
    rows = asking.execute("select session, name, version, kind, size, digest from files where kind <> %s", (GONE,))
    return [StoredFile(*row) for row in rows]


def grown(asking: Connection, session: str, name: str, start: int, run: int = NO_RUN) -> tuple[bytes, int]:
    """A growing file from a byte on, and where its last part begins."""
    rows = asking.execute(
        "select start, data from segments where session = %s and run = %s and name = %s and start + size > %s"
        " order by start",
        (session, run, name, start),
    )
    parts, last = [], start
    for first, data in rows:
        part = zlib.decompress(data)
        parts.append(part[start - first :] if first < start else part)
        last = first
    return b"".join(parts), last


def lock(held: Connection, session: str, timeout_s: float) -> Head | None:
    """Wait for the session's lock, which ends with the transaction. Its row; None when there is none.

    Raises ``psycopg.errors.LockNotAvailable`` when another replica has it for longer than ``timeout_s``.
    """
    with held.pipeline():
        held.execute("select set_config('lock_timeout', %s, true)", (f"{max(1, int(timeout_s * 1000))}ms",))
        held.execute("select pg_advisory_xact_lock(%s)", (_key(session),))
        found = held.execute(
            "select id, revision, version, gone_at is not null from sessions where id = %s", (session,)
        )
        row = found.fetchone()
    return None if row is None else Head(*row)


def make_home(held: Connection, name: str) -> None:
    """A row for what hubs share beside sessions."""
    held.execute(
        "insert into sessions (id, revision, version, archived) values (%s, 0, 0, true) on conflict do nothing", (name,)
    )


def claim(held: Connection, session: str, names: Iterable[str]) -> tuple[str, int]:
    """Make the row of a new session, with the first of ``names`` that is free and a number that no session ever had.

    It counts when the transaction is committed; until then nobody else gets the name. Raises ``NameTaken``.
    """
    name = ""
    for name in names:
        made = held.execute(
            "insert into sessions (id, revision, version, number, name)"
            " values (%s, 0, 0, nextval('session_numbers'), %s)"
            " on conflict (name) where not archived and gone_at is null do nothing returning number",
            (session, name),
        ).fetchone()
        if made is not None:
            return name, int(made[0])
    raise NameTaken(name, _holder(held, name))


def holder(asking: Connection, name: str) -> str:
    return _holder(asking, name)


def _holder(asking: Connection, name: str) -> str:
    row = asking.execute(
        "select id from sessions where name = %s and not archived and gone_at is null", (name,)
    ).fetchone()
    return "" if row is None else str(row[0])


def write(held: Connection, session: str, base: int, changes: Sequence[Change], about: About) -> Head:
    """Make the next version of a session. It counts when the transaction is committed, and is told to all then.

    ``base`` is the version that the changes were made from. Raises ``Overtaken`` when there is another one, and
    ``psycopg.errors.UniqueViolation`` when another session has the name.
    """
    version = base + 1
    with held.pipeline():
        for change in changes:
            _write_file(held, session, version, change)
        changed = _next(
            held,
            "name = coalesce(%s, name), archived = case when %s::text is null then archived else %s end",
            (about.name, about.name, about.archived),
            session,
            base,
        )
        row = changed.fetchone()
    if row is None:
        raise Overtaken(session)
    return Head(session, row[0], version)


def remove(held: Connection, session: str, base: int) -> Head:
    """The session is gone, with everything that it had."""
    with held.pipeline():
        held.execute("delete from files where session = %s", (session,))
        held.execute("delete from segments where session = %s", (session,))
        row = _next(held, "gone_at = now()", (), session, base).fetchone()
    if row is None:
        raise Overtaken(session)
    return Head(session, row[0], base + 1, gone=True)


def forget_gone(held: Connection, older_than_s: float) -> None:
    """Rows of sessions that are gone for so long that every replica knows it."""
    held.execute("delete from sessions where gone_at < now() - make_interval(secs => %s)", (older_than_s,))


def _next(held: Connection, change: str, words: tuple[object, ...], session: str, base: int):  # type: ignore[no-untyped-def]
    """The revision comes last and is held shortly: whoever sees it sees everything before it."""
    changed = held.execute(
        "with newest as (update fleet set revision = revision + 1 returning revision)"
        f" update sessions set revision = newest.revision, version = version + 1, {change} from newest"
        " where sessions.id = %s and sessions.version = %s returning newest.revision",
        (*words, session, base),
    )
    held.execute("select pg_notify(%s, id || ' ' || revision) from sessions where id = %s", (CHANNEL, session))
    return changed


def _write_file(held: Connection, session: str, version: int, change: Change) -> None:
    held.execute(
        "insert into files (session, name, version, kind, size, digest, data) values (%s, %s, %s, %s, %s, %s, %s)"
        " on conflict (session, name) do update set version = excluded.version, kind = excluded.kind,"
        " size = excluded.size, digest = excluded.digest, data = excluded.data",
        (
            session,
            change.name,
            version,
            change.kind,
            change.size,
            change.digest,
            change.data if change.kind == WHOLE else None,
        ),
    )
    if change.kind == WHOLE:
        return
    if change.start == 0:
        held.execute(
            "delete from segments where session = %s and run = %s and name = %s", (session, NO_RUN, change.name)
        )
    for at in range(0, len(change.data), CHUNK_BYTES):
        append(held, session, NO_RUN, change.name, change.start + at, change.data[at : at + CHUNK_BYTES], 0.0)


def append(held: Connection, session: str, run: int, name: str, start: int, data: bytes, written_at: float) -> None:
    """A part of a file, in the place of one that began there and was shorter."""
    held.execute(
        "insert into segments (session, run, name, start, size, data, written_at) values (%s, %s, %s, %s, %s, %s, %s)"
        " on conflict (session, run, name, start) do update"
        " set size = excluded.size, data = excluded.data, written_at = excluded.written_at"
        " where segments.size < excluded.size",
        (session, run, name, start, len(data), compressed(data), written_at),
    )


def compressed(data: bytes) -> bytes:
    """A large part is one of a flood, which the processor is short of, and disk is not."""
    return zlib.compress(data, zlib.Z_BEST_SPEED if len(data) >= LARGE_BYTES else zlib.Z_DEFAULT_COMPRESSION)


def _key(session: str) -> int:
    """Of the lock of a session while it is changed: below zero, where nobody watches."""
    return -1 - int(session, 36)
