"""Answers that a terminal is still to send: they belong to the program that asked, and not to whoever reads next."""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable

LONGEST_WAIT_S = 1.0
MOST_CARRIED_BYTES = 4096
TEXT = rb"[^\x05\x1b\x90\x98\x9a\x9b\x9d-\x9f]"
"""All but what begins a sequence or asks a question by itself, also in a terminal that does not speak UTF-8."""
TITLE = rb"[^\x00-\x1f\x7f\x90\x98-\x9f]"
SILENT_MODES = rb"(?:[134567]|12|25|45|47|66|69|80|1007|1034|1035|1036|1039|1047|1048|1049|2004|2026|2027)"
SILENT = re.compile(
    rb"(?:" + TEXT + rb"++"
    rb"|\x1b(?:"
    rb"[78=>DEHMNOc\\]|[()*+\-./][0-9A-Z]|\#[34568]|%[@G]"
    rb"|\[[0-9;:]*+(?:[@-HJ-MPSTXZ`abdefghlmrsu]|[ !][pq])"
    rb"|\[2[23](?:;[0-2])?t"
    rb"|\[>[0-9;]*+m|\[[<=>][0-9;]*+u"
    rb"|\[\?" + SILENT_MODES + rb"(?:;" + SILENT_MODES + rb")*+[hl]"
    rb"|\][012];" + TITLE + rb"*+(?:\x07|\x1b\\)"
    rb"|\]8;[^;\x00-\x1f\x7f-\x9f]*+;[^\x00-\x1f\x7f-\x9f]*+(?:\x07|\x1b\\)"
    rb"))*+"
)
"""Text, and the sequences of which it is known that no terminal answers them. All else may be a question."""
UNFINISHED = re.compile(
    rb"\x1b(?:[()*+\-./#%]|\[[0-?]*+[ !]?|\](?:[0128](?:;[^\x00-\x1f\x7f\x90\x98-\x9f]*+\x1b?)?)?)?"
)
"""How such a sequence may begin."""


class Answers:
    """Watches what goes to the terminal. ``outstanding`` when some of it may make the terminal send something."""

    def __init__(self) -> None:
        self.outstanding = False
        self._carried = b""

    def passed(self, data: bytes) -> None:
        """These bytes go to the terminal; sequences may be cut anywhere between two calls."""
        if self.outstanding:
            return
        data = self._carried + data
        silent = SILENT.match(data)
        self._carried = data[silent.end() if silent else 0 :]
        if self._carried:
            is_begun = len(self._carried) <= MOST_CARRIED_BYTES and UNFINISHED.fullmatch(self._carried)
            self.outstanding = not is_begun

    def left(self) -> bool:
        """Whether the terminal may still have something to send, now that nothing more goes to it."""
        return self.outstanding or bool(self._carried)


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
