"""The copy of the fleet's files: what one replica changes, the others have."""

from __future__ import annotations

import json
import os
import shutil
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from hitchpost import wire
from hitchpost.errors import DatabaseAway, HomeRefused, NameTaken, NoSuchSession
from hitchpost.fleet import changing, stored
from hitchpost.fleet.copied import HOME, BadName, is_copied
from hitchpost.fleet.marker import mark
from hitchpost.fleet.output import JOINED_BYTES
from hitchpost.fleet.stored import WHOLE, About, Change
from hitchpost.model import run as runs
from hitchpost.model.record import ARCHIVED
from hitchpost.notify.journal import Journal
from hitchpost.store import files, locks, quarantine, records, runfiles, story
from hitchpost.store.home import make_run_folder, new_id, run_folder
from hitchpost.terminal import output
from hitchpost.values import replace
from tests.fleet.replicas import Replica, kept, record_of, replica, write_new
from tests.postgres import Server
from tests.support import eventually


@pytest.fixture
def pair(database: str) -> Iterator[tuple[Replica, Replica]]:
    with replica(database) as first, replica(database) as second:
        yield first, second


def whole(made: Replica, session: str) -> dict[str, bytes]:
    """Every file of a session, those that no other replica has excepted."""
    found = {}
    for folder, _, names in os.walk(made.folder(session)):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), made.folder(session))
            if is_copied(path):
                found[path] = made.read(session, path)
    return found


def events(made: Replica, session: str) -> list[str]:
    return [str(line["event"]) for line in story.read(made.folder(session))]


# what is copied -------------------------------------------------------------------------------------------------------


