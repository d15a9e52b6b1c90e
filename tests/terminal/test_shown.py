"""What a terminal has shown, as lines of text."""

from __future__ import annotations

import random

import pytest

from hitchpost.terminal.emulator.ghostty import GhosttyScreen
from hitchpost.terminal.shown import Shown


def shown(data: bytes, step: int = 0, **size: int) -> str:
    """The whole text, fed at once or ``step`` bytes at a time."""
    made = Shown(**size)
    parts = [data[at : at + step] for at in range(0, len(data), step)] if step else [data]
    return "".join(map(made.feed, parts)) + made.finish()


@pytest.mark.parametrize("step", [0, 1, 7])
@pytest.mark.parametrize(
    ("written", "text"),
    [
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b"no end", "no end"),
        (b"one\rtwo\r\n", "two\n"),
        (b"12345\rab\r\n", "ab345\n"),
        (b"".join(b"\r\x1b[K%d %%" % number for number in range(101)) + b"\r\ndone\r\n", "100 %\ndone\n"),
        (b"a\r\nb\r\nc\r\n\x1b[2A\x1b[2KB\r\n\n", "a\nB\nc\n"),
        (b"\x1b[31mred\x1b[0m\x1b]0;title\x07 line\r\n", "red line\n"),
        (b"x" * 200 + b"\r\nnext\r\n", "x" * 200 + "\nnext\n"),
        (b"sh$ vi\r\n\x1b[?1049h\x1b[2;3Hfull\x1b[?1049lsh$ ", "sh$ vi\n  full\nsh$"),
        (b"\x1b[?1049hsame\x1b[2J\x1b[Hsame\x1b[2J\x1b[Hother\x1b[?1049l", "same\nother\n"),
        (b"before\x1b[2J\x1b[Hafter\r\n", "before\nafter\n"),
        ("wide 漢字|e\u0301|\r\n".encode(), "wide 漢字|e\u0301|\n"),
        ("漢字\x1b[1;3Hx\r\n".encode(), "漢x\n"),
        ("turned \u202e\r\n".encode(), "turned \\u202e\n"),
        (b"\x1b(0lqk\x1b(B\r\n", "┌─┐\n"),
        (b"a\tb\r\n", "a       b\n"),
        (b"\xff\xfe\r\n", "\ufffd\ufffd\n"),
    ],
)
def test_text_is_what_a_person_has_seen(written: bytes, text: str, step: int) -> None:
    assert shown(written, step) == text


def test_what_scrolls_away_is_told_at_once_and_only_once() -> None:
    made = Shown(rows=3)
    assert made.feed(b"1\r\n2\r\n3") == ""
    assert made.feed(b"\r\n4") == "1\n"
    assert made.feed(b"\x1b[?1049h\x1b[Hfull") == "2\n3\n4\n"
    assert made.feed(b"\x1b[?1049l\r\n5\r\n6\r\n7") == "full\n"
    assert made.feed(b"\r\n8") == "5\n"
    assert made.finish() == "6\n7\n8"


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"\r\n" * 23 + b"\x1b[?1049h", b"\x1b[?1049l"), (b"\x1b[20;1H\x1b7", b"\x1b8"), (b"\x1b[20;1H\x1b[s", b"\x1b[u")],
)
def test_lines_after_the_terminal_has_become_smaller_are_all_there(before: bytes, after: bytes) -> None:
    made = Shown(rows=24)
    text = made.feed(before) + made.resize(80, 10) + made.feed(after)
    text += "".join(made.feed(b"%d\r\n" % number) for number in range(15)) + made.finish()
    assert text.split() == [str(number) for number in range(15)]


def test_many_lines_at_once_are_the_same_as_one_by_one() -> None:
    data = b"".join(b"line %d\twith a tab %s|\r\n" % (number, b"x" * (number % 150)) for number in range(3000))
    assert shown(data) == shown(data, 100) == data.decode().expandtabs(8).replace("\r\n", "\n")


def test_a_line_without_an_end_is_cut_somewhere_and_takes_no_more_memory() -> None:
    text = shown(b"x" * 1_000_000, 65536)
    assert text.replace("\n", "") == "x" * 1_000_000
    assert max(map(len, text.split("\n"))) < 110_000


MOVES = (
    "\r\n", "\r", "\b", "\t", "\x1b[A", "\x1b[2B", "\x1b[3C", "\x1b[2D", "\x1b[5G", "\x1b[3;4H", "\x1b[H", "\x1b[2d",
    "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[J", "\x1b[1J", "\x1b[2J", "\x1b[2P", "\x1b[2@", "\x1b[3X", "\x1b[L",
    "\x1b[2M", "\x1b[S", "\x1b[T", "\x1bM", "\x1bD", "\x1b[2;5r", "\x1b[r", "\x1b[31m", "\x1b[E",
    "\x1b[F", "\x1b[?1049h", "\x1b[?1049l", "word", "a long text that wraps around",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_the_screen_is_the_one_that_an_emulator_draws(seed: int) -> None:
    chance = random.Random(seed)
    made, screen = Shown(20, 8), GhosttyScreen(20, 8, 100)
    try:
        for number in range(80):
            token = chance.choice(MOVES)
            made.feed(token.encode())
            screen.feed(token.encode())
            lines = [row.text().rstrip() for row in made._rows]
            assert (
                "\n".join(lines).rstrip() == "\n".join(line.rstrip() for line in screen.text().split("\n")).rstrip()
            ), (number, token)
    finally:
        screen.close()


def test_a_wide_letter_in_one_column_ends() -> None:
    shown = Shown(1, 3)
    assert "字" in shown.feed("字字x\r\n".encode() * 3) + shown.finish()
