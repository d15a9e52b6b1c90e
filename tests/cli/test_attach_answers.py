"""A terminal that is some way off: its answers come late, and must not reach what the person starts next."""

from __future__ import annotations

import os
import sys
import termios
import time
import tty as ttys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitchpost.cli.answers import Answers
from tests.cli.attaching import DETACH, Terminals, Tty, shell, terminals
from tests.support import Hitch

QUERIES = r"\033[c\033[>c\033[6n\033[>q\033[?2026$p\033]11;?\033\\\033P+q544e\033\\"

AGENT = """
import os, sys, tty
tty.setraw(0)
os.write(1, b"ready")
while True:
    key = os.read(0, 1)
    if key == b"q":
        os.write(1, sys.argv[1].encode().decode("unicode_escape").encode("latin-1") + b"asked")
    if key == b"x":
        os.write(1, sys.argv[1].encode().decode("unicode_escape").encode("latin-1") + b"asked")
        sys.exit(0)
"""


@pytest.fixture
def tty(home: Path) -> Iterator[Terminals]:
    with terminals() as made:
        yield made


class Distant:
    """Answers what the terminal is asked ``delay_s`` later."""

    def __init__(self, me: Tty, delay_s: float) -> None:
        self.me, self.delay_s = me, delay_s
        self.sent = b""
        self._due: deque[tuple[float, bytes]] = deque()
        me.screen.on_reply(lambda data: self._due.append((time.monotonic() + delay_s, data)))

    def pump(self) -> None:
        """What a terminal does all the time: take output, give the answers whose time has come."""
        self.me.read()
        while self._due and self._due[0][0] <= time.monotonic():
            _, data = self._due.popleft()
            self.me.type(data)
            self.sent += data

    def until(self, condition: object) -> None:
        def met() -> bool:
            self.pump()
            return bool(condition())  # type: ignore[operator]

        self.me.until(met)

    def ends(self) -> int:
        self.until(lambda: self.me.process.poll() is not None)
        return self.me.process.wait()

    def left_in_the_input(self) -> bytes:
        """What the next program would read: all that comes until every answer was given."""
        ttys.setraw(self.me.slave, termios.TCSANOW)
        self.until(lambda: not self._due)
        self.pump()
        os.set_blocking(self.me.slave, False)
        try:
            return os.read(self.me.slave, 65536)
        except BlockingIOError:
            return b""


def attached(hitch: Hitch, tty: Terminals, delay_s: float, queries: str = QUERIES) -> Distant:
    hitch("run", "--name", "dev", "--", sys.executable, "-c", AGENT, queries)
    terminal = Distant(tty("attach", "dev"), delay_s)
    terminal.until(lambda: "ready" in terminal.me.screen.text())
    return terminal


@pytest.mark.parametrize("delay_s", [0.03, 0.2])
def test_late_answers_do_not_reach_the_next_program_after_detaching(
    hitch: Hitch, tty: Terminals, delay_s: float
) -> None:
    terminal = attached(hitch, tty, delay_s)
    terminal.me.type(b"q")
    terminal.until(lambda: "asked" in terminal.me.screen.text())
    terminal.me.type(DETACH)
    assert terminal.ends() == 0
    assert terminal.left_in_the_input() == b""
    assert b"\x1b[1;" in terminal.sent


def test_late_answers_do_not_reach_the_next_program_when_the_agent_ends(hitch: Hitch, tty: Terminals) -> None:
    terminal = attached(hitch, tty, 0.2)
    terminal.me.type(b"x")
    assert terminal.ends() == 0
    assert terminal.left_in_the_input() == b""
    assert b"\x1b[1;" in terminal.sent


@pytest.mark.parametrize("delay_s", [0.1, 0.5])
@pytest.mark.parametrize("query", [r"\033[6\000n", r"\033[1$w\033[6\a\000n"])
def test_late_answers_to_queries_in_disguise_do_not_reach_the_next_program(
    hitch: Hitch, tty: Terminals, query: str, delay_s: float
) -> None:
    terminal = attached(hitch, tty, delay_s, query)
    terminal.me.type(b"x")
    assert terminal.ends() == 0
    assert terminal.left_in_the_input() == b""
    assert b"\x1b[1;" in terminal.sent


