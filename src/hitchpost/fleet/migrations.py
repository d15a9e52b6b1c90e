"""The tables, in numbered steps. A step only adds, or takes away what no version uses: the version before goes on
beside it.

A step that an older version could not live with names the oldest one that may still write (``oldest``). It belongs into
a release of its own, after one that has stopped to need what goes.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

from hitchpost.errors import HitchpostError
from hitchpost.fleet.connections import Connection

LOCK = 0x68697463
"""Of PostgreSQL's advisory locks with two numbers: the first one of ours."""
MIGRATING = 1


@dataclass(frozen=True, slots=True)
class Step:
    """``oldest`` is the number of the oldest step whose code may write to the tables that this one leaves."""

    number: int
    oldest: int
    sql: str


STEPS = (
    Step(
        1,
        1,
        """
        create table fleet (
            one boolean primary key default true check (one),
            id text not null,
            revision bigint not null
        );
        insert into fleet (id, revision) values (gen_random_uuid()::text, 0);

        create sequence session_numbers;
        create table sessions (
            id text primary key,
            revision bigint not null,
            version bigint not null,
            number bigint unique,
            name text,
            archived boolean not null default false,
            gone_at timestamptz
        );
        create index sessions_by_revision on sessions (revision);
        create unique index session_names on sessions (name) where not archived and gone_at is null;

        create table files (
            session text not null,
            name text not null,
            version bigint not null,
            kind text not null,
            size bigint not null,
            digest bigint not null,
            data bytea,
            primary key (session, name)
        );
        create table segments (
            session text not null,
            run integer not null,
            name text not null,
            start bigint not null,
            size bigint not null,
            data bytea not null,
            written_at double precision not null,
            primary key (session, run, name, start)
        );

        create table leases (
            volume text primary key,
            session text not null,
            pod text not null,
            run integer not null,
            taken_at timestamptz not null default now()
        );

        create table people (
            name text primary key,
            role text not null,
            sessions_max integer,
            cpu_max double precision,
            memory_max_bytes bigint,
            storage_max_bytes bigint,
            created_at timestamptz not null default now()
        );
        create table tokens (
            digest text primary key,
            person text not null references people (name) on delete cascade,
            role text not null,
            name text not null default '',
            created_at timestamptz not null default now(),
            expires_at timestamptz,
            used_at timestamptz
        );
        create index tokens_by_person on tokens (person);
        """,
    ),
    # No version has ever read or written ``people`` and ``tokens``: hubs share the file of both. So the first version
    # misses nothing. Who reads them just now, as a backup does, is not waited for: then they stay, and do no harm.
    Step(
        2,
        1,
        """
        do $$ begin
            perform set_config('lock_timeout', '2s', true);
            drop table if exists tokens, people;
            perform set_config('lock_timeout', '0', true);
        exception when lock_not_available then
            null;
        end $$;
        """,
    ),
)


class OtherVersion(HitchpostError):
    """Raised when the database was changed by a newer version, beside which this one may not write."""

    exit_code = 4
    http_status = 503
    code = "newer_schema"

    def __init__(self, where: str, oldest: int, known: int) -> None:
        super().__init__(
            f"the database at {where} was changed by a newer hitchpost"
            f" (it takes writers from step {oldest} on; this one knows {known})",
            "upgrade hitchpost",
        )


def migrate(connection: Connection, where: str, steps: tuple[Step, ...] = STEPS) -> int:
    """Bring the tables to the newest step, one hub at a time. How many steps were done. Raises ``OtherVersion``."""
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s, %s)", (LOCK, MIGRATING))
        connection.execute(
            "create table if not exists versions ("
            "version integer primary key, oldest integer not null, at timestamptz not null default now())"
        )
        row = connection.execute("select coalesce(max(version), 0), coalesce(max(oldest), 0) from versions").fetchone()
        assert row is not None
        there, oldest = row
        known = steps[-1].number
        if oldest > known:
            raise OtherVersion(where, oldest, known)
        wanted = [step for step in steps if step.number > there]
        for step in wanted:
            # several statements at once: without parameters
            connection.execute(psycopg.sql.SQL(step.sql))
            connection.execute("insert into versions (version, oldest) values (%s, %s)", (step.number, step.oldest))
    return len(wanted)


def may_write(connection: Connection, where: str, steps: tuple[Step, ...] = STEPS) -> None:
    """Raises ``OtherVersion`` when a newer version has changed the tables meanwhile."""
    row = connection.execute("select coalesce(max(oldest), 0) from versions").fetchone()
    if row is not None and row[0] > steps[-1].number:
        raise OtherVersion(where, row[0], steps[-1].number)
