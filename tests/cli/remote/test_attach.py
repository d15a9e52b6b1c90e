"""``hitch attach`` from another machine: what is true of a terminal here is true there, and the network may fail."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli import test_attach, test_attach_answers, test_attach_clients, test_attach_terminal
from tests.cli.attaching import DETACH, PROMPT, Terminals, Tty, logged, recorder, shell, state, terminals
from tests.cli.remote.far import NAME, Far
from tests.cli.test_attach import seen_at
from tests.ground import Ground
from tests.support import THE_COMMAND, Hitch, eventually

SAME = (test_attach, test_attach_answers, test_attach_clients, test_attach_terminal)
NOT_HERE = (
    "test_a_detach_key_that_makes_no_sense_is_told_before_anything_happens",  # other settings have other contexts
    "test_the_detach_key_is_a_setting",
    "test_the_last_line_is_shown_when_the_agent_ends_while_a_client_attaches",  # they run in the current folder
    "test_run_with_attach_enters_at_once",
    "test_lost_output_is_announced",  # the network holds as much as that
)
for module in SAME:
    for name, thing in vars(module).items():
        if name.startswith("test_") and "tty" in getattr(thing, "__annotations__", {}) and name not in NOT_HERE:
            globals()[name] = thing


class FarTerminals(Terminals):
    """On a machine that reaches the session through its hub only."""

    def __init__(self, far: Far) -> None:
        super().__init__()
        self.far = far

    def __call__(self, *args: str, **options: Any) -> Tty:
        return super().__call__(*args, **{**self.far.env, "HITCHPOST_CONTEXT": NAME, **options})


@pytest.fixture
def tty(far: Far) -> Iterator[FarTerminals]:
    made = FarTerminals(far)
    with terminals() as others:
        yield made
        others.opened += made.opened
        for opened in made.opened:
            opened.process.send_signal(signal.SIGTERM)  # who is killed leaves a copy behind until the next one comes
        for opened in made.opened:
            eventually(lambda opened=opened: opened.process.poll() is not None, what="its end")  # type: ignore[misc]


COUNTS = """
import os, sys, time, tty
tty.setraw(0)
os.read(0, 1)
for number in range(1, 100001):
    os.write(1, b"line %06d of what is counted\\r\\n" % number)
    if number % 50 == 0:
        time.sleep(0.01)
    if number == int(sys.argv[1]):
        break
