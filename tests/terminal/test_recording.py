"""Recordings: the log and its time index as asciicast v3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hitchpost import wire
from hitchpost.terminal import recording
from hitchpost.terminal.recording import Beginning, Event


def record(folder: Path, segments: dict[int, bytes], *moments: tuple[bytes, float, int]) -> str:
    for offset, data in segments.items():
        (folder / wire.segment_name(offset)).write_bytes(data)
    records = [wire.time_record(kind, round(at * 1_000_000), value) for kind, at, value in moments]
    (folder / wire.TIMES).write_bytes(b"".join(records))
    return str(folder)


def size(cols: int, rows: int) -> int:
    return cols << 32 | rows


def cast(folder: str) -> tuple[dict[str, Any], list[list[Any]]]:
    header, *events = [json.loads(line) for line in recording.asciicast(folder, "dev")]
    return header, events


def test_a_recording_is_asciicast_3(tmp_path: Path) -> None:
    folder = record(
        tmp_path,
        {0: b"\x1b[31mhello\r\n", 12: b"bye"},
        (wire.AT_SIZE, 1000.5, size(100, 30)),
        (wire.AT_OFFSET, 1000.75, 12),
        (wire.AT_SIZE, 1002.0, size(120, 40)),
        (wire.AT_OFFSET, 1004.0, 15),
        (wire.AT_EXIT, 1004.5, 3),
        (wire.AT_OFFSET, 1004.6, 15),
    )
    assert list(recording.asciicast(folder, "")) == [
        '{"version": 3, "term": {"cols": 100, "rows": 30, "type": "xterm-256color"}, "timestamp": 1000, "title": ""}\n',
        '[0.25, "o", "\\u001b[31mhello\\r\\n"]\n',
        '[1.25, "r", "120x40"]\n',
        '[2.0, "o", "bye"]\n',
        '[0.6, "x", "3"]\n',
    ]


def test_the_pauses_add_up_to_the_length(tmp_path: Path) -> None:
    moments = [(wire.AT_OFFSET, 1000 + number / 3, number) for number in range(1, 301)]
    folder = record(tmp_path, {0: b"x" * 300}, (wire.AT_SIZE, 1000.0, size(80, 24)), *moments)
    _, events = cast(folder)
    assert len(events) == 300
    assert abs(sum(event[0] for event in events) - 100) < 1e-6


def test_no_character_is_split_between_events(tmp_path: Path) -> None:
    data = "é你👩".encode()
    moments = [(wire.AT_OFFSET, 10.0 + number, number) for number in range(1, len(data) + 1)]
    folder = record(tmp_path, {0: data}, (wire.AT_SIZE, 10.0, size(80, 24)), *moments)
    assert list(recording.events(folder)) == [Event(12.0, "o", "é"), Event(15.0, "o", "你"), Event(19.0, "o", "👩")]


def test_a_gap_becomes_a_mark_and_spoils_no_character(tmp_path: Path) -> None:
    folder = record(
        tmp_path,
        {100: "a你".encode()[:-1], 200: b"b"},
        (wire.AT_SIZE, 10.0, size(80, 24)),
        (wire.AT_OFFSET, 11.0, 103),
        (wire.AT_GAP, 12.0, 103),
        (wire.AT_OFFSET, 13.0, 201),
    )
    assert list(recording.events(folder)) == [
        Event(11.0, "m", "100 bytes are no longer in the log"),
        Event(11.0, "o", "a"),
        Event(13.0, "o", "\ufffd"),
        Event(13.0, "m", "97 bytes are no longer in the log"),
        Event(13.0, "o", "b"),
    ]


def test_a_gap_at_the_end_is_marked_too(tmp_path: Path) -> None:
    folder = record(tmp_path, {0: b"a"}, (wire.AT_OFFSET, 11.0, 1), (wire.AT_EXIT, 12.0, 0), (wire.AT_OFFSET, 12.0, 9))
    assert list(recording.events(folder)) == [
        Event(11.0, "o", "a"),
        Event(12.0, "m", "8 bytes are no longer in the log"),
        Event(12.0, "x", "0"),
    ]


def test_an_exit_that_nobody_saw_is_no_event(tmp_path: Path) -> None:
    folder = record(tmp_path, {0: b"a"}, (wire.AT_OFFSET, 11.0, 1), (wire.AT_EXIT, 12.0, 1 << 32))
    assert list(recording.events(folder)) == [Event(11.0, "o", "a")]


def test_output_behind_the_last_record_has_the_time_of_its_file(tmp_path: Path) -> None:
    folder = record(tmp_path, {0: b"known unknown"}, (wire.AT_OFFSET, 11.0, 5))
    written = (tmp_path / wire.segment_name(0)).stat().st_mtime
    assert list(recording.events(folder)) == [Event(11.0, "o", "known"), Event(written, "o", " unknown")]


def test_a_clock_that_was_set_back_gives_no_negative_pause(tmp_path: Path) -> None:
    folder = record(
        tmp_path,
        {0: b"abc"},
        (wire.AT_SIZE, 10.0, size(80, 24)),
        (wire.AT_OFFSET, 11.0, 1),
        (wire.AT_OFFSET, 5.0, 2),
        (wire.AT_OFFSET, 12.0, 3),
        (wire.AT_EXIT, 12.0, 0),
    )
    _, events = cast(folder)
    assert events == [[1.0, "o", "a"], [0.0, "o", "b"], [1.0, "o", "c"], [0.0, "x", "0"]]


def test_a_flood_is_cut_into_events_of_bearable_size(tmp_path: Path) -> None:
    folder = record(tmp_path, {0: b"x" * 1_000_000}, (wire.AT_OFFSET, 11.0, 1_000_000))
    events = list(recording.events(folder))
    assert "".join(event.data for event in events) == "x" * 1_000_000
    assert max(len(event.data) for event in events) <= recording.LARGEST_EVENT_BYTES


def test_the_beginning_is_the_first_record_with_the_first_size(tmp_path: Path) -> None:
    assert recording.beginning(str(tmp_path)) is None
    folder = record(tmp_path, {}, (wire.AT_SIZE, 10.0, size(100, 30)), (wire.AT_SIZE, 11.0, size(80, 24)))
    assert recording.beginning(folder) == Beginning(10.0, 100, 30)


def test_a_log_without_an_index_begins_when_it_was_written(tmp_path: Path) -> None:
    folder = record(tmp_path, {0: b"text"})
    written = (tmp_path / wire.segment_name(0)).stat().st_mtime
    assert recording.beginning(folder) == Beginning(written, 80, 24)
    assert list(recording.events(folder)) == [Event(written, "o", "text")]
