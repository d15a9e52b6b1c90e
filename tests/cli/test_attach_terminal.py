"""The caller's terminal is given back on every way out that a program can survive."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitchpost.cli import terminal
from hitchpost.cli.colours import Colours
from hitchpost.terminal.emulator.ghostty import GhosttyScreen
from tests.cli.attaching import DETACH, PROMPT, Terminals, Tty, recorder, shell, state, terminals
from tests.support import Hitch, Process, eventually

MODES = (1, 5, 6, 9, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026, 2031, 2048, 5522)
EVERYTHING = "".join(
    (
        *(rf"\x1b[?{mode}h" for mode in MODES),
        r"\x1b[?7l\x1b[?25l\x1b[4h\x1b[20h\x1b=\x1b(0\x1b[>4;2m\x1b[>7u\x1b[>3u\x1b[2;9r",
        r"\x1b[7;31m\x1b[5 q\x1b]2;mine\x07\x1b]8;;http://x\x1b\\",
    )
)
"""Sets every mode that a program may set."""


@pytest.fixture
def tty(home: Path) -> Iterator[Terminals]:
    with terminals() as made:
        yield made


@pytest.fixture(params=["normal screen", "alternate screen"])
def busy(request: pytest.FixtureRequest, hitch: Hitch, tty: Terminals, tmp_path: Path) -> Tty:
    """A terminal attached to an agent that has set everything there is to set."""
    alternate = r"\x1b[?1049h\x1b[2J" if request.param == "alternate screen" else ""
    recorder(hitch, tmp_path / "heard", alternate + EVERYTHING + r"\x1b(B")
    me = tty("attach", "dev")
    me.shows("recorder ready")
    assert me.is_raw()
    assert not me.is_restored()
    return me


def test_detaching_gives_the_terminal_back(busy: Tty) -> None:
    busy.type(b"\x1b[98;5u\x1b[100u")
    assert busy.ends() == 0
    assert busy.is_restored()
    assert busy.screen._cursor_shape() == b""
    assert busy.lines()[-1].startswith("[detached from dev")


HOSTILE = rb"\033[2h\033[12l\033]10;#101010\007\033]11;#101010\033\\\033]4;1;rgb:10/10/10\007"
QUESTIONS = (b"\x1b[2$p", b"\x1b[12$p", b"\x1b]10;?\x07", b"\x1b]11;?\x07", b"\x1b]4;1;?\x07")


def answers_of(screen: GhosttyScreen) -> list[bytes]:
    """Whether the keyboard is locked, whether what is typed is shown, and the colours."""
    found: list[bytes] = []
    screen.on_reply(found.append)
    for question in QUESTIONS:
        screen.feed(question)
    return found


@pytest.mark.ids("S8")
@pytest.mark.parametrize("end", ["detaching", "the agent's end"])
def test_a_locked_keyboard_an_echo_and_colours_do_not_outlive_the_visit(hitch: Hitch, tty: Terminals, end: str) -> None:
    quiet = GhosttyScreen(80, 24, 10)
    script = f"stty raw -echo; echo ready; head -c1; printf '{HOSTILE.decode()}'; echo done; head -c1"
    hitch("run", "--name", "dev", "--", "sh", "-c", script)
    me = tty("attach", "dev")
    me.shows("ready")
    me.type(b"x")
    me.shows("done")
    assert answers_of(me.screen) != answers_of(quiet)
    me.type(DETACH if end == "detaching" else b"x")
    assert me.ends() == 0
    assert answers_of(me.screen) == answers_of(quiet)
    quiet.close()


@pytest.mark.ids("S8")
@pytest.mark.parametrize("end", ["detaching", "the agent's end"])
def test_what_is_written_after_the_alternate_screen_is_visible(hitch: Hitch, tty: Terminals, end: str) -> None:
    """Leaving it brings back the style and the letters that were set before."""
    hides = r"\033[?45h\033[?1045h\033[8m\033(0\033[?1049h\033[0m\033(B"
    script = f"stty raw -echo; echo ready; head -c1; printf '{hides}'; echo done; head -c1"
    hitch("run", "--name", "dev", "--", "sh", "-c", script)
    me = tty("attach", "dev")
    me.shows("ready")
    me.type(b"x")
    me.shows("done")
    me.type(DETACH if end == "detaching" else b"x")
    assert me.ends() == 0
    assert me.is_restored()
    assert me.lines()[-1].startswith("[detached from dev" if end == "detaching" else "[dev: completed]")


def test_colours_are_seen_however_they_come() -> None:
    for sets in (b"\x1b]11;#000\x07", b"\x9d4;1;red\x9c", b"\x1b]10;?;black\x1b\\", b"\x1b]4;1;?;2;rgb:0/0/0\x07"):
        for cut in range(len(sets) + 1):
            colours = Colours()
            colours.passed(b"text" + sets[:cut])
            colours.passed(sets[cut:])
            assert colours.are_changed, (sets, cut)
    for asks in (b"\x1b]11;?\x07", b"\x1b]4;1;?;2;?\x1b\\", b"\x1b]2;title\x07", b"]11;#000", b"\x1b]110\x07"):
        colours = Colours()
        colours.passed(asks)
        assert not colours.are_changed, asks


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_gives_the_terminal_back(busy: Tty, number: signal.Signals) -> None:
    os.kill(busy.process.pid, number)
    assert busy.ends() == 128 + number
    assert busy.is_restored()
    assert state() == "running"


def test_the_end_of_the_agent_gives_the_terminal_back(busy: Tty, hitch: Hitch) -> None:
    hitch("stop", "--now", "dev")
    assert busy.ends() == 0
    assert busy.is_restored()
    assert busy.lines()[-1] == "[dev: stopped]"


def test_an_error_gives_the_terminal_back(hitch: Hitch, tty: Terminals, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'attach' in sys.argv:\n"
        "    import hitchpost.cli.attachment as a\n"
        "    def broken(self): raise RuntimeError('a bug')\n"
        "    a.Attachment._on_keys = broken\n"
    )
    recorder(hitch, tmp_path / "heard", EVERYTHING)
    me = tty("attach", "dev", PYTHONPATH=str(tmp_path))
    me.until(me.is_raw)
    me.until(lambda: me.text() and me.screen.input_modes())
    me.type(b"x")
    assert me.ends() == 1
    assert me.is_restored()
    assert "a bug" in me.text()


def test_a_terminal_that_is_closed_ends_the_visit_and_not_the_session(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    os.close(me.slave)
    os.close(me.master)
    me.master, me.slave = os.open(os.devnull, os.O_RDWR | os.O_NONBLOCK), os.open(os.devnull, os.O_RDWR)
    eventually(lambda: me.process.poll() is not None)
    assert me.process.returncode == 128 + signal.SIGHUP
    assert state() == "running"


def test_being_stopped_gives_the_terminal_back_until_it_goes_on(busy: Tty) -> None:
    os.kill(busy.process.pid, signal.SIGTSTP)
    eventually(lambda: (Process.read(busy.process.pid) or pytest.fail("it ended")).state == "T")
    busy.read()
    assert busy.is_restored()
    busy.screen.feed(b"\x1b[2J\x1b[Houter$ fg\r\n")
    os.kill(busy.process.pid, signal.SIGCONT)
    busy.shows("recorder ready")
    assert busy.is_raw()
    busy.type(b"!")
    busy.shows("heard")
    busy.type(DETACH)
    assert busy.ends() == 0
    assert busy.is_restored()


def test_the_caller_s_own_lines_are_not_painted_over(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    me.type(DETACH)
    assert me.ends() == 0
    assert me.screen._terminal.contents().startswith("outer$ hitch attach\n")


def test_the_cursor_is_below_what_the_agent_has_drawn(hitch: Hitch, tty: Terminals, tmp_path: Path) -> None:
    recorder(hitch, tmp_path / "heard", r"one\r\ntwo\r\n| box |\r\n-------\x1b[1;1H")
    me = tty("attach", "dev")
    me.shows("recorder ready")
    me.type(DETACH)
    assert me.ends() == 0
    assert me.lines()[1:] == ["two", "| box |", "-------", "[detached from dev; hitch attach dev comes back]"]


def test_the_title_is_given_back(busy: Tty) -> None:
    busy.type(DETACH)
    assert busy.ends() == 0
    kept, given = busy.received.find(terminal.KEEP_TITLE), busy.received.rfind(terminal.GIVE_TITLE_BACK)
    assert 0 <= kept < busy.received.find(b"\x1b]2;mine") < given


def test_the_reset_undoes_every_mode() -> None:
    screen = GhosttyScreen(80, 24, 10)
    screen.feed(EVERYTHING.encode().decode("unicode_escape").encode("latin-1"))
    screen.feed(b"\x1b]52;c;cut in the mid" + terminal.RESET + b"x")
    fresh = GhosttyScreen(80, 24, 10)
    fresh.feed(b"x")
    assert screen._modes() == fresh._modes()
    assert screen.lines(0, 0, 80, 24) == fresh.lines(0, 0, 80, 24)
    assert screen.input_modes() == b""


def test_the_flags_of_the_shared_terminal_are_not_touched(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    assert os.get_blocking(me.slave)
    me.type(DETACH)
    assert me.ends() == 0
