from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitchpost.keeper.scanner import ANSWERS, LONGEST_REPORT, Scanner, parse_report

Found = list[tuple[str, bytes]]

STREAM = (
    b"hello \x1b[1mbold\x1b[0m"
    b"\x1b]7501;?\x1b\\"
    b"\x1b]7501;state=working:app=x\x1b\\ text "
    b"\x1b]7501;state=blocked:kind=permission\a"
    b"\x1b[c\x1b[0c\x1b[>c\x1b[>0c\x1b[>q\x1b[>0q\x1b[5n\x1b[6n"
    b"\x1b[?2004h\x1b]0;title\a\x1b\x1b[c\x1b]7501;state=idle\x1b[c tail"
)
FOUND: Found = [
    ("query", b""),
    ("report", b"state=working:app=x"),
    ("report", b"state=blocked:kind=permission"),
    ("answer", b"\x1b[?62;22c"),
    ("answer", b"\x1b[?62;22c"),
    ("answer", b"\x1b[>1;10;0c"),
    ("answer", b"\x1b[>1;10;0c"),
    ("answer", b"\x1bP>|hitchpost\x1b\\"),
    ("answer", b"\x1bP>|hitchpost\x1b\\"),
    ("answer", b"\x1b[0n"),
    ("answer", b"\x1b[1;1R"),
    ("answer", b"\x1b[?62;22c"),
    ("answer", b"\x1b[?62;22c"),
]


def scan(*parts: bytes) -> tuple[Found, bool]:
    scanner = Scanner()
    found: Found = []
    for part in parts:
        found += scanner.feed(part)
    return found, scanner.bracketed_paste


def test_everything_is_found_in_the_order_of_the_stream():
    assert scan(STREAM) == (FOUND, True)


def test_a_stream_cut_at_any_byte_gives_the_same():
    for cut in range(len(STREAM) + 1):
        assert scan(STREAM[:cut], STREAM[cut:]) == (FOUND, True), cut


def test_a_stream_that_comes_byte_by_byte_gives_the_same():
    assert scan(*(STREAM[at : at + 1] for at in range(len(STREAM)))) == (FOUND, True)


PIECES = st.sampled_from(
    [
        b"\x1b",
        b"\\",
        b"\a",
        b"]7501;",
        b"\x1b]7501;",
        b"state=idle",
        b"?",
        b"\x1b\\",
        b"[c",
        b"\x1b[>0q",
        b"\x1b[?2004h",
        b"\x1b[?2004l",
        b"[6n",
        b"x" * (LONGEST_REPORT - 20),
        b"y" * 12,
        b"plain text\r\n",
    ]
)


@given(pieces=st.lists(PIECES | st.binary(max_size=4), max_size=12), data=st.data())
def test_splitting_the_stream_anywhere_gives_the_same(pieces: list[bytes], data: st.DataObject):
    stream = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    edges = [0, *cuts, len(stream)]
    parts = [stream[start:end] for start, end in pairwise(edges)]
    assert scan(*parts) == scan(stream)


def test_a_query_that_is_only_alike_is_not_answered():
    assert scan(b"\x1b[1c\x1b[?c\x1b]7501x;?\a\x1b]75010;?\a[c\x1b 7501;?\a") == ([], False)


@pytest.mark.ids("F72")
def test_a_report_without_end_is_given_up_and_costs_no_memory():
    scanner = Scanner()
    began = time.monotonic()
    assert scanner.feed(b"\x1b]7501;state=idle:msg=") == []
    for _ in range(80):
        assert scanner.feed(b"x" * 65536) == []
        assert len(scanner._carry) <= LONGEST_REPORT + 2
    assert scanner.feed(b"\a\x1b[5n") == [("answer", b"\x1b[0n")]
    assert time.monotonic() - began < 2


@pytest.mark.ids("F72")
def test_5_mb_of_title_in_one_read_are_passed_over():
    began = time.monotonic()
    assert scan(b"\x1b]0;" + b"x" * 5_000_000 + b"\a\x1b]7501;state=done\a") == ([("report", b"state=done")], False)
    assert scan(b"\x1b" * 1_000_000 + b"[c") == ([("answer", ANSWERS[b"[c"])], False)
    assert time.monotonic() - began < 5


def test_a_report_that_is_too_long_is_none():
    body = b"state=idle:msg=" + b"x" * LONGEST_REPORT
    assert scan(b"\x1b]7501;" + body + b"\a") == ([], False)
    assert scan(b"\x1b]7501;" + body + b"\x1b\\\x1b[5n") == ([("answer", b"\x1b[0n")], False)


def test_paste_mode_follows_the_last_word():
    assert scan(b"\x1b[?2004h") == ([], True)
    assert scan(b"\x1b[?2004h\x1b[?2004l") == ([], False)
    assert scan(b"\x1b[?20", b"04h") == ([], True)


def test_a_report_has_fields():
    assert parse_report(b"state=blocked:kind=permission:msg=aGk=:progress=5") == {
        "state": "blocked",
        "kind": "permission",
        "message": "hi",
        "progress": "5",
    }


def test_a_text_that_is_none_is_left_out():
    assert parse_report(b"state=done:msg=a") == {"state": "done"}
    assert parse_report(b"state=done:msg=") == {"state": "done"}
    assert parse_report(b"state=done:msg=G1tIaQ==") == {"state": "done", "message": "[Hi"}


@pytest.mark.parametrize(
    "body", [b"", b"?", b"state", b"state=", b"state=asleep", b"State=idle", b"kind=x", b"\xff=\xff"]
)
def test_a_report_without_a_word_of_the_protocol_is_none(body: bytes):
    assert parse_report(body) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_report_or_none(body: bytes):
    fields = parse_report(body)
    assert fields is None or fields["state"] in ("idle", "working", "blocked", "done", "error", "clear")
