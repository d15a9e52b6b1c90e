"""The newest title of a window, out of the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.watcher.titles import MOST_BEHIND_BYTES, LogTitle


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / wire.OUTPUT).mkdir()
    return tmp_path / wire.OUTPUT / wire.segment_name(0)


def append(log: Path, data: bytes) -> None:
    with log.open("ab") as file:
        file.write(data)


def test_each_title_is_told_once(tmp_path: Path, log: Path) -> None:
    title = LogTitle(str(tmp_path))
    assert title.read() == []
    append(log, "text \x1b]0;◇  Ready (a)   \x07 more \x1b]2;✦  Working… (a)\x1b\\ and more".encode())
    assert title.read() == ["◇  Ready (a)", "✦  Working… (a)"]
    append(log, b"nothing new \x1b[2J")
    assert title.read() == []
    title.close()


def test_a_title_may_be_cut_anywhere(tmp_path: Path, log: Path) -> None:
    title = LogTitle(str(tmp_path))
    data = "before\x1b]0;one\x07between\x1b]0;✋ two\x1b\\after".encode()
    seen: list[str] = []
    for byte in data:
        append(log, bytes([byte]))
        seen += title.read()
    assert seen == ["one", "✋ two"]
    title.close()


def test_what_is_far_behind_is_left_out(tmp_path: Path, log: Path) -> None:
    append(log, b"\x1b]0;old\x07" + b"x" * (MOST_BEHIND_BYTES + 1))
    title = LogTitle(str(tmp_path))
    assert title.read() == []
    append(log, b"\x1b]0;new\x07")
    assert title.read() == ["new"]
    title.close()
