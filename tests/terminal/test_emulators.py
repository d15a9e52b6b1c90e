"""The emulator's processes: what they may do, how they die, and what their owner makes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.terminal import emulators as module
from hitchpost.terminal.emulators import EmulatedScreen, Emulators, NoEmulator, ScreenLost
from hitchpost.terminal.screen import WITHOUT_EMULATOR, Losses, RunScreen
from tests.ground import alive
from tests.support import eventually

HOG = b"x" + b"\x1b[65535b" * 32_000
"""A quarter megabyte that keeps an emulator busy for a minute."""
OWNER = """
import sys, time
from hitchpost.terminal.emulators import Emulators
emulators = Emulators()
busy, idle = emulators.open(80, 24), emulators.open(80, 24)
busy.feed(sys.argv[1].encode("latin-1") + b"\\x1b[65535b" * 32_000)
print(emulators.start()._pid, busy.pid, idle.pid, flush=True)
time.sleep(1000)
"""


@pytest.fixture
def emulators() -> Iterator[Emulators]:
    with Emulators() as made:
        yield made


def kill(screen: EmulatedScreen | RunScreen, number: int = signal.SIGSEGV) -> None:
    drawn = screen._screen if isinstance(screen, RunScreen) else screen
    assert isinstance(drawn, EmulatedScreen)
    os.kill(drawn.pid, number)


def logged(folder: Path, data: bytes) -> str:
    folder.mkdir()
    (folder / wire.segment_name(0)).write_bytes(data)
    return str(folder)


def test_a_death_costs_one_screen(emulators: Emulators) -> None:
    with closing(emulators.open(80, 24)) as one, closing(emulators.open(80, 24)) as other:
        one.feed(b"one")
        other.feed(b"other")
        kill(one)
        with pytest.raises(ScreenLost, match="died of signal 11"):
            one.text()
        assert other.text() == "other"
        with closing(emulators.open(80, 24)) as third:
            assert third.text() == ""


def test_a_screen_that_does_not_answer_is_ended(emulators: Emulators, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_TIMEOUT_S", 0.2)
    with closing(emulators.open(80, 24)) as screen:
        kill(screen, signal.SIGSTOP)
        with pytest.raises(ScreenLost, match="hangs"):
            screen.text()
        assert not alive(screen.pid)


def test_a_screen_that_needs_too_much_memory_fails_alone(emulators: Emulators) -> None:
    with closing(emulators.open(80, 24)) as screen, closing(emulators.open(80, 24)) as other:
        screen.resize(10_000, 10_000)
        with pytest.raises(ScreenLost):
            screen.snapshot()
        assert other.text() == ""


def test_the_smallest_sizes_are_drawn_on_two_by_two(emulators: Emulators) -> None:
    with closing(emulators.open(1, 1)) as screen:
        screen.feed(b"\x1b]8;;http://x\x1b\\abcdef")
        screen.resize(1, 1)
        assert (screen.cols, screen.rows) == (1, 1)
        assert len(screen.lines(0, 0, 10, 10)) == 2


def test_the_process_has_one_socket_no_environment_and_may_become_nobody_else(emulators: Emulators) -> None:
    with closing(emulators.open(80, 24)) as screen:
        screen.text()
        about = Path(f"/proc/{screen.pid}")
        opened = sorted(int(name) for name in os.listdir(about / "fd"))
        assert [os.readlink(about / "fd" / str(fd)) for fd in opened[:3]] == ["/dev/null"] * 3
        assert [os.readlink(about / "fd" / str(fd)).split(":")[0] for fd in opened[3:]] == ["socket"]
        assert (about / "environ").read_bytes() == b""
        assert "NoNewPrivs:\t1" in (about / "status").read_text()
        limits = (about / "limits").read_text()
        for name in ("Max core file size", "Max file size", "Max open files", "Max processes"):
            line = next(line for line in limits.splitlines() if line.startswith(name))
            assert line.removeprefix(name).split()[:2] == ["0", "0"]


def test_all_of_it_ends_with_its_owner() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, "x"], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pids = [int(word) for word in owner.stdout.readline().split()]
    assert all(map(alive, pids))
    owner.kill()
    owner.wait()
    owner.stdout.close()
    eventually(lambda: not any(map(alive, pids)), 60)


def test_a_warm_process_that_dies_is_started_again(emulators: Emulators) -> None:
    with closing(emulators.open(80, 24)) as screen:
        os.kill(emulators.start()._pid, signal.SIGKILL)
        eventually(lambda: not alive(screen.pid))
        with pytest.raises(ScreenLost):
            screen.text()
    with closing(emulators.open(80, 24)) as again:
        again.feed(b"again")
        assert again.text() == "again"


def test_a_prepared_process_becomes_the_next_screen(emulators: Emulators) -> None:
    emulators.prepare()
    emulators.prepare()
    assert emulators._spare is not None
    ready = emulators._spare.pid
    with closing(emulators.open(30, 5)) as screen, closing(emulators.open(30, 5)) as other:
        screen.feed(b"x" * 31)
        assert (screen.pid, screen.text(), screen.cols) == (ready, "x" * 30 + "\nx", 30)
        assert other.pid != ready


def test_without_the_library_there_is_no_emulator(
    emulators: Emulators, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyghostty.py").write_text("raise ImportError('not for this platform')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pyghostty", raising=False)
    for _ in range(2):
        with pytest.raises(NoEmulator, match="not for this platform"):
            emulators.open(80, 24)


# the screen of a run -------------------------------------------------------------------------------------------------


def test_a_run_s_screen_outlives_its_emulator(emulators: Emulators, tmp_path: Path) -> None:
    told: list[tuple[int, str]] = []
    losses = Losses(lambda folder, count, why: told.append((count, why)))
    folder = logged(tmp_path / "output", b"\x1b[?1049h\x1b[3;4Hhere")
    with closing(RunScreen(folder, emulators, losses)) as screen:
        screen.advance(20)
        before = screen.snapshot()
        kill(screen)
        assert (screen.snapshot(), screen.offset) == (before, 18)
        assert told == [(1, "it died of signal 11")]


def test_after_two_losses_a_run_has_a_plain_screen_that_says_so(emulators: Emulators, tmp_path: Path) -> None:
    losses = Losses()
    folder = logged(tmp_path / "output", b"first\r\n\x1b[31msecond\x1b[m")
    with closing(RunScreen(folder, emulators, losses)) as screen:
        screen.advance(100)
        for _ in range(2):
            assert screen.text() == "first\nsecond"
            kill(screen)
        assert screen.text() == f"{WITHOUT_EMULATOR}\nfirst\nsecond"
        assert not screen.can_paint
        assert WITHOUT_EMULATOR.encode() in screen.snapshot()
    with closing(RunScreen(folder, emulators, losses)) as again:
        again.advance(100)
        assert again.text() == f"{WITHOUT_EMULATOR}\nfirst\nsecond"
    assert losses.by_run == {folder: 2}


def test_output_that_keeps_each_emulator_busy_for_too_long_ends_in_a_plain_screen(
    emulators: Emulators, tmp_path: Path
) -> None:
    why_lost: list[str] = []
    folder = logged(tmp_path / "output", b"words\r\n" + HOG + b"\r\nmore")
    with closing(RunScreen(folder, emulators, Losses(lambda _, __, why: why_lost.append(why)))) as screen:
        screen.advance(1 << 20)
        assert screen.text().splitlines()[0] == WITHOUT_EMULATOR
        assert screen.text().splitlines()[-1] == "more"
        # every other way to look at it has an answer, too
        screen.snapshot(), screen.lines(0, 0, screen.cols, screen.rows)
        screen.cursor(), screen.alternate(), screen.input_modes()
    assert ["computed for too long" in why for why in why_lost] == [True, True], why_lost


LOADS = """
import sys
from types import ModuleType
MADE = "hitchpost.terminal.emulator.declarations"
other = ModuleType(MADE)
other.MADE_FROM, other.ffi = [1], None
stand_ins = {"missing": {MADE: None}, "other": {MADE: other}, "made": {}}
sys.modules |= stand_ins[sys.argv[1]]
from hitchpost.terminal.emulator import drawing, library
drawing.warm_up()
print(type(library.ffi).__name__, "pycparser" in sys.modules)
"""


@pytest.mark.parametrize("declarations", ["made", "missing", "other"])
def test_declarations_are_read_at_the_start_only_where_none_were_made_for_this_library(declarations: str) -> None:
    done = subprocess.run([sys.executable, "-c", LOADS, declarations], capture_output=True, text=True, check=True)
    assert done.stdout.split() == (["Declared", "False"] if declarations == "made" else ["FFI", "True"])
