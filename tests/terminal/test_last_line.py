from __future__ import annotations

from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.terminal.last_line import LONGEST, TAIL_BYTES, last_line, line_in


@pytest.mark.parametrize(
    ("printed", "line"),
    [
        (b"one\r\ntwo\r\n", "two"),
        (b"one\r\ntwo: ", "two:"),
        (b"done\r\n\r\n   \r\n-----\r\n", "done"),
        (b"10%\r50%\r100%\x1b[K", "100%"),
        (b"\x1b[1;32mok\x1b[0m\x1b]0;a title\x07 12 passed\x1b(B\r\n", "ok 12 passed"),
        (b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\\r\n", "link"),
        (b"wait |\b/\b-\b\r\n", "wait"),
        (b"half a sequence\x1b[3", "half a sequence"),
        (b"half a title\x1b]0;to be cont", "half a title"),
        (b"half a letter \xe2\x82", "half a letter"),
        (b"old\r\n\x1b[H\x1b[2Jnew\r\n", "new"),
        (b"old\r\n\x1b[2J\x1b[Hnew\r\n", "new"),
        (b"a\xe2\x80\xaeb\x07\r\n", "a b"),
        (b"", ""),
        (b"\r\n\r\n", ""),
    ],
)
def test_the_last_line_is_what_was_printed_last(printed: bytes, line: str) -> None:
    assert line_in(printed) == line


@pytest.mark.parametrize("drawn", [b"\x1b[12;1Hstatus", b"\x1b[?1049hmenu", b"a\r\n\x1b[2Ab", b"\x1b[24d? for help"])
def test_a_program_that_draws_its_screen_has_no_last_line(drawn: bytes) -> None:
    assert line_in(drawn) == ""


def test_a_long_line_is_cut_and_says_so() -> None:
    assert line_in(b"x" * 300) == "x" * (LONGEST - 1) + "…"


def test_only_the_end_of_the_newest_segment_is_read(tmp_path: Path) -> None:
    assert last_line(str(tmp_path / "none")) == ""
    (tmp_path / wire.segment_name(0)).write_bytes(b"old\r\n")
    assert last_line(str(tmp_path)) == "old"
    begun_in_a_letter = "ü".encode() * TAIL_BYTES + b"\r\nnew\r\n"
    (tmp_path / wire.segment_name(5)).write_bytes(begun_in_a_letter)
    assert last_line(str(tmp_path)) == "new"
    (tmp_path / wire.segment_name(5)).write_bytes("ü".encode() * TAIL_BYTES)
    assert last_line(str(tmp_path)) == ""
    (tmp_path / wire.segment_name(90000)).write_bytes(b"")
    (tmp_path / wire.segment_name(5)).write_bytes(b"newer\r\n")
    assert last_line(str(tmp_path)) == "newer"
