"""Agents that print, and read lines: what their log says of that."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.watcher.lines import LogLines

ON, OFF = b"\x1b[?2004h", b"\x1b[?2004l"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / wire.OUTPUT).mkdir()
    return tmp_path / wire.OUTPUT / wire.segment_name(0)


def test_a_line_is_read_between_two_marks(tmp_path: Path, log: Path):
    lines = LogLines(str(tmp_path))
    written, seen = b"", []
    for data in (b"hello", ON + b"> ", b"one\r" + OFF, b"answer", ON + b"> ", b"x" + OFF + b"quick" + ON):
        written += data
        log.write_bytes(written)
        lines.read(len(written))
        seen.append((lines.reading, lines.taken, lines.printed()))
    lines.close()
    assert seen == [
        (None, 0, "hello"),
        (True, 0, "hello"),
        (False, 1, ""),
        (False, 1, "answer"),
        (True, 1, "answer"),
        (True, 2, "quick"),
    ]


def test_marks_are_found_wherever_the_log_is_cut(tmp_path: Path, log: Path):
    data = b"a" + ON + b"> b" + OFF + b"c\x1b[31md" + ON
    log.write_bytes(data)
    lines = LogLines(str(tmp_path))
    for end in range(len(data) + 1):
        lines.read(end)
    assert (lines.reading, lines.taken, lines.printed()) == (True, 1, "cd")
    lines.close()


def test_what_is_drawn_again_and_again_becomes_lines(tmp_path: Path, log: Path):
    data = ON + OFF + b"\r\n\x1b[35m|\x1b[0m wait\r\x1b[2K/ wait\x08\x08\x08\x08there\x1b]0;title\x07\r\n"
    log.write_bytes(data)
    lines = LogLines(str(tmp_path))
    lines.read(len(data))
    assert lines.printed().split("\n") == ["", "| wait", "/ wait", "there", ""]
    lines.close()
