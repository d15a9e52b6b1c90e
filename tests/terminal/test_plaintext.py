"""Terminal output as plain text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hitchpost.terminal.plaintext import Plain
from hitchpost.terminal.sequences import LONGEST

SPICE = st.sampled_from(
    [
        b"\x1b",
        b"\x1b[",
        b"\x1b]",
        b"\x1bP",
        b"\x1b\\",
        b"\x07",
        b"\r",
        b"\n",
        b"\r\n",
        b"31m",
        b"text",
        b"\x18",
        b"\xc2\x9b",
    ]
)
STREAMS = st.lists(st.one_of(SPICE, st.binary(max_size=4), st.text(max_size=3).map(str.encode)), max_size=12).map(
    b"".join
)


def plain(*parts: bytes) -> str:
    filter_ = Plain()
    return "".join(map(filter_.feed, parts)) + filter_.finish()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b[?2004h\x1b[>4;1m\x1b[38:2::1:2:3mdeep\x1b[m", "deep"),
        (b"\x1b]0;a title\x07after", "after"),
        (b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b]52;c;aGVsbG8=\x07", ""),
        (b"\x1bP+q544e\x1b\\\x1b_Gi=1\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\x", "x"),
        (b"\x1b7\x1b8\x1bM\x1bc\x1b(B\x1b#8\x1b=\x1b>x", "x"),
        (b"one\r\ntwo\r\r\n", "one\ntwo\n"),
        (b"10%\r20%\r\x1b[K30%\r\n", "10%\n20%\n30%\n"),
        (b"\r\rfirst", "first"),
        (b"a\tb", "a\tb"),
        (b"a\x00\x05\x07\x08\x0e\x7fb", "ab"),
        (b"two\x1b[1Cwords\x1b[Cagain\x1b[3Cand", "two words again   and"),
        (b"far\x1b[99999999C.", "far" + " " * 80 + "."),
        (b"Please\x1b[8Gcheck\x1b[14Gyour\x1b[3G net", "Please check your net"),
        (b"10%\x1b[1G20%\x1b[G30%\r\n\x1b[3Gx", "10%\n20%\n30%\n  x"),
        (b"old line\r\x1b[4Gnew", "old line\n   new"),
        ("für 你好 👩‍👧".encode(), "für 你好 👩‍👧"),
        (b"bad \xff\xc3( bytes", "bad \ufffd\ufffd( bytes"),
        ("c1 \x9b31m \x9d0;t\x9c".encode(), "c1 31m 0;t"),
        ("\u202eevil\u2066".encode(), "\\u202eevil\\u2066"),
        (b"\x1b]0;never ended\x1b[1mbold", "bold"),
        (b"\x1b]0;given up\x18text", "text"),
        (b"\x1b[31\nm", "[31\nm"),
        (b"end \x1b[3", "end [3"),
        (b"cut \xe4\xbd", "cut \ufffd"),
    ],
)
def test_only_text_is_left(data: bytes, text: str) -> None:
    assert plain(data) == text


@given(STREAMS)
@example("\x1b]0;t\x1b\\a\r\n\x1b[1;2H你".encode())
def test_where_the_reads_cut_makes_no_difference(data: bytes) -> None:
    assert plain(*(data[place : place + 1] for place in range(len(data)))) == plain(data)


@given(STREAMS)
def test_nothing_that_acts_on_a_terminal_is_left(data: bytes) -> None:
    assert not [
        letter for letter in plain(data) if (ord(letter) < 32 and letter not in "\n\t") or 127 <= ord(letter) < 160
    ]


def test_a_sequence_without_an_end_hides_no_more_than_a_limit() -> None:
    body = b"x" * LONGEST
    assert plain(b"before \x1b]0;", body, b"after").startswith("before ]0;xxx")
    filter_ = Plain()
    shown = filter_.feed(b"\x1bP") + filter_.feed(body) + filter_.feed(b"after")
    assert shown.endswith("after")


def test_text_is_plain_again_behind_a_gap() -> None:
    filter_ = Plain()
    assert filter_.feed(b"one \xe4\x1b") == "one \ufffd"
    assert filter_.finish() == ""
    assert filter_.feed(b"[0m two") == "[0m two"