def test_a_session_that_one_replica_makes_the_other_has(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make("dev")
    assert second.mirror.catch_up() == [session]
    assert whole(second, session) == whole(first, session)
    assert sorted(whole(second, session)) == ["session.json", "state.json", "story.jsonl"]
    assert second.mirror.catch_up() == []
    assert records.read(second.folder(session)).index == 1


def test_what_one_changes_the_other_has_byte_by_byte(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    first.session(session).transition(runs.STARTING, run=1)
    where = make_run_folder(first.folder(session), 1)
    with first.mirror.working(session):
        runfiles.write_intent(where, runs.USER, "enough", 3)
        first.session(session).keep_prompt("do it", typed=True)
    assert second.mirror.catch_up() == [session]
    assert whole(second, session) == whole(first, session)
    assert "runs/1/intent.json" in whole(second, session)
    second.session(session).transition(runs.RUNNING, run=1)
    assert first.mirror.catch_up() == [session]
    assert first.session(session).read().state == runs.RUNNING
    assert whole(second, session) == whole(first, session)


@pytest.mark.parametrize(
    "name",
    [
        "lock",
        "tmux.sock",
        "box.json",
        ".session.json.1.abcd.tmp",
        "runs/1/keeper.lock",
        "runs/1/ctl.sock",
        "runs/1/keeper.log",
        "runs/1/.spare-exit",
        "runs/1/output/00000000000000000000.log",
        "runs/1/output/times.bin",
        "inside/a.json",
        "git/config.json",
    ],
)
def test_locks_sockets_room_and_output_stay_where_they_are(pair: tuple[Replica, Replica], name: str):
    first, second = pair
    session = first.make()
    path = os.path.join(first.folder(session), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with first.mirror.working(session), open(path, "w") as file:
        file.write("mine")
    second.mirror.catch_up()
    assert not os.path.exists(os.path.join(second.folder(session), name)) or name == "lock"
    assert not is_copied(name)


def test_a_link_in_a_session_is_not_followed(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    with first.mirror.working(session):
        os.symlink("/etc/hostname", os.path.join(first.folder(session), "seen.json"))
        os.symlink("/etc", os.path.join(first.folder(session), "runs"))
    second.mirror.catch_up()
    assert sorted(whole(second, session)) == ["session.json", "state.json", "story.jsonl"]


@pytest.mark.parametrize(
    "name",
    [
        "../session.json",
        "/etc/passwd.json",
        "runs/../../x.json",
        "runs/1/../../../x.json",
        "runs/01/exit.json",
        "runs/1/a/exit.json",
        "images/../x.json",
        "a\0.json",
        "a\n.json",
        ".hidden.json",
        "runs//exit.json",
        "",
        "sessions.txt",
        "./session.json",
        "notify/log.jsonl",
    ],
)
def test_a_name_that_could_lead_out_of_the_folder_is_refused(pair: tuple[Replica, Replica], name: str):
    first, second = pair
    assert not is_copied(name)
    if "\0" in name:
        return  # PostgreSQL takes no such text
    session = first.make()
    second.mirror.catch_up()
    with first.database.transaction() as held:
        stored.write(held, session, 1, [Change(name, WHOLE, 2, 0, b"{}")], About())
    before = {folder: names for folder, _, names in os.walk(second.home)}
    with pytest.raises(BadName):
        second.mirror.catch_up()
    assert {folder: names for folder, _, names in os.walk(second.home)} == before


def test_a_session_that_is_removed_goes_everywhere(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make("dev")
    second.mirror.catch_up()
    with first.mirror.working(session):
        gone = os.path.join(os.path.dirname(first.folder(session)), f".removed-{session}")
        os.rename(first.folder(session), gone)
    assert second.mirror.catch_up() == [session]
    assert not os.path.exists(second.folder(session))
    with pytest.raises(locks.Removed), second.session(session).lock():
        pass
    second.make("dev")  # its name is free
    with first.database.connections.connection() as asking:
        left = asking.execute("select count(*) from files where session = %s", (session,)).fetchone()
    assert left == (0,)


def test_files_that_are_lost_in_a_copy_come_back_and_nothing_is_removed(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    before = whole(first, session)
    os.unlink(os.path.join(second.folder(session), records.RECORD))
    os.unlink(os.path.join(second.folder(session), files.STORY))
    with second.mirror.working(session):
        pass
    assert whole(second, session) == before
    assert first.mirror.catch_up() == []


def test_a_copy_that_is_deleted_under_its_hub_removes_no_session(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    os.rename(second.folder(session), f"{second.home}/elsewhere")
    with pytest.raises(locks.Removed), second.mirror.working(session):
        pass
    assert not second.mirror.tell(session)
    first.session(session).transition(runs.STARTING, run=1)
    assert second.mirror.catch_up() == [session]
    assert whole(second, session) == whole(first, session)


# one lock for all -----------------------------------------------------------------------------------------------------


def test_the_lock_of_a_session_is_that_of_the_fleet(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    with first.mirror.working(session):
        with pytest.raises(locks.LockTimeout), second.session(session).lock(timeout_s=0.1):
            pass
        first.session(session).transition(runs.STARTING, run=1)  # it may be taken again by who has it
    with second.session(session).lock(timeout_s=5):
        assert second.session(session).read().state == runs.STARTING


def test_who_waits_for_a_lock_finds_what_the_other_has_written(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    refused: list[BaseException] = []

    def start() -> None:
        try:
            second.session(session).transition(runs.STARTING, run=1)
        except runs.InvalidTransition as error:
            refused.append(error)

    with first.mirror.working(session):
        other = threading.Thread(target=start)
        other.start()
        first.session(session).transition(runs.STARTING, run=1)
    other.join()
    assert len(refused) == 1
    assert events(second, session) == ["created", "state"]


def test_of_two_who_start_a_session_at_once_one_does(pair: tuple[Replica, Replica]):
    sessions = [pair[0].make(f"s{number}") for number in range(10)]
    pair[1].mirror.catch_up()
    started: list[str] = []

    def start(made: Replica) -> None:
        for session in sessions:
            try:
                made.session(session).transition(runs.STARTING, run=1)
                started.append(session)
            except runs.InvalidTransition:
                pass

    threads = [threading.Thread(target=start, args=(made,)) for made in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(started) == sorted(sessions)
    for made in pair:
        made.mirror.catch_up()
    for session in sessions:
        assert whole(pair[0], session) == whole(pair[1], session)
        assert events(pair[0], session) == ["created", "state"]


def test_what_is_committed_in_the_middle_is_there_and_the_lock_is_still_ours(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    with first.mirror.working(session):
        first.session(session).transition(runs.STARTING, run=1)
        revision = first.mirror.commit(session)
        assert second.mirror.catch_up() == [session]
        assert second.session(session).read().state == runs.STARTING
        with pytest.raises(locks.LockTimeout), second.session(session).lock(timeout_s=0.1):
            pass
        first.session(session).transition(runs.RUNNING, run=1)
    assert first.mirror.commit(session) == revision + 1
    second.mirror.catch_up()
    assert whole(second, session) == whole(first, session)


def test_what_was_raised_under_the_lock_is_raised_and_what_was_written_is_told(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()

    def change() -> None:
        with first.mirror.working(session):
            first.session(session).transition(runs.STARTING, run=1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change()
    second.mirror.catch_up()
    assert second.session(session).read().state == runs.STARTING


# names ----------------------------------------------------------------------------------------------------------------


def test_a_name_is_given_once_and_numbers_are_never_given_again(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make("dev")
    with pytest.raises(NameTaken, match=session):
        second.make("dev")
    assert records.ids(second.home) == []
    with second.mirror.making(other := new_id()) as claim:
        name, number = claim(["dev", "dev-2"])
        write_new(second.home, record_of(other, name, number))
    assert name == "dev-2"
    assert number > records.read(first.folder(session)).index


def test_a_session_cannot_be_renamed_to_a_name_that_is_taken_elsewhere(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make("dev")
    other = second.make("test")
    stored_session = second.session(other)
    before = whole(second, other)

    def rename() -> None:
        with stored_session.lock():
            stored_session.tell("edited", run=0, name="dev")
            stored_session.save(replace(stored_session.record(), name="dev"))

    with pytest.raises(NameTaken, match=session):
        rename()
    assert whole(second, other) == before
    with first.session(session).lock():
        first.session(session).change_record(ARCHIVED, run=1)
    with stored_session.lock():  # an archived session's name can be had
        stored_session.save(replace(stored_session.record(), name="dev"))


def test_of_many_who_want_a_name_each_gets_another(pair: tuple[Replica, Replica]):
    got: list[tuple[str, int]] = []

    def make(made: Replica) -> None:
        for _ in range(5):
            session = new_id()
            with made.mirror.making(session) as claim:
                name, number = claim(f"dev-{tried}" for tried in range(1, 100))
                write_new(made.home, record_of(session, name, number))
            got.append((name, number))

    threads = [threading.Thread(target=make, args=(made,)) for made in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name for name, _ in got} == {f"dev-{number}" for number in range(1, 11)}
    assert len({number for _, number in got}) == 10


# PostgreSQL is away ---------------------------------------------------------------------------------------------------


def test_a_change_that_cannot_be_told_is_undone_and_can_be_made_later(postgres: Server):
    with postgres.fresh() as name, replica(postgres.address(name)) as made:
        session = made.make()
        before = whole(made, session)
        stored_session = made.session(session)

        def change() -> None:
            with made.mirror.working(session):
                stored_session.transition(runs.STARTING, run=1)
                runfiles.write_intent(make_run_folder(made.folder(session), 1), runs.USER, "", 1)
                stored_session.save(replace(stored_session.record(), description="another"))
                postgres.stop()

        with pytest.raises(DatabaseAway):
            change()
        assert whole(made, session) == before
        with pytest.raises(DatabaseAway):
            stored_session.transition(runs.STARTING, run=1)
        with pytest.raises(DatabaseAway):
            made.make("other")
        assert records.ids(made.home) == [session]
        assert stored_session.read().state == runs.CREATED
        postgres.start()
        eventually(lambda: not _is_away(made), what="PostgreSQL to be back")
        stored_session.transition(runs.STARTING, run=1)
        assert made.mirror.catch_up() == []


def _is_away(made: Replica) -> bool:
    try:
        made.mirror.catch_up()
    except DatabaseAway:
        return True
    return False


def test_a_session_whose_removal_cannot_be_told_is_still_there(postgres: Server):
    with postgres.fresh() as name, replica(postgres.address(name)) as made:
        session = made.make()
        before = whole(made, session)

        def remove() -> None:
            with made.mirror.working(session):
                top, name = os.path.split(made.folder(session))
                os.rename(made.folder(session), os.path.join(top, f".removed-{name}"))
                postgres.stop()

        with pytest.raises(DatabaseAway):
            remove()
        assert whole(made, session) == before
        postgres.start()


def test_a_session_that_could_not_be_told_was_never_made(postgres: Server):
    with postgres.fresh() as name, replica(postgres.address(name)) as made:
        session = new_id()

        def make() -> None:
            with made.mirror.making(session) as claim:
                write_new(made.home, record_of(session, *claim(["dev"])))
                postgres.stop()

        with pytest.raises(DatabaseAway):
            make()
        assert os.listdir(os.path.join(made.home, "sessions")) == []
        postgres.start()


def test_what_a_keeper_writes_while_postgresql_is_away_is_told_when_it_is_back(postgres: Server):
    with postgres.fresh() as name, replica(postgres.address(name)) as first, replica(postgres.address(name)) as second:
        session = first.make()
        second.mirror.catch_up()
        first.session(session).transition(runs.STARTING, run=1)
        with kept(first.folder(session)) as where:
            postgres.stop()
            keeper_writes(first, session, runs.RUNNING)
            with pytest.raises(DatabaseAway):
                first.mirror.tell(session)
            keeper_writes(first, session, runs.COMPLETED)
            files.write_object(os.path.join(where, wire.EXIT), {"schema": 1, "code": 0})
        postgres.start()
        eventually(lambda: not _is_away(first), what="PostgreSQL to be back")
        assert first.session(session).read().state == runs.COMPLETED
        assert first.mirror.tell(session)
        eventually(lambda: not _is_away(second), what="the other to catch up")
        assert whole(first, session) == whole(second, session)
        assert second.session(session).read().state == runs.COMPLETED


def keeper_writes(made: Replica, session: str, state: str) -> None:
    """As a keeper does, which knows of no fleet."""
    guards = dict(locks.GUARDS)
    locks.GUARDS.clear()
    try:
        made.session(session).transition(state, run=1)
    finally:
        locks.GUARDS.update(guards)


# a crash --------------------------------------------------------------------------------------------------------------


def test_a_copy_that_is_ahead_is_put_right(database: str):
    with replica(database) as first:
        session = first.make()
        before = whole(first, session)
    crashed = Replica(first.home, first.database, first.mirror)  # nobody guards it: nothing is told
    crashed.session(session).transition(runs.STARTING, run=1)
    crashed.session(session).keep_prompt("x", typed=True)
    crashed.session(session).mark_seen()
    write_new(first.home, record_of(unknown := new_id(), "unknown", 7))
    with replica(database, first.home) as again:
        assert whole(again, session) == before
        assert records.ids(again.home) == [session]
        assert [name.split(".")[0] for name in quarantine.contents(again.home)] == [unknown]
        again.session(session).transition(runs.STARTING, run=1)
        assert events(again, session) == ["created", "state"]


def test_a_copy_that_is_behind_gets_what_it_lacks(database: str):
    with replica(database) as first:
        gone, session = first.make("gone"), first.make("dev")
    with replica(database) as second:
        second.session(session).transition(runs.STARTING, run=1)
        with second.mirror.working(gone):
            os.rename(second.folder(gone), f"{second.home}/away")
        new = second.make("new")
        with replica(database, first.home) as again:
            assert sorted(records.ids(again.home)) == sorted([session, new])
            assert whole(again, session) == whole(second, session)


def test_a_run_that_is_kept_here_stays_ahead_and_is_told(database: str):
    """A hub was killed and comes back beside a keeper that went on."""
    with replica(database) as first, replica(database) as second:
        session = first.make()
        first.session(session).transition(runs.STARTING, run=1)
        second.mirror.catch_up()
        with kept(first.folder(session)):
            keeper_writes(first, session, runs.RUNNING)
            first.mirror.close()
            with replica(database, first.home) as again:
                assert again.session(session).read().state == runs.RUNNING
                assert again.mirror.watch(session)
                assert again.mirror.tell(session)
                second.mirror.catch_up()
                assert second.session(session).read().state == runs.RUNNING
                assert whole(again, session) == whole(second, session)


def test_an_end_that_was_seen_here_while_no_hub_was_there_is_told(database: str):
    with replica(database) as first:
        session = first.make()
        first.session(session).transition(runs.STARTING, run=1)
        first.session(session).transition(runs.RUNNING, run=1)
    where = make_run_folder(first.folder(session), 1)
    files.write_object(os.path.join(where, wire.EXIT), {"schema": 1, "code": 0})
    first.session(session).transition(runs.COMPLETED, run=1)
    with replica(database, first.home) as again, replica(database) as second:
        assert again.session(session).read().state == runs.COMPLETED
        assert again.mirror.tell(session)
        second.mirror.catch_up()
        assert whole(again, session) == whole(second, session)


def test_a_later_run_that_postgresql_knows_counts_more_than_an_end_here(database: str):
    with replica(database) as first, replica(database) as second:
        session = first.make()
        first.session(session).transition(runs.STARTING, run=1)
        first.mirror.close()
        where = make_run_folder(first.folder(session), 1)
        files.write_object(os.path.join(where, wire.EXIT), {"schema": 1, "code": 1})
        first.session(session).transition(runs.FAILED, run=1)
        second.mirror.catch_up()
        second.session(session).transition(runs.FAILED, run=1)
        with second.session(session).lock():
            second.session(session).next_run()
        with replica(database, first.home) as again:
            assert again.session(session).read().run == 2
            assert whole(again, session) == whole(second, session)


def test_an_older_database_in_the_place_of_a_newer_one_is_what_counts(pair: tuple[Replica, Replica]):
    first, _ = pair
    session, other = first.make("dev"), first.make("other")
    first.session(session).transition(runs.STARTING, run=1)
    first.mirror.catch_up()
    with first.database.transaction() as held:  # as a backup of an hour ago
        held.execute("update fleet set revision = 1")
        held.execute("delete from files where session = %s", (other,))
        held.execute("delete from sessions where id = %s", (other,))
        held.execute("update sessions set revision = 1 where id = %s", (session,))
    assert other in first.mirror.catch_up()
    assert records.ids(first.home) == [session]


# the story ------------------------------------------------------------------------------------------------------------


def test_lines_that_both_have_written_are_in_both_stories_once(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    for made, text in ((first, "one"), (second, "two")):
        made.session(session).mention("prompt", run=1, details={"text": text})
    assert first.mirror.tell(session)
    assert second.mirror.catch_up() == [session]
    assert second.mirror.tell(session)
    first.mirror.catch_up()
    assert whole(first, session) == whole(second, session)
    told = [line.get("text") for line in story.read(first.folder(session)) if line["event"] == "prompt"]
    assert told == ["one", "two"]
    assert not first.mirror.tell(session)
    assert not second.mirror.tell(session)


def test_a_long_story_is_kept_in_parts(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    for number in range(300):
        with first.session(session).lock():
            first.session(session).tell("note", run=1, reason=f"{number:0100d}")
        if number % 50 == 0:
            second.mirror.catch_up()
    second.mirror.catch_up()
    assert whole(first, session) == whole(second, session)
    with first.database.connections.connection() as asking:
        row = asking.execute("select count(*), max(size) from segments where session = %s", (session,)).fetchone()
    assert row is not None
    parts, longest = row
    assert parts < 20
    assert longest < 3 * stored.PART_BYTES
    with replica(_address(first), first.home) as again:
        assert again.mirror.catch_up() == []


def _address(made: Replica) -> str:
    from psycopg.conninfo import make_conninfo

    return make_conninfo("", **made.database.connections._options)


# what a keeper writes -------------------------------------------------------------------------------------------------


def test_only_who_watches_a_run_tells_what_its_keeper_writes(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    first.session(session).transition(runs.STARTING, run=1)
    second.mirror.catch_up()
    with kept(first.folder(session)), kept(second.folder(session)):
        keeper_writes(second, session, runs.RUNNING)
        assert first.mirror.watch(session)
        assert second.mirror.tell(session)  # its story grew
        first.mirror.catch_up()
        assert first.session(session).read().state == runs.STARTING
        keeper_writes_state(first, session, runs.RUNNING)
        assert first.mirror.tell(session)
        second.mirror.catch_up()
        assert second.session(session).read().state == runs.RUNNING


def keeper_writes_state(made: Replica, session: str, state: str) -> None:
    """The state alone, as who stands in for a keeper writes what the pod sends."""
    path = os.path.join(made.folder(session), files.STATE)
    files.write_object(path, {**files.read_object(path), "state": state})


def test_that_output_came_is_not_told_each_time(pair: tuple[Replica, Replica], monkeypatch: pytest.MonkeyPatch):
    first, second = pair
    session = first.make()
    first.session(session).transition(runs.STARTING, run=1)
    second.mirror.catch_up()
    first.mirror.watch(session)
    path = os.path.join(first.folder(session), files.STATE)
    files.write_object(path, {**files.read_object(path), "last_activity_at": files.stamp(), "last_activity_hash": 7})
    assert not first.mirror.tell(session)
    monkeypatch.setattr(changing, "ACTIVITY_EVERY_S", 0)
    assert first.mirror.tell(session)
    second.mirror.catch_up()
    assert whole(first, session) == whole(second, session)


def test_a_state_never_goes_back(pair: tuple[Replica, Replica]):
    """One who stood still and comes late does not undo what is known by then."""
    first, second = pair
    session = first.make()
    first.session(session).transition(runs.STARTING, run=1)
    second.mirror.catch_up()
    with kept(second.folder(session)):
        keeper_writes_state(second, session, runs.RUNNING)
        first.session(session).transition(runs.FAILED, run=1)
        second.mirror.catch_up()
        assert second.session(session).read().state == runs.FAILED


# output ---------------------------------------------------------------------------------------------------------------

FIRST = wire.segment_name(0)


def shipped(made: Replica, session: str, *parts: tuple[str, int, bytes]) -> None:
    for name, offset, data in parts:
        made.mirror.ship(session, 1, name, offset, data, 1_700_000_000.5)


def read_all(made: Replica, session: str) -> list[tuple[int, bytes, int]]:
    found = []
    with output.Reader(os.path.join(run_folder(made.folder(session), 1), wire.OUTPUT)) as reader:
        while (chunk := reader.read()).data:
            found.append((chunk.offset, chunk.data, chunk.lost))
    return found


def test_output_that_one_ships_the_other_can_read(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    times = wire.time_record(wire.AT_OFFSET, 5, 11)
    shipped(first, session, (FIRST, 0, b"hello "), (FIRST, 6, b"world"), (wire.segment_name(11), 0, b"!"))
    shipped(first, session, (wire.TIMES, 0, times))
    assert first.mirror.output.shipped(session, 1) == {FIRST: 11, wire.segment_name(11): 1, wire.TIMES: 17}
    second.mirror.fetch_output(session, 1)
    second.mirror.fetch_output(session, 1)
    assert read_all(second, session) == [(0, b"hello world", 0), (11, b"!", 0)]
    folder = os.path.join(run_folder(second.folder(session), 1), wire.OUTPUT)
    assert output.last_written(folder) == 1_700_000_000.5
    assert [moment.value for moment in output.moments(folder)] == [11]
    shipped(first, session, (wire.segment_name(11), 1, b"?"))
    second.mirror.fetch_output(session, 1)
    assert read_all(second, session)[-1] == (11, b"!?", 0)


def test_what_was_shipped_twice_is_there_once(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    shipped(first, session, (FIRST, 0, b"0123"))
    shipped(second, session, (FIRST, 0, b"0123"), (FIRST, 2, b"2345"), (FIRST, 0, b"012345678"))
    second.mirror.fetch_output(session, 1)
    assert read_all(second, session) == [(0, b"012345678", 0)]


def test_a_hub_that_has_less_of_the_time_index_takes_nothing_away(pair: tuple[Replica, Replica]):
    """Nobody looked at it there, and now it watches. One that was rewritten is another."""
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    whole = b"".join(wire.time_record(wire.AT_OFFSET, 1, number) for number in range(1000))
    shipped(first, session, (wire.TIMES, 0, whole[:10_000]), (wire.TIMES, 10_000, whole[10_000:]))
    path = Path(run_folder(second.folder(session), 1), wire.OUTPUT, wire.TIMES)
    for there, index in ((whole, whole[:17]), (whole, whole[:10_200]), (whole[17:34], whole[17:34])):
        shipped(second, session, (wire.TIMES, 0, index))
        second.mirror.fetch_output(session, 1)
        assert path.read_bytes() == there
        path.unlink()
    shipped(second, session, (wire.TIMES, 17, whole[34:51]))
    second.mirror.fetch_output(session, 1)
    assert path.read_bytes() == whole[17:51]


def parts_of(made: Replica, session: str) -> list[tuple[str, int, int]]:
    with made.database.connections.connection() as asking:
        rows = asking.execute(
            "select name, start, size from segments where session = %s and run = 1 order by name, start", (session,)
        ).fetchall()
    return [(name, start, size) for name, start, size in rows]


def test_what_comes_slowly_is_in_few_parts_and_is_read_while_it_grows(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    lines = [b"%099d\n" % number for number in range(200)]
    for number, line in enumerate(lines):
        shipped(first, session, (FIRST, number * 100, line), (wire.TIMES, number * 17, b"%017d" % number))
        if number % 7 == 0:
            second.mirror.fetch_output(session, 1)
    second.mirror.fetch_output(session, 1)
    assert b"".join(data for _, data, _ in read_all(second, session)) == b"".join(lines)
    assert first.mirror.output.shipped(session, 1) == {FIRST: 20_000, wire.TIMES: 3_400}
    parts = parts_of(first, session)
    assert len(parts) <= 2 + 20_000 // JOINED_BYTES
    assert max(size for _, _, size in parts) < JOINED_BYTES + 100
    large = b"x" * JOINED_BYTES
    shipped(first, session, (FIRST, 20_000, large))
    assert parts_of(first, session)[-2:-1] == [(FIRST, 20_000, JOINED_BYTES)], "what is large is not written twice"


def test_parts_of_hubs_that_do_not_join_them_and_of_one_that_comes_late_fit(pair: tuple[Replica, Replica]):
    """A hub of the version before, or one that stood still, adds a part where it believes the end to be."""
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    whole = bytes(range(100))

    def other(start: int, end: int) -> None:
        with second.database.transaction() as held:
            stored.append(held, session, 1, FIRST, start, whole[start:end], 0.0)

    def ours(start: int, end: int) -> None:
        shipped(first, session, (FIRST, start, whole[start:end]))

    ours(0, 10)
    other(10, 20)
    second.mirror.fetch_output(session, 1)
    ours(20, 30)
    ours(15, 40)
    other(30, 35)  # behind what is there
    ours(40, 50)
    other(0, 5)  # shorter than what is there
    ours(50, 70)
    other(60, 80)
    ours(70, 100)
    assert first.mirror.output.shipped(session, 1) == {FIRST: 100}
    for _ in range(2):
        second.mirror.fetch_output(session, 1)
        assert b"".join(data for _, data, _ in read_all(second, session)) == whole
        assert [lost for _, _, lost in read_all(second, session)] == [0] * len(read_all(second, session))
        shutil.rmtree(os.path.join(run_folder(second.folder(session), 1), wire.OUTPUT))


def test_two_hubs_that_add_to_one_part_at_the_same_time_lose_nothing(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    whole = os.urandom(3000)
    with ThreadPoolExecutor(2) as threads:
        for end in range(30, 3001, 30):
            sizes = (end, end - 10) if end % 60 else (end - 10, end)
            calls = [
                threads.submit(shipped, hub, session, (FIRST, max(0, end - 60), whole[max(0, end - 60) : size]))
                for hub, size in zip(pair, sizes, strict=True)
            ]
            for call in calls:
                call.result(60)
            assert first.mirror.output.shipped(session, 1)[FIRST] == end
    second.mirror.fetch_output(session, 1)
    assert b"".join(data for _, data, _ in read_all(second, session)) == whole


def test_output_that_was_lost_is_told_as_a_gap(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    shipped(first, session, (FIRST, 0, b"0123"), (FIRST, 10, b"abc"), (FIRST, 13, b"d"))
    second.mirror.fetch_output(session, 1)
    assert read_all(second, session) == [(0, b"0123", 0), (10, b"abcd", 6)]


def test_a_log_that_is_dropped_while_the_rest_of_it_is_brought_gets_no_hole(
    pair: tuple[Replica, Replica], monkeypatch: pytest.MonkeyPatch
):
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    shipped(first, session, (FIRST, 0, b"0123"))
    second.mirror.fetch_output(session, 1)
    shipped(first, session, (FIRST, 4, b"4567"))
    path, decompress = Path(run_folder(second.folder(session), 1), wire.OUTPUT, FIRST), zlib.decompress

    def dropped_meanwhile(data: bytes) -> bytes:
        path.unlink()
        return decompress(data)

    with monkeypatch.context() as patched:
        patched.setattr(zlib, "decompress", dropped_meanwhile)
        second.mirror.fetch_output(session, 1)
    assert not path.exists()
    second.mirror.fetch_output(session, 1)
    assert read_all(second, session) == [(0, b"01234567", 0)]


def test_of_very_long_output_the_newest_is_kept(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    second.mirror.catch_up()
    first.mirror.output.cap_bytes = 1000
    for number in range(30):
        shipped(first, session, (FIRST, number * 100, b"%0100d" % number))
    second.mirror.fetch_output(session, 1)
    found = read_all(second, session)
    assert sum(len(data) for _, data, _ in found) <= 1100
    assert found[-1][1].endswith(b"%0100d" % 29)
    assert found[0][0] == found[0][2] >= 1900


def test_output_of_a_name_that_is_none_of_a_log_is_refused(pair: tuple[Replica, Replica]):
    first, second = pair
    session = first.make()
    with pytest.raises(BadName):
        first.mirror.ship(session, 1, "../x.log", 0, b"x")
    with first.database.transaction() as held:
        stored.append(held, session, 1, "../../../x", 0, b"x", 0)
    second.mirror.catch_up()
    with pytest.raises(BadName):
        second.mirror.fetch_output(session, 1)


def test_output_goes_with_its_session_and_none_comes_after_it(pair: tuple[Replica, Replica]):
    first, _ = pair
    session = first.make()
    shipped(first, session, (FIRST, 0, b"0123"))
    with first.mirror.working(session):
        os.rename(first.folder(session), f"{first.home}/away")
    with pytest.raises(NoSuchSession):
        shipped(first, session, (FIRST, 4, b"4567"))
    assert first.mirror.output.shipped(session, 1) == {}


# what hubs share beside sessions --------------------------------------------------------------------------------------


def test_what_hubs_share_is_the_same_everywhere(pair: tuple[Replica, Replica]):
    first, second = pair
    for made in pair:
        Journal(made.home).open()
    with first.mirror.working(HOME):
        Journal(first.home).write([{"what": "up"}])
        files.write_object(os.path.join(first.home, "retention.json"), {"schema": 1, "due_s": {}})
        os.makedirs(os.path.join(first.home, "usage"))
        files.append_line(os.path.join(first.home, "usage", "2026-11-18.jsonl"), "{}")
        files.write_object(os.path.join(first.home, "tokens.json"), {"schema": 1})
        files.write_object(os.path.join(first.home, "numbers.json"), {"schema": 1})
    assert second.mirror.catch_up() == [HOME]
    for name in ("notify/log.jsonl", "retention.json", "tokens.json", "usage/2026-11-18.jsonl"):
        with open(os.path.join(first.home, name)) as ours, open(os.path.join(second.home, name)) as theirs:
            assert ours.read() == theirs.read()
    assert not os.path.exists(os.path.join(second.home, "numbers.json"))
    with second.mirror.working(HOME):
        Journal(second.home).write([{"what": "down"}])
    first.mirror.catch_up()
    with open(os.path.join(first.home, "notify/log.jsonl")) as log:
        assert [json.loads(line)["what"] for line in log] == ["up", "down"]


def test_a_log_that_was_shortened_is_short_everywhere(pair: tuple[Replica, Replica]):
    first, second = pair
    path, theirs = (os.path.join(made.home, "notify/log.jsonl") for made in pair)
    with first.mirror.working(HOME):
        Journal(first.home).open()
        files.append_line(path, "x" * 20_000)
    second.mirror.catch_up()
    with first.mirror.working(HOME):
        files.replace_file(path, b"short\n")
    second.mirror.catch_up()
    with open(theirs) as log:
        assert log.read() == "short\n"
    with first.mirror.working(HOME):
        files.append_line(path, "and more")
    second.mirror.catch_up()
    with open(theirs) as log:
        assert log.read() == "short\nand more\n"


# the home -------------------------------------------------------------------------------------------------------------


def test_a_home_with_sessions_of_its_own_becomes_no_copy(database: str, tmp_path):
    os.makedirs(tmp_path / "sessions")
    write_new(str(tmp_path), record_of(new_id(), "dev", 1))
    with pytest.raises(HomeRefused, match="sessions of this machine"), replica(database, tmp_path):
        pass
    assert len(records.ids(str(tmp_path))) == 1


def test_a_copy_of_one_fleet_becomes_none_of_another(database: str):
    with replica(database) as made, pytest.raises(HomeRefused, match="another fleet"):
        mark(made.home, "another", "elsewhere")


def test_a_hub_that_has_not_heard_from_postgresql_changes_nothing(database: str):
    with replica(database) as made:
        session = made.make()
    with replica(database, made.home, catches_up=False) as again:
        with pytest.raises(DatabaseAway, match="not heard"):
            again.session(session).transition(runs.STARTING, run=1)
        again.mirror.catch_up()
        again.session(session).transition(runs.STARTING, run=1)


def test_a_broken_connection_is_none_that_matters(pair: tuple[Replica, Replica]):
    first, _ = pair
    session = first.make()
    with psycopg.connect(_address(first), autocommit=True) as other:
        other.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
            " and datname = current_database()"
        )
    first.session(session).transition(runs.STARTING, run=1)
    assert first.session(session).read().state == runs.STARTING