def test_answers_that_look_like_ours_do_not_end_the_wait(hitch: Hitch, tty: Terminals) -> None:
    terminal = attached(hitch, tty, 0.2, r"\033[6n\033[3;4H\033[6n" * 50)
    terminal.me.type(b"x")
    assert terminal.ends() == 0
    assert terminal.left_in_the_input() == b""


def test_a_terminal_that_answers_nothing_is_left_within_a_second_or_so(hitch: Hitch, tty: Terminals) -> None:
    terminal = attached(hitch, tty, 3600)
    terminal.me.type(b"q")
    terminal.until(lambda: "asked" in terminal.me.screen.text())
    terminal.me.type(DETACH)
    assert terminal.ends() == 0


def test_a_terminal_that_was_asked_nothing_is_not_asked_by_us(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch, script="printf '\\033[31mred\\033[m \\033]0;title\\007'")
    me = tty("attach", "dev")
    me.shows("red")
    me.type(DETACH)
    me.ends()
    assert b"\x1b[6n" not in me.received


@pytest.mark.parametrize(
    "query",
    [
        b"\x1b[c", b"\x1b[>c", b"\x1b[0c", b"\x1b[6n", b"\x1b[?996n", b"\x1b[>q", b"\x1b[?u", b"\x1b[?2026$p",
        b"\x1b[18t", b"\x05", b"\x1bZ", b"\x1b]11;?\x07", b"\x1b]4;1;?\x1b\\",
        b"\x1b[6\0n", b"\x1b[6\x07n", b"\x1b[1$w", b"\x1b[?4m", b"\x1b[#R", b"\x1b[1'|", b"\x9b6n", b"\xc2\x9b6n",
        b"\x1b]1337;ReportCellSize\x07", b"\x1b]1337;ReportVariable=" + b"x" * 5000 + b"\x07", b"\x1b[?1;1;1;1;1006h",
        b"\x1b[" + b"0;" * 5000 + b"6n", b"\x1b]0;" + b"x" * 300 + b"\x1b[6n", b"\x90$qm\x9c", b"\x1b[21t",
        b"\x9a", "\u00dbc".encode(), b"\x1b[?1$p",
        b"\x1bP+q544e\x1b\\", b"\x1b_Gi=1,a=q;AA\x1b\\", b"\x1b[?1003;1006h", b"\x1b[?1004h", b"\x1b[?25;2048h",
    ],
)  # fmt: skip
def test_queries_are_seen_wherever_they_are_cut(query: bytes) -> None:
    for cut in range(0, len(query) + 1, 1 + len(query) // 50):
        answers = Answers()
        answers.passed(b"text \x1b[1m" + query[:cut])
        answers.passed(query[cut:] + b" text")
        assert answers.outstanding


@pytest.mark.parametrize(
    "data",
    [
        b"text\r\n", b"\x1b[31;1mred\x1b[m", b"\x1b]0;title\x07", b"\x1b]2;Gr\xc3\xbcn\x1b\\", b"\x1b[2 q\x1b[!p",
        b"\x1b[?2004h\x1b[?25l\x1b[2J", b"\x1b[?1049h\x1b[1;24r\x1b[10;20H\x1b[K\x1b(B\x1b[?1l\x1b>", b"\x1b[22;0t",
        b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "┌─ é ● ✓".encode(), b"\x1b[>4;2m\x1b[>1u\x1b[<u",
        b"\x1b[38:2::1:2:3mx\x1b[38;5;200m", b"\x1b7\x1b[H\x1b8\x1bM\x1b[3g\x1bH",
    ],
)  # fmt: skip
def test_what_only_draws_is_no_query(data: bytes) -> None:
    for cut in range(len(data) + 1):
        answers = Answers()
        answers.passed(data[:cut])
        answers.passed(data[cut:])
        assert not answers.left(), data


def test_a_sequence_that_is_cut_off_may_be_a_query_still() -> None:
    answers = Answers()
    answers.passed(b"text \x1b[6")
    assert answers.left()
