"""The replicas of a fleet, as PostgreSQL sees them: who is connected, what each watches, and which of them leads.

Nobody writes that down: a replica is there while its connections are, and has the locks that they hold.
"""

from __future__ import annotations

from datetime import datetime

from hitchpost.fleet.claims import LEADING
from hitchpost.fleet.connections import APPLICATION
from hitchpost.fleet.database import Database
from hitchpost.fleet.migrations import LOCK
from hitchpost.values import value

OF_SESSIONS, OF_PAIRS = 1, 2
"""``objsubid`` of an advisory lock: whether its key is one number, or two. One below zero is that of a session that is
just being changed."""


@value
class Member:
    """A replica. ``since`` is when its oldest connection was made."""

    name: str
    since: datetime
    connections: int
    watched: int
    leads: bool


def members(database: Database) -> list[Member]:
    """By name. Raises ``DatabaseAway``."""
    with database.connections.connection() as asking:
        rows = asking.execute(
            "with held as ("
            " select pid, count(*) filter (where objsubid = %s and classid::bigint < 1::bigint << 31) as watched,"
            "  bool_or(objsubid = %s and classid = %s and objid = %s) as leads"
            " from pg_locks where locktype = 'advisory' and granted and database ="
            "  (select oid from pg_database where datname = current_database()) group by pid)"
            " select application_name, min(backend_start), count(*), coalesce(sum(watched), 0)::int,"
            "  coalesce(bool_or(leads), false)"
            " from pg_stat_activity left join held using (pid)"
            " where datname = current_database() and application_name like %s group by 1 order by 1",
            (OF_SESSIONS, OF_PAIRS, LOCK, LEADING, f"{APPLICATION} %"),
        ).fetchall()
    return [Member(name.removeprefix(f"{APPLICATION} "), *rest) for name, *rest in rows]
