"""A recording in parts, for players."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.terminal import playback
from hitchpost.terminal.playback import Outline, Part, Size, Written
from tests.terminal.test_recording import record, size


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return record(
        tmp_path,
        {0: b"hello ", 6: b"world"},
        (wire.AT_SIZE, 100.0, size(80, 24)),
        (wire.AT_OFFSET, 101.0, 6),
        (wire.AT_SIZE, 161.0, size(100, 30)),
        (wire.AT_OFFSET, 162.0, 8),
        (wire.AT_OFFSET, 90.0, 10),
        (wire.AT_EXIT, 163.5, 0),
        (wire.AT_OFFSET, 163.5, 11),
    )


def test_the_outline_tells_where_nothing_came(folder: str, tmp_path: Path) -> None:
    assert playback.outline(folder) == Outline(100.0, 63.5, ((1.0, 61.0),))
    (tmp_path / "empty").mkdir()
    assert playback.outline(str(tmp_path / "empty")) == Outline(None, 0.0, ())


def test_of_many_idle_stretches_the_longest_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playback, "MOST_STRETCHES", 2)
    moments = [(wire.AT_OFFSET, at, offset) for offset, at in enumerate((100.0, 110.0, 113.0, 120.0, 123.0))]
    assert playback.outline(record(tmp_path, {0: b"abcd"}, *moments)).idle == ((0.0, 10.0), (13.0, 20.0))


@pytest.mark.parametrize(("at_s", "offset"), [(0, 0), (0.9, 0), (1, 6), (61.5, 6), (62, 10), (1e9, 11)])
def test_a_moment_is_found_in_the_output(folder: str, at_s: float, offset: int) -> None:
    assert playback.offset_at(folder, at_s) == offset


def test_a_part_has_what_came_after_a_byte(folder: str) -> None:
    assert playback.part(folder, 6) == Part(
        6,
        None,
        (Size(61.0, 100, 30), Written(62.0, b"wo", 0), Written(62.0, b"rl", 0), Written(63.5, b"d", 0)),
    )
    assert playback.part(folder, 11) == Part(11, None, ())
    assert playback.part(folder, 99) == Part(99, None, ())


def test_parts_one_behind_the_other_are_the_whole(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = playback.part(folder, 0)
    monkeypatch.setattr(playback, "PART_BYTES", 3)
    offset: int | None = 0
    events: list[Size | Written] = []
    while offset is not None:
        one = playback.part(folder, offset)
        assert sum(len(event.data) for event in one.events if isinstance(event, Written)) <= 3
        events += one.events
        offset = one.next
    assert b"".join(event.data for event in events if isinstance(event, Written)) == b"hello world"
    sizes = [event for event in events if isinstance(event, Size)]
    assert sizes == [event for event in whole.events if isinstance(event, Size)]


def test_what_the_log_lost_is_told(tmp_path: Path) -> None:
    folder = record(tmp_path, {100: b"ab", 200: b"c"}, (wire.AT_OFFSET, 11.0, 102), (wire.AT_OFFSET, 12.0, 201))
    assert playback.part(folder, 0).events == (Written(0.0, b"ab", 100), Written(1.0, b"c", 98))


def test_output_behind_the_last_record_has_the_time_of_its_file(tmp_path: Path) -> None:
    folder = record(tmp_path, {0: b"known unknown"}, (wire.AT_OFFSET, 11.0, 5))
    written = (tmp_path / wire.segment_name(0)).stat().st_mtime
    assert playback.part(folder, 5).events == (Written(written - 11.0, b" unknown", 0),)
    assert playback.outline(folder).length_s == written - 11.0
