"""The fleet's PostgreSQL: migrations, the order of changes, time limits, leases."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace

import psycopg
import pytest

from hitchpost.errors import DatabaseAway
from hitchpost.fleet import connections, leases, stored
from hitchpost.fleet.claims import Claims
from hitchpost.fleet.database import Database
from hitchpost.fleet.leases import Lease, VolumeBusy
from hitchpost.fleet.migrations import STEPS, OtherVersion, Step
from hitchpost.fleet.stored import WHOLE, About, Change, Overtaken
from hitchpost.store.home import new_id
from tests.fleet.replicas import opened
from tests.postgres import Server
from tests.support import eventually, halt

NEXT = Step(STEPS[-1].number + 1, 1, "alter table sessions add column mood text")


def make(database: Database, name: str) -> str:
    """A session with one file."""
    session = new_id()
    with database.transaction() as held:
        stored.claim(held, session, [name])
        stored.write(held, session, 0, [Change("session.json", WHOLE, 2, 1, b"{}")], About(name, archived=False))
    return session


def change(database: Database, session: str, version: int, data: bytes = b"{}") -> int:
    with database.transaction() as held:
        stored.lock(held, session, 5)
        return stored.write(
            held, session, version, [Change("session.json", WHOLE, len(data), 1, data)], About()
        ).revision


# migrations -----------------------------------------------------------------------------------------------------------


def test_hubs_that_start_at_once_make_the_tables_once(database: str):
    made = [Database(database) for _ in range(4)]
    threads = [threading.Thread(target=each.open) for each in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({each.fleet for each in made}) == 1
    assert made[0].fleet
    for each in made:
        each.close()


def test_the_version_before_goes_on_while_the_next_one_is_there(database: str):
    with opened(database) as old:
        session = make(old, "dev")
        newer = Database(database, steps=(*STEPS, NEXT))
        newer.open()
        assert change(old, session, 1) == 2
        assert change(newer, session, 2) == 3
        newer.close()
        again = Database(database)
        again.open()
        again.close()


def tables(address: str) -> set[str]:
    with psycopg.connect(address) as asking:
        rows = asking.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
    return {name for (name,) in rows}


def test_tables_that_no_version_has_used_go_and_the_first_version_goes_on(database: str):
    first = Database(database, steps=STEPS[:1])
    first.open()
    unused = {"people", "tokens"}
    assert unused < tables(database)
    session = make(first, "dev")
    with opened(database) as newer:
        assert not unused & tables(database)
        assert change(first, session, 1) == 2
        assert change(newer, session, 2) == 3
        again = Database(database, steps=STEPS[:1])
        again.open()
        assert change(again, session, 3) == 4
        again.close()
    first.close()


def test_a_backup_that_reads_a_table_keeps_no_hub_from_starting(database: str):
    first = Database(database, steps=STEPS[:1])
    first.open()
    first.close()
    with psycopg.connect(database) as backup:
        backup.execute("lock table people in access share mode")
        with opened(database) as newer:
            assert make(newer, "dev")
    assert "people" in tables(database), "it stays, and does no harm"


def test_a_version_that_is_too_old_to_write_says_so_and_writes_nothing(database: str):
    step = replace(NEXT, oldest=NEXT.number)
    newer = Database(database, steps=(*STEPS, step))
    newer.open()
    newer.close()
    with pytest.raises(OtherVersion, match="upgrade hitchpost"), opened(database):
        pass


# the order of changes -------------------------------------------------------------------------------------------------


def test_who_catches_up_from_a_revision_misses_none(database: str):
    """Six writers commit at once. Who asks again and again for what came after the last that it saw sees all of it, and
    so does who listens."""
    writers, each = 6, 40
    with opened(database, most=writers + 2) as asked:
        seen: list[int] = []
        heard: list[int] = []

        def read() -> None:
            while len(seen) < writers * each and (not seen or seen[-1] < writers * each):
                with asked.connections.connection() as reading:
                    seen.extend(head.revision for head in stored.heads(reading, seen[-1] if seen else 0))

        asked.listen(lambda session, revision: heard.append(revision), 0)
        words = [[f"{writer}-{number}" for number in range(each)] for writer in range(writers)]
        threads = [
            threading.Thread(target=lambda names=names: [make(asked, name) for name in names]) for names in words
        ]
        threads.append(threading.Thread(target=read))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        everything = list(range(1, writers * each + 1))
        assert seen == everything
        eventually(lambda: len(heard) == writers * each, what="the listener to have heard of all")
        assert heard == everything


def test_a_revision_that_can_be_seen_has_none_before_it_that_cannot(database: str):
    """What commits later has the later revision, also when it began first."""
    with opened(database) as asked:
        early, late = make(asked, "early"), make(asked, "late")
        with asked.transaction() as held:
            stored.lock(held, early, 5)
            revision = change(asked, late, 1)
            done = stored.write(held, early, 1, [Change("session.json", WHOLE, 2, 1, b"{}")], About())
        assert done.revision == revision + 1


def test_a_listener_hears_what_it_missed_while_its_connection_was_gone(postgres: Server):
    heard: list[tuple[str, int]] = []
    with postgres.fresh() as name, opened(postgres.address(name)) as asked:
        asked.listen(lambda session, revision: heard.append((session, revision)), 0)
        first = make(asked, "first")
        eventually(lambda: heard == [(first, 1)], what="the first change")
        postgres.stop()
        postgres.start()
        with psycopg.connect(postgres.socket_address(name), autocommit=True) as other:
            other.execute("select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%'")
        second = eventually(lambda: _try_to_make(asked, "second"), what="PostgreSQL to be back")
        eventually(lambda: heard == [(first, 1), (second, 2)], what="the second change")


def _try_to_make(asked: Database, name: str) -> str:
    try:
        return make(asked, name)
    except DatabaseAway:
        return ""


def test_nobody_writes_over_what_another_has_written(database: str):
    with opened(database) as asked:
        session = make(asked, "dev")
        change(asked, session, 1)
        with pytest.raises(Overtaken):
            change(asked, session, 1)


# time limits ----------------------------------------------------------------------------------------------------------


def test_a_server_that_stands_still_is_away_and_comes_back(postgres: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connections, "ANSWER_S", 0.5)
    monkeypatch.setattr(connections, "CONNECT_S", 2)
    with postgres.fresh() as name, opened(postgres.address(name)) as asked:
        halted = [process.pid for process in postgres.processes()]
        for pid in halted:
            halt(pid)
        try:
            with pytest.raises(DatabaseAway, match="no answer within"):
                asked.revision()
            assert asked.away is not None
        finally:
            for pid in halted:
                os.kill(pid, signal.SIGCONT)
        assert eventually(lambda: _revision(asked) is not None, what="PostgreSQL to be back")
        assert asked.away is None


def _revision(asked: Database) -> int | None:
    try:
        return asked.revision()
    except DatabaseAway:
        return None


def test_a_server_that_is_gone_is_told_at_once_and_without_its_password(postgres: Server):
    with postgres.fresh() as name, opened(postgres.address(name)) as asked:
        asked.revision()
        postgres.stop()
        for _ in range(100):
            with pytest.raises(DatabaseAway) as refused:
                asked.revision()
        assert (refused.value.http_status, refused.value.exit_code) == (503, 1)
        assert f"127.0.0.1:{postgres.port}/{name}" in str(refused.value)
        assert "refused" in str(refused.value)
        assert postgres.password not in str(refused.value)
        postgres.start()
        assert eventually(lambda: _revision(asked) is not None, what="PostgreSQL to be back")


def test_no_more_connections_are_made_than_the_pool_has(database: str):
    with opened(database, most=2) as asked:
        gate = threading.Barrier(3)

        def hold() -> None:
            with asked.connections.connection():
                gate.wait(10)
                gate.wait(10)

        holders = [threading.Thread(target=hold) for _ in range(2)]
        for holder in holders:
            holder.start()
        gate.wait(10)
        waiting = threading.Thread(target=asked.revision)
        waiting.start()
        with psycopg.connect(database) as other:
            query = (
                "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            )
            assert other.execute(query).fetchone() == (2,)
        assert waiting.is_alive()
        gate.wait(10)
        for thread in (*holders, waiting):
            thread.join(10)
            assert not thread.is_alive()


@pytest.mark.parametrize("address", ["http://example.org/", "postgresql://host:port/name"])
def test_an_address_that_makes_no_sense_is_refused(address: str):
    with pytest.raises((connections.NotADatabase, DatabaseAway)):
        Database(address).open()


# leases ---------------------------------------------------------------------------------------------------------------


def test_one_pod_may_work_on_a_volume(database: str):
    with opened(database) as asked:
        ours = Lease("volume-1", "k3v9q0x2m7ab", "pod-1", 1)
        assert leases.take(asked, ours) is None
        assert leases.take(asked, ours) is None
        assert leases.take(asked, replace(ours, run=2)) is None
        with pytest.raises(VolumeBusy, match="pod pod-1 for run 2"):
            leases.take(asked, replace(ours, pod="pod-2", run=3))
        assert not leases.give_back(asked, "volume-1", "pod-2")
        assert leases.holder(asked, "volume-1") == replace(ours, run=2)
        assert leases.give_back(asked, "volume-1", "pod-1")
        assert leases.take(asked, replace(ours, pod="pod-2", run=3)) is None


def test_a_lease_is_taken_by_force_and_it_is_told_from_whom(database: str):
    with opened(database) as asked:
        ours = Lease("volume-1", "k3v9q0x2m7ab", "pod-1", 1)
        leases.take(asked, ours)
        theirs = replace(ours, pod="pod-2", run=2)
        assert leases.take(asked, theirs, force=True) == ours
        assert leases.holder(asked, "volume-1") == theirs
        assert not leases.give_back(asked, "volume-1", "pod-1")


def test_of_many_who_want_a_volume_one_gets_it(database: str):
    with opened(database, most=8) as asked:
        got: list[str] = []

        def take(pod: str) -> None:
            try:
                leases.take(asked, Lease("volume-1", "k3v9q0x2m7ab", pod, 1))
                got.append(pod)
            except VolumeBusy:
                pass

        threads = [threading.Thread(target=take, args=(f"pod-{number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        held = leases.holder(asked, "volume-1")
        assert held is not None
        assert got == [held.pod]


# who watches ----------------------------------------------------------------------------------------------------------


def test_a_session_is_watched_by_one_replica_and_then_by_the_other(database: str):
    with opened(database) as first, opened(database) as second:
        session, other = new_id(), new_id()
        ours, theirs = Claims(first), Claims(second)
        assert ours.watch(session)
        assert ours.watch(session)
        assert not theirs.watch(session)
        assert theirs.watch(other)
        ours.turn([session, other])
        assert (ours.watched, ours.leads) == ({session}, True)
        theirs.turn([session, other])
        assert (theirs.watched, theirs.leads) == ({other}, False)
        ours.unwatch([session])
        assert theirs.watch(session)
        theirs.close()
        ours.turn([session, other])
        assert ours.watched == {session, other}
        ours.close()
        theirs.turn([session, other])
        assert (theirs.watched, theirs.leads) == ({session, other}, True)
        theirs.close()


def test_who_has_lost_its_connection_has_nothing_and_asks_again(postgres: Server):
    with postgres.fresh() as name, opened(postgres.address(name)) as asked:
        claims, session = Claims(asked), new_id()
        claims.turn([session])
        assert (claims.watched, claims.leads) == ({session}, True)
        postgres.restart()
        with pytest.raises(DatabaseAway):
            claims.turn([session])
        assert (claims.watched, claims.leads) == (set(), False)

        def asks_again() -> bool:
            try:
                claims.turn([session])
            except DatabaseAway:
                return False
            return claims.watched == {session} and claims.leads

        eventually(asks_again, what="the claims to be had again")
        claims.close()
