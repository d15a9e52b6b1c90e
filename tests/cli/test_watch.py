"""``hitch ps --watch``."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from hitchpost.cli.watch import cut, lasting, screen
from hitchpost.ops.views.table import HEADER, NODE, OWNER
from hitchpost.text import table, width
from tests.cli.live import Live, live
from tests.cli.places import new_session
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import Hitch, eventually


def frames(out: bytes) -> list[list[str]]:
    """The lines of every picture that was drawn whole, without colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.decode()).replace("\r\r\n", "\r\n")
    drawn = [part.partition("\x1b[J")[0] for part in plain.split("\x1b[H")[1:] if "\x1b[J" in part]
    return [[line.removesuffix("\x1b[K") for line in picture.split("\r\n")[:-1]] for picture in drawn]


def shows(watch: Live, word: str) -> list[str]:
    """Wait for a picture with ``word`` in it."""

    def found() -> list[str] | None:
        pictures = frames(watch.out())
        return pictures[-1] if pictures and any(word in line for line in pictures[-1]) else None

    return eventually(found, 60, what=f"a picture with {word}")


def test_the_table_follows_sessions_on_a_terminal(ground: Ground) -> None:
    with live("ps", "--watch", terminal=(100, 24)) as watch:
        assert re.split(" {2,}", shows(watch, "SESSION")[0]) == [word for word in HEADER if word not in (NODE, OWNER)]
        session = ground.begin_sh("exec sleep 1000", name="dev")
        assert re.match(r"1 +dev +sh +place +running +\d+s +\d+s$", shows(watch, "running")[1])
        ground.stop(session, "--now")
        shows(watch, "stopped")
        assert watch.out().startswith(b"\x1b[?25l\x1b[2J\x1b[H")
        watch.press(b"\x03")
        assert watch.code() == 0
        assert watch.out().replace(b"^C", b"").endswith(b"\x1b[?25h\x1b[0m\r\n")
        assert watch.err() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_cursor_comes_back_on_every_way_out(home: Path, number: signal.Signals) -> None:
    with live("ps", "--watch", terminal=(80, 24)) as watch:
        shows(watch, "SESSION")
        watch.signal(number)
        assert watch.code() == 128 + number
        assert watch.out().endswith(b"\x1b[?25h\x1b[0m\r\n")


def test_the_table_fits_the_terminal_and_follows_its_size(ground: Ground) -> None:
    for number in range(8):
        new_session(ground.home, ground.place, name=f"session-{number}", description="你好 " * 10)
    with live("ps", "-w", terminal=(40, 6)) as watch:
        picture = shows(watch, "more")
        assert len(picture) == 5
        assert picture[-1] == "… 5 more"
        assert max(map(width, picture)) <= 40
        assert watch.slave is not None
        fcntl.ioctl(watch.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 60, 0, 0))
        picture = shows(watch, "session-7")
        assert len(picture) == 9
        assert 40 < max(map(width, picture)) <= 60


def test_without_a_terminal_there_is_one_table_for_each_change(ground: Ground) -> None:
    with live("ps", "--watch") as watch:
        watch.shows(b"SESSION")
        session = ground.begin_sh("while :; do echo work; sleep 0.02; done", name="dev")
        watch.shows(b"running")
        ground.stop(session, "--now")
        watch.shows(b"stopped")
        tables = watch.out().decode().split("\n\n")
        assert [table.count("\n") for table in tables[:-1]] == [0, *[1] * (len(tables) - 2)]
        assert "\x1b" not in watch.out().decode()
        states = [re.search("running|stopping|stopped|starting|created", table) for table in tables[1:]]
        named = [state.group() for state in states if state]
        assert named == sorted(set(named), key=["created", "starting", "running", "stopping", "stopped"].index)
        watch.signal(signal.SIGINT)
        assert watch.code() == 0
        assert watch.err() == ""


def test_a_reader_that_goes_away_ends_the_watch(ground: Ground) -> None:
    script = '"$@" | { head -1; }; echo "${PIPESTATUS[0]}"'
    watching = subprocess.Popen(
        ["bash", "-c", script, "bash", *ground.hitch.command, "ps", "--watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=Hitch.environment(),
    )
    with watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith(b"SESSION")
        session = ground.begin_sh("exec sleep 1000")
        out, err = watching.communicate(timeout=30)
        assert (out, err) == (b"0\n", b"")
    ground.stop(session, "--now")


def test_a_home_that_is_refused_is_an_error(home: Path) -> None:
    os.chmod(home, 0o777)
    answer = Hitch()("ps", "--watch", check=4)
    assert "others may write to it" in answer.err
    os.chmod(home, 0o700)


def test_durations_are_no_change() -> None:
    def shown(label: str, in_status: str = "3s", name: str = "日本") -> list[str]:
        rows = [HEADER, ("1", name, "", "", "sh", "n2", "2m 3s", label, in_status, "1h 1m")]
        return lasting(table(rows))

    assert shown("running (idle 40s)") == shown("running (idle 1m 2s)") == shown("running (idle 40s)", "11m 12s")
    assert shown("running (idle 40s)") != shown("running (needs you 40s)")
    assert shown("running", name="4s") != shown("running", name="5s")


@pytest.mark.parametrize(
    ("line", "cols", "expected"),
    [
        ("short", 10, "short"),
        ("exactly", 7, "exactly"),
        ("longer", 4, "long"),
        ("a\x1b[31mred\x1b[0m end", 3, "a\x1b[31mre\x1b[0m"),
        ("你好", 3, "你"),
        ("", 5, ""),
    ],
)
def test_a_line_is_cut_by_columns_and_keeps_its_colours_closed(line: str, cols: int, expected: str) -> None:
    assert cut(line, cols) == expected


def test_a_tiny_terminal_is_no_trouble() -> None:
    assert screen(["one", "two", "three"], 1, 1) == "\x1b[H…\x1b[K\r\n\x1b[J"


def test_with_a_hub_changes_are_told_and_nothing_is_asked_in_between(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin("sleep", "1000", name="dev")
    with live("ps", "--watch") as watching:
        watching.shows(b"running")
        assert watching.is_asleep()
        ground.end(dev)
        watching.shows(b"stopped")
        hub.kill()
        ground.begin_sh("exit 3", name="other")
        watching.shows(b"command exited with code 3")
        watching.signal(signal.SIGTERM)
        assert watching.code() == 143
