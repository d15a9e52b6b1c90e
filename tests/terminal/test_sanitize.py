"""What a replay may do to the viewer's terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitchpost.terminal.sanitize import Harmless

DRAWS = [
    "text, für 你好 👩‍👧",
    "\a\b\t\n\v\f\r\x0e\x0f",
    "\x1b[1;31mred\x1b[0m\x1b[38;2;1;2;3m\x1b[4:3m",
    "\x1b[2J\x1b[H\x1b[10;20H\x1b[3A\x1b[K\x1b[?K\x1b[?J\x1b[5L\x1b[2;10r\x1b[3S\x1b[T\x1b[9b\x1b[s\x1b[u",
    "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2026h\x1b[4h",
    "\x1b7\x1b8\x1bM\x1bD\x1bE\x1b(0\x1b)B\x1b#8",
    "\x1b[5 q\x1b[!p",
    "\x1b]8;id=1;https://example.org\x1b\\link\x1b]8;;\x1b\\",
]

DOES_MORE = [
    "\x1b[c\x1b[0c\x1b[>c\x1b[=c",  # device attributes
    "\x1b[5n\x1b[6n\x1b[?6n\x1b[?996n",  # status, cursor, colour scheme
    "\x1b[>q\x1b[>0q",  # version
    "\x1b[?2026$p\x1b[4$p",  # modes
    "\x1b[21t\x1b[20t\x1b[14t\x1b[18t\x1b[8;10;10t\x1b[22;0t",  # title reports, size
    "\x1b[?u\x1b[>1u\x1b[=1u\x1b[<u",  # keyboard protocol
    "\x1b[>4;1m\x1b[?4m",  # key modifiers
    "\x1b[?1;1;0S",  # graphics
    "\x1b[x\x1b[1x\x1b[i\x1b[5i\x1b[1;1;1;1;1;1*y\x1b[1$w",
    "\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[?1004h\x1b[?2004h\x1b[?1h\x1b[2h\x1b[12l",
    "\x1b[?1;1000r\x1b[?1s",
    "\x1bZ\x1b=\x1b>\x1bn\x1bo\x1b%@\x1bH\x1b[3g\x05\x00\x11\x13",
    "\x1b]0;t\x07\x1b]2;t\x1b\\\x1b]1;t\x07\x1b]4;1;?\x07\x1b]10;?\x07\x1b]11;#000000\x07\x1b]52;c;?\x07\x1b]52;c;aGk=\x07",
    "\x1b]7501;?\x1b\\\x1b]9;note\x07\x1b]777;notify;a;b\x07\x1b]133;A\x07\x1b]1337;File=:x\x07",
    "\x1b]8;;javascript:alert(1)\x1b\\\x1b]8;;file:///etc/passwd\x07",
    "\x1bP$qm\x1b\\\x1bP+q544e\x1b\\\x1bPq#0\x1b\\\x1b_Gi=1,a=q\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\",
    "\x9b6n\x9bc",
]


def played(*texts: str) -> str:
    harmless = Harmless()
    return "".join(map(harmless.feed, texts))


@pytest.mark.parametrize("text", DRAWS)
def test_what_draws_is_played_as_it_is(text: str) -> None:
    assert played(text) == text


@pytest.mark.ids("S9")
@pytest.mark.parametrize("text", DOES_MORE)
def test_what_does_more_than_draw_is_left_out(text: str) -> None:
    assert "\x1b" not in played(text)
    assert played(text).replace("6n", "").replace("c", "") == ""


@pytest.mark.ids("S9")
@pytest.mark.parametrize("text", DOES_MORE)
def test_cutting_a_sequence_does_not_smuggle_it_through(text: str) -> None:
    assert "\x1b" not in played(*text)


@given(
    st.lists(st.sampled_from([*DRAWS, *DOES_MORE, "\x1b", "\x1b[", "6n", "\x1b]", "\x1b[6\x1b[n", "\x1b[\x1b", "\x18"]))
)
def test_what_was_played_once_would_be_played_the_same_again(texts: list[str]) -> None:
    once = played("".join(texts))
    assert played(once) == once
    assert played(*"".join(texts)) == once


def test_of_several_modes_in_one_sequence_only_the_harmless_ones_pass() -> None:
    assert played("\x1b[?1049;2004;25h") == "\x1b[?1049;25h"


def test_a_full_reset_only_clears() -> None:
    assert played("\x1bc") == "\x1b[!p\x1b[2J\x1b[H"


def test_the_terminal_is_put_in_order_and_the_other_screen_left_only_when_it_was_entered() -> None:
    harmless = Harmless()
    assert "\x1b[?1049l" not in harmless.restore()
    harmless.feed("\x1b[?1049h")
    restored = harmless.restore()
    assert restored.startswith("\x1b[?1049l")
    assert "\x1b[0m" in restored
    assert restored.endswith("\x1b[?25h")
    harmless.feed("\x1b[?1049l")
    assert "\x1b[?1049l" not in harmless.restore()