os.write(1, b"counted to its end"); time.sleep(1000)
"""
NUMBERS = re.compile(rb"line (\d{6}) of")
TOLD = re.compile(rb"\x1b](?:2;[^\x1b]*\x1b\\|9;[^\a]*\a)\a?")
"""What stands between two pieces of output: a title, or a notification, as of trouble of the hub."""


def counted(tty: Tty) -> list[int]:
    """The numbers that reached the terminal as output, in order. Something may be told in the middle of one."""
    return [int(number) for number in NUMBERS.findall(TOLD.sub(b"", tty.received))]


def before(tty: Tty, number: int) -> bytes:
    """What the terminal got before a number."""
    return bytes(tty.received.partition(b"line %06d" % number)[0][-2000:])


def at_the_end(numbers: list[int]) -> list[int]:
    """Those at the end that follow each other without a gap."""
    last = max((place for place in range(1, len(numbers)) if numbers[place] != numbers[place - 1] + 1), default=0)
    return numbers[last:]


def received(tty: Tty) -> bytes:
    """All that was written to the terminal so far."""
    tty.read()
    return bytes(tty.received)


def begin_counting(ground: Ground, most: int) -> None:
    ground.hitch("run", "--name", "dev", "--", sys.executable, "-c", COUNTS, str(most))


def test_what_is_printed_while_the_hub_is_killed_comes_when_it_is_back(
    far: Far, ground: Ground, tty: FarTerminals
) -> None:
    ground.hitch("run", "--name", "dev", "--", "sh", "-c", "stty -echo; exec cat")
    me = tty("attach", "dev")
    me.until(me.is_raw)
    me.type(b"before\r")
    me.shows("before")
    for number in (1, 2):
        far.hub.kill()
        ground.hitch("send", "dev", f"meanwhile {number}")
        me.until(lambda: b"team cannot be reached; trying again" in received(me), "that it is told")
        far.restart_hub(kill=True)
        me.shows(f"meanwhile {number}")
        me.received.clear()
    me.type(b"behind\r")
    me.shows("behind")
    lines = [line for line in me.lines() if line in ("before", "meanwhile 1", "meanwhile 2", "behind")]
    assert lines == ["before", "meanwhile 1", "meanwhile 2", "behind"]


def test_no_byte_is_lost_or_doubled_when_the_network_fails(far: Far, ground: Ground, tty: FarTerminals) -> None:
    most = 20_000
    with far.through_network() as wire:
        begin_counting(ground, most)
        me = tty("attach", "dev", cols=80, rows=24)
        me.until(me.is_raw)
        me.type(b"x")  # ends the hint, and begins the count: however late that is, no number is in the first screen
        me.until(lambda: received(me) and len(at_the_end(counted(me))) > 1000, "output as it is")
        begun = at_the_end(counted(me))[0]
        for cuts in range(1, 5):
            seen = len(me.received) + 20_000
            me.until(lambda: len(received(me)) > seen, "more output")  # noqa: B023
            wire.cut()
            me.until(lambda: received(me).count(b"trying again") == cuts, "that it is told")  # noqa: B023
            wire.mend()
        me.shows("counted to its end")
        whole = at_the_end(counted(me))
        assert whole == list(range(begun, most + 1)), before(me, whole[0])
        me.type(DETACH)
        assert me.ends() == 0


def test_a_network_that_carries_nothing_is_noticed_and_left(far: Far, ground: Ground, tty: FarTerminals) -> None:
    with far.through_network() as wire:
        shell(ground.hitch)
        me = tty("attach", "dev")
        me.shows(PROMPT.strip())
        wire.is_silent = True
        me.until(lambda: b"trying again" in received(me), "that it is told")
        wire.mend()
        me.until(lambda: b"\x1b]2;dev:" in received(me).rpartition(b"trying again")[2], "the way back")
        me.type(b"echo $((40 + 2)) again\r")
        me.shows("42 again")


def test_every_byte_that_a_terminal_can_send_reaches_the_agent(
    far: Far, ground: Ground, tty: FarTerminals, tmp_path: Path
) -> None:
    heard = tmp_path / "heard"
    recorder(ground.hitch, heard)
    me = tty("attach", "dev")
    me.shows("recorder ready")
    odd = bytes(byte for byte in range(256) if byte not in (0x02, 0x1B))
    me.type(odd)
    eventually(lambda: heard.read_bytes() == odd, what="each byte")


def test_who_may_only_look_sees_the_screen_and_types_nothing(far: Far, ground: Ground, tty: FarTerminals) -> None:
    far.add("viewer", far.hub.token("viewer"))
    ground.hitch("run", "--name", "dev", "--", "sh", "-c", "echo hello; exec cat")
    me = Terminals.__call__(tty, "--context", "viewer", "attach", "dev", **far.env)
    me.shows("hello")
    me.type(b"evil\r")
    me.until(lambda: received(me).count(b"\a") == 1, "the bell")
    assert far.hub.process is not None
    far.hub.process.send_signal(signal.SIGSTOP)  # however late the hub refuses a key, the bell tells
    me.type(b"late\r")
    typed_at = time.monotonic()
    eventually(lambda: time.monotonic() > typed_at + 1.5, what="a slow hub")
    far.hub.process.send_signal(signal.SIGCONT)
    me.until(lambda: received(me).count(b"\a") == 2, "the bell")
    assert b"evil" not in logged()
    assert b"late" not in logged()
    me.type(DETACH)
    assert me.ends() == 0
    assert seen_at() == ""


def test_a_session_is_entered_as_soon_as_it_is_started(far: Far, ground: Ground, tty: FarTerminals) -> None:
    script = "echo the very last; exit 3"
    me = tty("run", "--folder", str(ground.place), "--name", "dev", "--attach", "--", "sh", "-c", script)
    assert me.ends() == 0
    assert me.lines()[-2:] == ["the very last", "[dev: failed: command exited with code 3]"]


def test_a_session_that_is_removed_is_left(far: Far, ground: Ground, tty: FarTerminals) -> None:
    shell(ground.hitch)
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    ground.hitch("rm", "-f", "dev")
    assert me.ends() in (0, 1)
    assert me.lines()[-1] in ("[dev was removed]", "[dev: stopped]")
    assert me.is_restored()


def test_a_token_that_is_taken_back_ends_the_visit(far: Far, ground: Ground, tty: FarTerminals) -> None:
    shell(ground.hitch)
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    (token,) = ground.hitch("token", "ls", "--json").json()
    ground.hitch("token", "rm", token["id"])
    assert me.ends() == 4
    assert "this token is not known" in me.text()
    assert me.is_restored()


def test_it_is_entered_from_a_tmux_of_this_machine(far: Far, ground: Ground) -> None:
    shell(ground.hitch, script="echo from afar")
    own = ["tmux", "-f", "/dev/null", "-S", str(far.home.with_name("tmux"))]
    words = [*THE_COMMAND, "--context", NAME, "attach", "dev"]
    environment = {**Hitch.environment(), **far.env, "TERM": "xterm-256color"}
    keep = ["set-option", "-g", "remain-on-exit", "on", ";"]
    begin = ["new-session", "-d", "-x", "90", "-y", "20", shlex.join(words)]
    subprocess.run([*own, "start-server", ";", *keep, *begin], check=True, env=environment)

    def shown() -> str:
        return subprocess.run([*own, "capture-pane", "-p"], check=True, capture_output=True, text=True).stdout

    def press(*keys: str) -> None:
        subprocess.run([*own, "send-keys", *keys], check=True)

    try:
        eventually(lambda: "from afar" in shown(), what="its screen")
        press("stty size", "Enter")
        eventually(lambda: "20 90" in shown(), what="the size of this terminal")
        subprocess.run([*own, "resize-window", "-x", "70", "-y", "15"], check=True)
        press("stty size", "Enter")
        eventually(lambda: "15 70" in shown(), what="another size")
        press("C-\\", "C-\\")
        eventually(lambda: "hitch --context team attach dev comes back]" in shown(), what="the end of the visit")
        assert state() == "running"
    finally:
        subprocess.run([*own, "kill-server"], check=True)
