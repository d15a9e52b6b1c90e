"""The output log as the keeper writes it: segments, cap, gaps and the time index."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.keeper import times
from hitchpost.keeper.log import Log
from hitchpost.keeper.times import Times
from hitchpost.terminal import output
from tests.support import eventually

CAP = 64 * 1024


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "output")


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = Path(tempfile.mkdtemp(prefix="disk-"))
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        place.rmdir()
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)
    place.rmdir()


def everything(folder: str, offset: int = 0) -> list[output.Chunk]:
    found = []
    with output.Reader(folder, offset) as reader:
        while (chunk := reader.read()).data:
            found.append(chunk)
    return found


def numbered(begin: int, size: int) -> bytes:
    """Bytes of which each place tells where it is."""
    return b"".join(b"%015d\n" % place for place in range(begin // 16, (begin + size) // 16 + 1))[
        begin % 16 : begin % 16 + size
    ]


def offsets(folder: str) -> list[int]:
    return [moment.value for moment in output.moments(folder) if moment.kind == wire.AT_OFFSET]


def test_what_is_appended_is_read_back_byte_by_byte(folder: str) -> None:
    log = Log(folder, CAP)
    data = bytes(range(256)) * 60
    for start in range(0, len(data), 777):
        log.append(data[start : start + 777])
    log.close()
    assert b"".join(chunk.data for chunk in everything(folder)) == data
    assert (log.first, log.end, log.lost_bytes) == (0, len(data), 0)


def test_the_cap_is_never_passed_and_the_newest_output_is_kept(folder: str) -> None:
    log = Log(folder, CAP)
    for start in range(0, 10 * CAP, 1000):
        log.append(numbered(start, 1000))
        assert sum(entry.stat().st_size for entry in os.scandir(folder) if entry.name.endswith(".log")) <= CAP
    log.close()
    chunks = everything(folder)
    assert [chunk.lost for chunk in chunks if chunk.lost] == [log.first]
    assert log.end - log.first > CAP * 3 // 4
    assert b"".join(chunk.data for chunk in chunks) == numbered(log.first, log.end - log.first)


def test_a_reader_that_was_overtaken_is_told_how_much_it_missed(folder: str) -> None:
    log = Log(folder, CAP)
    log.append(numbered(0, 100))
    with output.Reader(folder) as reader:
        assert reader.read().data == numbered(0, 100)
        log.append(numbered(100, 5 * CAP))
        chunk = output.Chunk(100, b"x")
        while chunk.data and not chunk.lost:
            chunk = reader.read()
        assert chunk.offset == log.first
        assert chunk.data == numbered(log.first, len(chunk.data))
    log.close()


def test_the_time_index_shrinks_with_the_log(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "STEP_US", 0)
    log = Log(folder, CAP)
    log.mark(wire.AT_SIZE, 80 << 32 | 24)
    for start in range(0, 20 * CAP, 512):
        log.append(numbered(start, 512))
    log.close()
    known = offsets(folder)
    assert known == sorted(known)
    assert known[0] > log.first
    assert known[-1] == log.end
    assert len(known) <= CAP // 512 + 2
    assert [path for path in os.listdir(folder) if path.endswith(".tmp")] == []


def test_the_size_that_held_at_the_cut_stays_known(folder: str) -> None:
    log = Log(folder, CAP)
    log.mark(wire.AT_SIZE, 80 << 32 | 24)
    log.append(bytes(CAP))
    log.mark(wire.AT_SIZE, 132 << 32 | 50)
    log.append(bytes(3 * CAP))
    log.close()
    first = next(output.moments(folder))
    assert (first.kind, first.value) == (wire.AT_SIZE, 132 << 32 | 50)


def test_an_index_that_grows_too_large_keeps_every_second_time(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "STEP_US", 0)
    os.mkdir(folder)
    index = Times(folder, 0)
    most = times.SMALLEST_LIMIT_BYTES // wire.TIME_RECORD_BYTES
    for offset in range(1, 5 * most):
        index.reached(offset)
    index.close()
    known = offsets(folder)
    assert len(known) <= most
    assert known == sorted(known)
    assert known[-1] == 5 * most - 1
    assert os.path.getsize(os.path.join(folder, wire.TIMES)) <= times.SMALLEST_LIMIT_BYTES


def test_a_reader_of_the_old_index_reads_it_to_its_end(folder: str) -> None:
    log = Log(folder, CAP)
    log.mark(wire.AT_SIZE, 80 << 32 | 24)
    log.mark(wire.AT_SIZE, 90 << 32 | 24)
    reading = output.moments(folder)
    assert next(reading).value == 80 << 32 | 24
    log.append(bytes(3 * CAP))
    assert next(moment.value for moment in reading) == 90 << 32 | 24
    log.close()


def test_the_last_word_before_a_silence_has_its_own_time(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([1_000_000, 1_003_000, 60_000_000])
    monkeypatch.setattr("hitchpost.keeper.times.time.time_ns", lambda: next(clock) * 1000)
    log = Log(folder, CAP)
    for word in (b"one ", b"two ", b"three"):
        log.append(word)
    assert [(moment.at, moment.value) for moment in output.moments(folder)] == [(1.0, 4), (1.003, 8), (60.0, 13)]
    monkeypatch.undo()
    log.close()


def test_a_resize_stands_behind_the_output_that_came_before_it(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitchpost.keeper.times.time.time_ns", lambda: 5_000_000_000)
    log = Log(folder, CAP)
    log.append(b"one")
    log.append(b"two")
    log.mark(wire.AT_SIZE, 7)
    kinds = [(moment.kind, moment.value) for moment in output.moments(folder)]
    assert kinds == [(wire.AT_OFFSET, 3), (wire.AT_OFFSET, 6), (wire.AT_SIZE, 7)]
    log.close()


def test_that_somebody_typed_stands_before_the_output_that_follows(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([1_000_000, 1_002_000, 1_003_000, 4_000_000, 5_000_000, 9_000_000, 12_000_000])
    monkeypatch.setattr("hitchpost.keeper.times.time.time_ns", lambda: next(clock) * 1000)
    log = Log(folder, CAP)
    log.append(b"one ")
    log.typed()
    log.append(b"at once ")
    log.append(b"a pause of the agent's ")
    log.typed()
    for word in (b"an answer ", b"its end"):
        log.append(word)
    found = [(moment.kind, moment.at) for moment in output.moments(folder)]
    at = wire.AT_OFFSET
    assert found == [(at, 1.0), (at, 1.003), (at, 4.0), (wire.AT_INPUT, 5.0), (at, 9.0), (at, 12.0)]
    monkeypatch.undo()
    log.close()


def test_keys_of_long_ago_are_the_first_to_go(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "STEP_US", 0)
    os.mkdir(folder)
    index = Times(folder, 0)
    for offset in range(1, 2 * times.SMALLEST_LIMIT_BYTES // wire.TIME_RECORD_BYTES):
        index.typed()
        index.reached(offset)
    index.close()
    assert os.path.getsize(os.path.join(folder, wire.TIMES)) <= times.SMALLEST_LIMIT_BYTES
    log = Log(folder, CAP, goes_on=True)
    log.typed()
    log.append(numbered(0, CAP // 2))
    log.append(bytes(3 * CAP))
    log.close()
    assert wire.AT_INPUT not in [moment.kind for moment in output.moments(folder)], "their output is dropped"


def test_a_clock_that_is_set_back_stops_no_index(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([9_000_000, 1_000_000, 2_000_000])
    monkeypatch.setattr("hitchpost.keeper.times.time.time_ns", lambda: next(clock) * 1000)
    log = Log(folder, CAP)
    for word in (b"one ", b"two ", b"three"):
        log.append(word)
    assert offsets(folder) == [4, 8, 13]
    monkeypatch.undo()
    log.close()


def test_a_full_disk_leaves_a_gap_that_can_be_seen_and_right_bytes_behind_it(small_disk: Path) -> None:
    folder = str(small_disk / "output")
    log = Log(folder, 10 * CAP)
    log.append(numbered(0, 16 * 1024))
    filler = small_disk / "filler"
    _fill(filler)
    while not log.lost_bytes:
        log.append(numbered(log.end, 1000))
    gap = log.end - log.lost_bytes
    assert everything(folder)[-1].end == gap
    filler.unlink()

    def appends() -> bool:
        lost = log.lost_bytes
        log.append(numbered(log.end, 1000))
        return log.lost_bytes == lost

    eventually(appends, what="output that is kept again")
    log.close()
    kept = everything(folder)
    assert [chunk.lost for chunk in kept if chunk.lost] == [log.lost_bytes]
    assert all(chunk.data == numbered(chunk.offset, len(chunk.data)) for chunk in kept)
    assert kept[-1].end == log.end
    assert [moment.value for moment in output.moments(folder) if moment.kind == wire.AT_GAP] == [gap]


def test_a_disk_that_stays_full_costs_nothing_of_what_was_kept(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hitchpost.keeper.log.RETRY_AFTER_GAP_S", 0.0)
    folder = str(small_disk / "output")
    log = Log(folder, CAP)
    log.append(numbered(0, 10_000))
    _fill(small_disk / "filler")
    while not log.lost_bytes:
        log.append(numbered(log.end, 1000))
    kept = log.end - log.lost_bytes
    for _ in range(500):
        log.append(b"x" * 100)
    log.close()
    assert b"".join(chunk.data for chunk in everything(folder)) == numbered(0, kept)
    assert log.first == 0
    assert log.end == kept + log.lost_bytes


def test_a_log_whose_folder_is_gone_takes_output_and_counts_it_as_lost(folder: str) -> None:
    log = Log(folder, CAP)
    shutil.rmtree(folder)
    log.append(b"nobody keeps this")
    assert (log.end, log.lost_bytes) == (17, 17)
    log.close()


def _fill(path: Path) -> None:
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return
