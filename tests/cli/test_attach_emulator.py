"""``hitch attach`` and output that its emulator does not survive."""

from __future__ import annotations

import os
import signal
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitchpost.terminal.screen import TAIL_BYTES, WITHOUT_EMULATOR
from tests.cli.attaching import DETACH, Terminals, Tty, folder, logged, shell, terminals
from tests.ground import descendants
from tests.support import Hitch, eventually
from tests.terminal.test_emulators import HOG


@pytest.fixture
def tty(home: Path) -> Iterator[Terminals]:
    with terminals() as made:
        yield made


def printed(hitch: Hitch, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "bytes").write_bytes(data)
    hitch("run", "--name", "dev", "--", "sh", "-c", f"stty raw -echo; cat {tmp_path / 'bytes'}; exec cat")
    eventually(lambda: len(logged()) >= len(data), 60)


def emulator_of(me: Tty) -> int:
    """The process that draws the screen: of what attach has started, the last."""
    return max(descendants(me.process.pid), key=lambda process: (process.start_ticks, process.pid)).pid


@pytest.mark.timeout(240)
def test_output_that_no_emulator_survives_is_shown_all_the_same(hitch: Hitch, tty: Terminals, tmp_path: Path) -> None:
    # its end is shown without the rest, or the emulator of this very test would be busy with that for a minute
    end = b"and so on\r\n" * (2 * TAIL_BYTES // 10)
    printed(hitch, tmp_path, HOG + b"\r\n" + end + b"the end\r\n")
    me = tty("attach", "dev")
    me.shows(WITHOUT_EMULATOR)
    me.shows("the end")
    me.type(b"typed")
    me.shows("typed")
    me.type(DETACH)
    assert me.ends() == 0
    assert "Traceback" not in me.received.decode(errors="replace")
    assert me.lines()[-1].startswith("[detached from dev")


@pytest.mark.parametrize("size", [(80, 24), (40, 10)])
def test_the_death_of_its_emulator_is_not_noticed(hitch: Hitch, tty: Terminals, size: tuple[int, int]) -> None:
    shell(hitch, script="echo earlier")
    me = tty("attach", "dev", cols=size[0], rows=size[1])
    me.shows("earlier")
    os.kill(emulator_of(me), signal.SIGSEGV)
    me.type(b"echo $((6 * 7))\r")
    me.shows("42")
    me.type(DETACH)
    assert me.ends() == 0
    assert me.is_restored()


@pytest.mark.parametrize("alternate", [b"", b"\x1b[?1049h"])
def test_a_very_long_string_that_does_not_end_can_be_looked_at(
    hitch: Hitch, tty: Terminals, tmp_path: Path, alternate: bytes
) -> None:
    printed(hitch, tmp_path, alternate + b"\x1b[Hseen\x1b]4;" + b"1;rgb:11/22/33;" * 5000)
    me = tty("attach", "dev")
    me.shows("seen")
    me.type(DETACH)
    assert me.ends() == 0
    assert "Traceback" not in me.received.decode(errors="replace")


def test_a_size_that_no_emulator_can_draw_is_shown_without_one(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch, script="echo earlier")
    me = tty("attach", "dev")
    me.shows("earlier")
    termios.tcsetwinsize(me.master, (9999, 9999))
    me.until(lambda: _has_size(9999, 9999))
    me.type(b"echo $((6 * 7))\r")
    me.shows("42")
    me.type(DETACH)
    assert me.ends() == 0


def _has_size(cols: int, rows: int) -> bool:
    return (cols << 32 | rows).to_bytes(8, "big") in (folder() / "runs/1/output/times.bin").read_bytes()
