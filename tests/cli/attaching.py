"""A terminal with a person at it: a PTY, the command on its other side, and an emulator that shows what one sees."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hitchpost.terminal.emulator.ghostty import GhosttyScreen
from tests.ground import present
from tests.support import Hitch, eventually
from tests.warm import spawn

PROMPT = "ready> "
PATIENCE_S = 60
DETACH = b"\x02d"

RECORDER = """
import os, sys, tty
tty.setraw(0)
out = open(sys.argv[1], "wb", buffering=0)
os.write(1, sys.argv[2].encode().decode("unicode_escape").encode("latin-1") + b"recorder ready")
while data := os.read(0, 4096):
    out.write(data)
    if data.endswith(b"!"):
        os.write(1, b"\\r\\nheard")
"""
"""An agent that writes down each byte that reaches it, after printing its second argument."""


class Tty:
    """``hitch ARGS`` on a terminal of its own. ``before`` is how the terminal was set when it began."""

    def __init__(self, *args: str, cols: int = 80, rows: int = 24, answers: bool = False, **env: str) -> None:
        self.master, self.slave = pty.openpty()
        os.set_blocking(self.master, False)
        self.screen = GhosttyScreen(cols, rows, 2000)
        if answers:
            self.screen.on_reply(self.type)
        self.received = bytearray()
        self.resize(cols, rows)
        self.before = termios.tcgetattr(self.slave)
        self.screen.feed(b"outer$ hitch attach\r\n")
        environment = Hitch.environment() | {"TERM": "xterm-256color"} | env
        standard = (self.slave, self.slave, self.slave)
        self.process = spawn("hitchpost", args, environment, standard, session=True)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)
        self.screen.close()

    def resize(self, cols: int, rows: int) -> None:
        self.screen.resize(cols, rows)
        termios.tcsetwinsize(self.master, (rows, cols))

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    def read(self) -> None:
        """Take what the command wrote."""
        while True:
            try:
                data = os.read(self.master, 65536)
            except BlockingIOError:
                return
            self.received += data
            self.screen.feed(data)

    def text(self) -> str:
        self.read()
        return self.screen.text()

    def lines(self) -> list[str]:
        return self.text().splitlines()

    def shows(self, text: str) -> None:
        self.until(lambda: text in self.text(), f"{text!r} on the screen")

    def until(self, condition: Callable[[], Any], what: str = "") -> None:
        try:
            eventually(condition, timeout_s=PATIENCE_S, what=what)
        except AssertionError as late:
            raise AssertionError(f"{late}; the screen:\n{self.text()}") from None

    def ends(self, *, reading: bool = True) -> int:
        """Wait for the command's end; its exit code."""

        def over() -> bool:
            if reading:
                self.read()
            return self.process.poll() is not None

        self.until(over, "the end of the command")
        self.read()
        return self.process.wait()

    def is_restored(self) -> bool:
        """Whether the terminal is as it was: its settings, its modes, and on its normal screen."""
        quiet = GhosttyScreen(self.screen.cols, self.screen.rows, 10)
        same = (self.screen._modes(), self.screen.alternate(), self.screen.input_modes()) == (
            quiet._modes(),
            False,
            b"",
        )
        same = same and self.screen._extra("scrolling_region") == quiet._extra("scrolling_region")
        same = same and self.screen._extra("style") == quiet._extra("style")
        quiet.close()
        return same and termios.tcgetattr(self.slave) == self.before

    def is_raw(self) -> bool:
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def is_stalled(self) -> bool:
        """Whether the command has filled the terminal, which nobody reads, and waits."""
        before = self._unread()
        time.sleep(0.3)
        return before > 1000 and self._unread() == before

    def _unread(self) -> int:
        size = fcntl.ioctl(self.master, termios.FIONREAD, b"\0\0\0\0")
        return int.from_bytes(size, sys.byteorder)


class Terminals:
    """Opens terminals for a test."""

    def __init__(self) -> None:
        self.opened: list[Tty] = []

    def __call__(self, *args: str, **options: Any) -> Tty:
        self.opened.append(Tty(*args, **options))
        return self.opened[-1]


@contextmanager
def terminals() -> Iterator[Terminals]:
    made = Terminals()
    try:
        yield made
    finally:
        for tty in made.opened:
            tty.close()


def shell(hitch: Hitch, name: str = "dev", script: str = "") -> None:
    """Start a session with a shell in it that prompts with ``PROMPT``."""
    command = f"{script}\nexec sh -i" if script else "exec sh -i"
    hitch("run", "--name", name, "--env", f"PS1={PROMPT}", "--", "sh", "-c", command)


def recorder(hitch: Hitch, heard: os.PathLike[str], prints: str = "", name: str = "dev") -> None:
    """Start a session whose agent prints ``prints`` and writes what reaches it to the file ``heard``."""
    Path(heard).touch()
    hitch("run", "--name", name, "--", sys.executable, "-c", RECORDER, os.fspath(heard), prints)


def folder(name: str = "dev") -> Path:
    """The session's folder."""
    sessions = Path(os.environ["HITCHPOST_HOME"]) / "sessions"
    (found,) = (file.parent for file in sessions.glob("*/session.json") if json.loads(file.read_text())["name"] == name)
    return found


def state(name: str = "dev") -> str:
    """The state of the session, from its file."""
    return str(json.loads((folder(name) / "state.json").read_text())["state"])


def logged(name: str = "dev", run: int = 1) -> bytes:
    """What the session's log holds."""
    segments = sorted((folder(name) / "runs" / str(run) / "output").glob("*.log"))
    return b"".join(map(present, segments))


def quiet_for(tty: Tty, seconds: float) -> bool:
    """Whether the command writes nothing for a while: for the rare test that shows that something does not happen."""
    tty.read()
    before, deadline = len(tty.received), time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(0.01)
        tty.read()
    return len(tty.received) == before
