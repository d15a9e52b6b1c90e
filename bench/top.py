"""``hitch top`` beside 300 sessions: what it costs while nothing happens, and a key until it is drawn."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import termios
import time

from bench.stage import Stage, cpu_s, end_children, hitch, median, percentile, program, wait_until
from bench.table import Row, at_most

SETTLE_S = 3.0
KEY_EVERY_S = 0.23
"""The list is drawn again each second by itself: keys come at any time in between."""


class Terminal:
    """The dashboard on a terminal of 120 by 40, whose output is read and thrown away."""

    def __init__(self) -> None:
        self.fd, child = pty.openpty()
        termios.tcsetwinsize(child, (40, 120))
        environment = {**os.environ, "TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            [hitch(), "top"], stdin=child, stdout=child, stderr=child, env=environment, start_new_session=True
        )
        os.close(child)
        self.seen = b""

    def read(self, for_s: float) -> bytes:
        """What it writes next, within that time."""
        if not select.select([self.fd], [], [], for_s)[0]:
            return b""
        data = os.read(self.fd, 1 << 16)
        self.seen = (self.seen + data)[-(1 << 16) :]
        return data

    def drain(self, for_s: float) -> None:
        until = time.monotonic() + for_s
        while (left_s := until - time.monotonic()) > 0:
            self.read(left_s)

    def key_s(self, key: bytes) -> float:
        """How long until what a key changes is drawn; 0 when nothing was within a second."""
        began = time.perf_counter()
        os.write(self.fd, key)
        return time.perf_counter() - began if self.read(1.0) else 0.0

    def close(self) -> None:
        end_children([self.process])
        os.close(self.fd)


def measure(*, quick: bool) -> list[Row]:
    count, lasting_s, keys = (5, 1.0, 5) if quick else (300, 20.0, 100)
    with Stage(quick=quick) as stage:
        stage.sessions(count, program(), "sleep")
        terminal = Terminal()
        try:
            wait_until(lambda: bool(terminal.read(0.1)) and b"Quiet" in terminal.seen, "the list")
            terminal.drain(SETTLE_S)
            before = cpu_s(terminal.process.pid)
            terminal.drain(lasting_s)
            busy = (cpu_s(terminal.process.pid) - before) / lasting_s * 100
            drawn = []
            for number in range(keys):
                terminal.drain(KEY_EVERY_S)
                drawn.append(terminal.key_s(b"j" if number % 2 == 0 else b"k") * 1000)
        finally:
            terminal.close()
    sample = f"{count} sessions"
    return [
        Row("hitch top: processor while nothing happens", sample, busy, "%", None, "", at_most(5, "%")),
        Row("hitch top: a key until it is drawn, p50", sample, median(drawn), "ms", None, ""),
        Row(
            "hitch top: a key until it is drawn, p99",
            sample,
            percentile(drawn, 0.99),
            "ms",
            None,
            "",
            at_most(50, "ms"),
        ),
    ]
