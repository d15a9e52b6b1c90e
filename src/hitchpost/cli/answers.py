"""Answers that a terminal is still to send: they belong to the program that asked, and not to whoever reads next."""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable

LONGEST_WAIT_S = 1.0
CARRIED_BYTES = 256

MAKES_TERMINALS_SEND = re.compile(
    rb"\x05|\x1b(?:"
    rb"Z|P|_G"
    rb"|\[[0-?]*(?:[cnx]|\$p|\*y)|\[(?:\?u|>[0-9]*q|[0-9;]*t|\?[0-9;]*S)"
    rb"|\[\?(?:[0-9]+;)*(?:9|100[0-6]|1015|1016|2031|2048|5522)[0-9;]*h"
    rb"|\][^\x07\x1b]*\?"
    rb")"
)
"""Queries of every kind, and modes in which a terminal tells of the mouse, the focus or itself."""


class Answers:
    """Watches what goes to the terminal. ``outstanding`` when some of it may make the terminal send something."""

    def __init__(self) -> None:
        self.outstanding = False
        self._carried = b""

    def passed(self, data: bytes) -> None:
        """These bytes go to the terminal; sequences may be cut anywhere between two calls."""
        if not self.outstanding:
            data = self._carried + data
            self.outstanding = MAKES_TERMINALS_SEND.search(data) is not None
            self._carried = data[-CARRIED_BYTES:]


class Fence:
    """A question to the terminal. It answers in order: what comes before the answer was meant for somebody else.

    It is the one that every terminal knows: where its cursor is. The places are made up, so that nobody can have asked
    for the same ones before.
    """

    def __init__(self, cols: int, rows: int) -> None:
        numbers = [int.from_bytes(os.urandom(4), "big") % side + 1 for side in (rows, cols, rows, cols)]
        self.question = b"\x1b7\x1b[%d;%dH\x1b[6n\x1b[%d;%dH\x1b[6n\x1b8" % tuple(numbers)
        self._answer = b"\x1b[%d;%dR\x1b[%d;%dR" % tuple(numbers)

    def swallow(self, fd: int, read: Callable[[], bytes]) -> None:
        """Take what the terminal sends, up to its answer, for ``LONGEST_WAIT_S`` at most."""
        taken = b""
        deadline = time.monotonic() + LONGEST_WAIT_S
        while self._answer not in taken and (left_s := deadline - time.monotonic()) > 0:
            if select.select([fd], [], [], left_s)[0]:
                taken += read()
