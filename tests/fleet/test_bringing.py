"""What pods tell is brought into PostgreSQL: one that fails, or floods its terminal, keeps no other waiting."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.errors import Refused
from hitchpost.fleet import bringing, stored
from hitchpost.fleet.bringing import Bringing
from hitchpost.store.home import make_run_folder
from tests.fleet.replicas import Replica, replica
from tests.support import eventually

BEHIND_S = 5.0
"""No output is further behind than that."""


@pytest.fixture
def made(database: str) -> Iterator[Replica]:
    with replica(database) as found:
        yield found


@contextmanager
def bringing_of(made: Replica, refresh: object = lambda session: None) -> Iterator[Bringing]:
    working = Bringing(made.mirror, refresh)  # type: ignore[arg-type]
    working.open()
    try:
        yield working
    finally:
        working.close()


def log_of(made: Replica, session: str) -> Path:
    folder = Path(make_run_folder(made.folder(session), 1)) / wire.OUTPUT
    folder.mkdir(exist_ok=True)
    return folder / wire.segment_name(0)


def shipped(made: Replica, session: str) -> int:
    return made.mirror.output.shipped(session, 1).get(wire.segment_name(0), 0)


def test_output_is_behind_by_little_beside_a_session_that_floods_its_terminal(made: Replica) -> None:
    loud, quiet = made.make("loud"), made.make("quiet")
    is_over = threading.Event()

    def flood() -> None:
        """It is always some way ahead of what was brought."""
        with log_of(made, loud).open("ab", buffering=0) as log:
            while not is_over.is_set():
                if os.fstat(log.fileno()).st_size - shipped(made, loud) < 8 << 20:
                    log.write(os.urandom(4 << 20))

    flooding = threading.Thread(target=flood)
    log_of(made, loud).write_bytes(os.urandom(8 << 20))
    log_of(made, quiet).write_bytes(b"hello")
    with bringing_of(made) as working:
        flooding.start()
        try:
            working.output_of(loud, 1, now=True)
            eventually(lambda: shipped(made, loud) > 0, what="the flood to be brought")
            working.output_of(quiet, 1)
            eventually(lambda: shipped(made, quiet) == 5, BEHIND_S, "the other one's output")
        finally:
            is_over.set()
            flooding.join()


def test_a_session_that_cannot_be_brought_keeps_no_other_waiting(
    made: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bringing, "AGAIN_S", 60.0)
    bad = [made.make(f"bad{number}") for number in range(20)]
    good, seen = made.make("good"), []

    def refresh(session: str) -> None:
        if session in bad:
            raise Refused("not now")
        seen.append(session)

    with bringing_of(made, refresh) as working:
        for session in (*bad, good):
            os.mkdir(os.path.join(make_run_folder(made.folder(session), 1), wire.OUTPUT))
            if session in bad:
                log_of(made, session).mkdir()  # no file
            working.files_of(session)
            working.output_of(session, 1, now=True)
        log_of(made, good).write_bytes(b"hello")
        eventually(lambda: shipped(made, good) == 5, BEHIND_S, "the other one's output")
        eventually(lambda: seen == [good], BEHIND_S, "the other one's files")
        assert working.waiting == 2 * len(bad)


@pytest.mark.parametrize("error", [RuntimeError("a bug"), AssertionError(), KeyError("x")])
def test_no_error_ends_the_bringing(made: Replica, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(bringing, "AGAIN_S", 0.01)
    session, failures = made.make("dev"), [error, error]

    def refresh(which: str) -> None:
        if failures:
            raise failures.pop()

    with bringing_of(made, refresh) as working:
        working.files_of(session)
        eventually(lambda: not failures and working.waiting == 0, what="it to be tried again")


def test_a_session_that_is_gone_is_not_brought(made: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails waits for its next turn; this fails for good, and is left."""
    monkeypatch.setattr(bringing, "AGAIN_S", 60.0)
    gone, good, seen = made.make("gone"), made.make("good"), list[str]()
    made.session(gone).mention("mentioned", run=0, details={"reason": "to be told"})
    for session in (gone, good):
        log_of(made, session).write_bytes(b"hello")
    with made.database.transaction() as held:
        held.execute("delete from files where session = %s", (gone,))
        held.execute("update sessions set gone_at = now() where id = %s", (gone,))
    with bringing_of(made, seen.append) as working:
        for session in (gone, good):
            working.files_of(session)
            working.output_of(session, 1, now=True)
        eventually(lambda: seen == [gone, good], what="both to have had their turn")
        eventually(lambda: shipped(made, good) == 5, what="the other one's output")
        assert working.waiting == 0
    assert shipped(made, gone) == 0


def test_what_waits_already_wakes_nobody(made: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood tells of itself hundreds of times in a second."""
    working, woken = Bringing(made.mirror, lambda session: None), []
    monkeypatch.setattr(working._moved, "notify_all", lambda: woken.append(1))
    for _ in range(100):
        working.output_of("dev", 1)
    assert len(woken) == 1
    working.output_of("dev", 1, now=True)
    assert len(woken) == 2


def test_a_large_part_is_compressed_fast_and_a_small_one_well() -> None:
    large = b"0123456789abcdef" * (stored.LARGE_BYTES // 16)
    for data, level in ((large, 1), (large[:-1], 6)):
        assert stored.compressed(data) == zlib.compress(data, level)
