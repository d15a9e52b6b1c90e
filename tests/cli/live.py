"""A command while it runs: what it has written so far, on a terminal or into a file, and keys and signals for it."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import tempfile
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import Hitch, eventually
from tests.warm import Process, spawn


@dataclass(slots=True)
class Live:
    """``terminal`` and ``slave`` are the two ends of its terminal; None without one."""

    process: Process
    out_path: Path
    err_path: Path
    before: list[Any]
    """How the terminal was set when the command was started."""
    terminal: int | None = None
    slave: int | None = None
    _seen: bytes = b""

    def out(self) -> bytes:
        if self.terminal is None:
            return self.out_path.read_bytes()
        while True:
            try:
                part = os.read(self.terminal, 65536)
            except BlockingIOError:
                break
            self._seen += part
        return self._seen

    def err(self) -> str:
        return self.err_path.read_text()

    def shows(self, text: bytes, timeout_s: float = 60) -> bytes:
        """Wait until ``text`` was written; everything so far."""
        assert eventually(lambda: text in self.out() or self._over(), timeout_s, what=f"{text!r} in the output")
        assert text in self.out(), f"ended with {self.process.poll()} before {text!r}: {self.out()!r} {self.err()}"
        return self.out()

    def _over(self) -> bool:
        return self.process.poll() is not None

    def press(self, keys: bytes) -> None:
        assert self.terminal is not None
        os.write(self.terminal, keys)

    def settings(self) -> list[Any]:
        assert self.slave is not None
        return termios.tcgetattr(self.slave)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def code(self, timeout_s: float = 60) -> int:
        """Wait for the end; a terminal is read meanwhile, so that nobody waits for it."""
        eventually(lambda: self.out() is not None and self._over(), timeout_s, what="the end of the command")
        return self.process.wait()

    def is_asleep(self) -> bool:
        """Whether it waits without waking up again and again, for as long as a ``hitch ps`` takes."""
        before = self._switches()
        Hitch()("ps")
        return self._switches() == before

    def _switches(self) -> list[str]:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return [line for line in text.splitlines() if "ctxt_switches" in line]


@contextmanager
def live(*args: str, terminal: tuple[int, int] | None = None) -> Iterator[Live]:
    """Start ``hitch ARGS``, on a terminal of so many columns and rows, or with its output in a file."""
    folder = Path(tempfile.mkdtemp(prefix="live-"))
    out_path, err_path = folder / "out", folder / "err"
    ends: tuple[int, int] | tuple[()] = ()
    before: list[Any] = []
    with open(out_path, "wb") as out, open(err_path, "wb") as err:
        if terminal is not None:
            ends = master, slave = os.openpty()
            cols, rows = terminal
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
            os.set_blocking(master, False)
            before = termios.tcgetattr(slave)
        with open(os.devnull) as nothing:
            standard = (ends[1], ends[1], err.fileno()) if ends else (nothing.fileno(), out.fileno(), err.fileno())
            process = spawn("hitchpost", args, Hitch.environment(), standard, session=True)
    try:
        yield Live(process, out_path, err_path, before, *(ends or (None, None)))
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        for end in ends:
            os.close(end)
