"""Colours that a program gives its terminal. They would outlive it, and can hide what the person types next."""

from __future__ import annotations

import re

MOST_CARRIED_BYTES = 64
SETS = re.compile(rb"(?:\x1b\]|\x9d|\xc2\x9d)(?:[45]|1[0-9]);[^\x07\x1b\x9c]*[A-Za-z#]")
"""A question has a ``?`` in the place of a colour."""
TO_DEFAULT = b"".join(b"\x1b]%d\x1b\\" % number for number in (104, 105, *range(110, 120)))


class Colours:
    """Watches what goes to the terminal."""

    def __init__(self) -> None:
        self.are_changed = False
        self._carried = b""

    def passed(self, data: bytes) -> None:
        """These bytes go to the terminal; sequences may be cut anywhere between two calls."""
        if self.are_changed:
            return
        data = self._carried + data
        self.are_changed = SETS.search(data) is not None
        self._carried = data[-MOST_CARRIED_BYTES:]

    def back(self) -> bytes:
        """What gives the terminal its own colours back; nothing when it has them."""
        return TO_DEFAULT if self.are_changed else b""
