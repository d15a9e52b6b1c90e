"""Reading the output log: at an offset, over gaps, from the end, and its time index."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.terminal import output
from hitchpost.terminal.output import Chunk, Moment, Reader


def segment(folder: Path, offset: int, data: bytes) -> Path:
    path = folder / wire.segment_name(offset)
    path.write_bytes(data)
    return path


def chunks(folder: Path, offset: int = 0, most: int = 1 << 20) -> list[Chunk]:
    found = []
    with Reader(str(folder), offset) as reader:
        while (chunk := reader.read(most)).data:
            found.append(chunk)
    return found


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    folder = str(tmp_path / "none")
    assert chunks(tmp_path / "none") == []
    assert output.bounds(folder) == (0, 0)
    assert output.last_written(folder) is None
    assert list(output.moments(folder)) == []
    assert output.told_end(folder) == 0
    assert output.tail_offset(folder, 10) == 0


def test_segments_are_one_stream(tmp_path: Path) -> None:
    segment(tmp_path, 0, b"one ")
    segment(tmp_path, 4, b"two ")
    segment(tmp_path, 8, b"three")
    assert chunks(tmp_path) == [Chunk(0, b"one "), Chunk(4, b"two "), Chunk(8, b"three")]
    assert chunks(tmp_path, 6) == [Chunk(6, b"o "), Chunk(8, b"three")]
    assert chunks(tmp_path, 0, 3)[:3] == [Chunk(0, b"one"), Chunk(3, b" "), Chunk(4, b"two")]
    assert output.bounds(str(tmp_path)) == (0, 13)


def test_missing_bytes_are_told_before_the_ones_behind_them(tmp_path: Path) -> None:
    segment(tmp_path, 100, b"early")
    segment(tmp_path, 200, b"late")
    assert chunks(tmp_path) == [Chunk(100, b"early", 100), Chunk(200, b"late", 95)]
    assert chunks(tmp_path, 150) == [Chunk(200, b"late", 50)]
    assert output.bounds(str(tmp_path)) == (100, 204)


def test_an_empty_segment_is_no_gap(tmp_path: Path) -> None:
    segment(tmp_path, 0, b"one")
    segment(tmp_path, 3, b"")
    assert chunks(tmp_path) == [Chunk(0, b"one")]
    assert output.bounds(str(tmp_path)) == (0, 3)


def test_other_files_are_no_segments(tmp_path: Path) -> None:
    segment(tmp_path, 0, b"one")
    for name in ("times.bin", ".times.bin.tmp", "3.log", "x" * 20 + ".log", "0" * 20 + ".log.gz"):
        (tmp_path / name).write_bytes(b"no")
    assert chunks(tmp_path) == [Chunk(0, b"one")]


def test_a_reader_at_the_end_gets_what_is_appended_later(tmp_path: Path) -> None:
    path = segment(tmp_path, 0, b"one")
    with Reader(str(tmp_path)) as reader:
        assert reader.read() == Chunk(0, b"one")
        assert reader.read() == Chunk(3, b"")
        with open(path, "ab") as file:
            file.write(b" two")
        assert reader.read() == Chunk(3, b" two")
        segment(tmp_path, 7, b" three")
        assert reader.read() == Chunk(7, b" three")


def test_a_reader_finishes_a_segment_that_was_deleted_under_it(tmp_path: Path) -> None:
    path = segment(tmp_path, 0, b"one two")
    segment(tmp_path, 7, b" three")
    with Reader(str(tmp_path)) as reader:
        assert reader.read(3) == Chunk(0, b"one")
        path.unlink()
        assert reader.read() == Chunk(3, b" two")
        assert reader.read() == Chunk(7, b" three")


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (0, b""),
        (1, b"four\n"),
        (2, b"three\nfour\n"),
        (4, b"one\ntwo\nthree\nfour\n"),
        (99, b"one\ntwo\nthree\nfour\n"),
    ],
)
def test_the_last_lines_are_found_across_segments(tmp_path: Path, lines: int, text: bytes) -> None:
    segment(tmp_path, 0, b"one\ntw")
    segment(tmp_path, 6, b"o\nthree\nfour\n")
    offset = output.tail_offset(str(tmp_path), lines)
    assert b"".join(chunk.data for chunk in chunks(tmp_path, offset)) == text


def test_a_last_line_without_its_end_counts_as_a_line(tmp_path: Path) -> None:
    segment(tmp_path, 0, b"one\ntwo\nthr")
    assert output.tail_offset(str(tmp_path), 1) == 8
    assert output.tail_offset(str(tmp_path), 2) == 4


def test_the_last_lines_of_a_large_log_are_found_from_its_end(tmp_path: Path) -> None:
    data = b"x" * 400_000 + b"\n" + b"y" * 300_000 + b"\nend\n"
    segment(tmp_path, 5000, data)
    assert output.tail_offset(str(tmp_path), 1) == 5000 + 700_002
    assert output.tail_offset(str(tmp_path), 2) == 5000 + 400_001
    assert output.tail_offset(str(tmp_path), 3) == 5000


def test_a_time_record_that_a_crash_cut_is_left_out(tmp_path: Path) -> None:
    whole = wire.time_record(wire.AT_OFFSET, 1_500_000, 42)
    (tmp_path / wire.TIMES).write_bytes(whole + whole[:9])
    assert list(output.moments(str(tmp_path))) == [Moment(wire.AT_OFFSET, 1.5, 42)]
    assert output.told_end(str(tmp_path)) == 42


def test_the_told_end_is_that_of_a_last_record_which_is_an_offset(tmp_path: Path) -> None:
    records = wire.time_record(wire.AT_OFFSET, 1, 42) + wire.time_record(wire.AT_EXIT, 2, 7)
    (tmp_path / wire.TIMES).write_bytes(records)
    assert output.told_end(str(tmp_path)) == 0
    (tmp_path / wire.TIMES).write_bytes(records + wire.time_record(wire.AT_OFFSET, 2, 50))
    assert output.told_end(str(tmp_path)) == 50


def test_a_gap_that_nobody_could_count_has_no_number() -> None:
    assert output.gap_text(wire.UNCOUNTED) == "some output is missing here (amount unknown)"
    assert [output.counted(lost) for lost in (0, wire.UNCOUNTED, 8)] == [0, None, 8]
    assert output.gap_text(8) == "8 bytes are no longer in the log"


def test_who_must_not_wait_for_a_disk_is_told_the_end_from_not_knowing_it(tmp_path: Path) -> None:
    segment(tmp_path, 0, b"one")
    with Reader(str(tmp_path)) as reader:
        assert reader.read_at_once() is None
        assert reader.read() == Chunk(0, b"one")
        assert reader.read_at_once() == Chunk(3, b"")
        segment(tmp_path, 0, b"one more")
        assert reader.read_at_once() == Chunk(3, b" more")


def test_the_times_of_output_can_be_read_back_with_its_pauses(tmp_path: Path) -> None:
    moments_s = [at / 10 for at in (*range(200), *range(500, 2500), 2580, *range(2660, 4000))]
    records = (wire.time_record(wire.AT_OFFSET, round(at * 1_000_000), n) for n, at in enumerate(moments_s, 1))
    (tmp_path / wire.TIMES).write_bytes(b"".join(records))
    found = [at for at, _ in output.times_back(str(tmp_path), 1.5)]
    assert found[0] == moments_s[-1]
    assert len(found) < len(moments_s) / 5
    assert set(found) <= set(moments_s)
    pauses = {later: round(later - at) for later, at in pairwise(found)}
    assert {later: pauses[later] for later in (266.0, 258.0, 50.0)} == {266.0: 8, 258.0: 8, 50.0: 30}
    assert list(output.times_back(str(tmp_path / "none"), 1.5)) == []


def test_a_resize_and_an_end_are_no_output(tmp_path: Path) -> None:
    def record(kind: bytes, at_s: int, value: int) -> bytes:
        return wire.time_record(kind, at_s * 1_000_000, value)

    def resize(at_s: int, offset: int) -> bytes:
        return record(wire.AT_OFFSET, at_s, offset) + record(wire.AT_SIZE, at_s, 80 << 32 | 24)

    first = resize(1, 0) + b"".join(record(wire.AT_OFFSET, at_s, at_s) for at_s in (2, 3))
    ended = record(wire.AT_OFFSET, 32, 3) + record(wire.AT_EXIT, 32, 0)
    many = b"".join(resize(20, 3) for _ in range(10))
    (tmp_path / wire.TIMES).write_bytes(first + many + resize(30, 3) + resize(31, 3) + ended)
    assert list(output.times_back(str(tmp_path), 1.5)) == [(3, False), (2, False)]


def test_of_output_is_known_whether_somebody_typed_before(tmp_path: Path) -> None:
    kinds = [(wire.AT_OFFSET, 1), (wire.AT_INPUT, 2), (wire.AT_OFFSET, 2), (wire.AT_OFFSET, 3)]
    records = (wire.time_record(kind, 1_000_000 * number, value) for number, (kind, value) in enumerate(kinds))
    (tmp_path / wire.TIMES).write_bytes(b"".join(records))
    assert list(output.times_back(str(tmp_path), 0.5)) == [(3, False), (2, True), (0, False)]
