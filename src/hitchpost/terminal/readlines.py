"""Programs that print, and read a line: while one reads, bracketed paste is on in its terminal, and else it is off."""

from __future__ import annotations

import re

MOST_PRINTED_BYTES = 32 << 10
_MARK = re.compile(rb"\x1b\[\?(?:\d+;)*2004(?:;\d+)*([hl])")
_BEGUN = re.compile(rb"\x1b(?:\[(?:\?[\d;]{0,20})?)?\Z")
_CODES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])|[\x00-\x07\x0b\x0c\x0e-\x1f\x7f]"
)
_BACK = re.compile(r"[\r\x08]+\n?|\n")


class ReadLines:
    """``reading``: whether the program reads a line now; None before the first one, and when that is not known.

    ``taken`` counts the lines that it has taken.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._printed = bytearray()
        self.reading: bool | None = None
        self.taken = 0

    def feed(self, data: bytes) -> None:
        """Output, cut anywhere."""
        data, at = self._rest + data, 0
        for mark in _MARK.finditer(data):
            if not self.reading:
                self._printed += data[at : mark.start()]
            at = mark.end()
            reads = mark[1] == b"h"
            if self.reading and not reads:
                self.taken += 1
                self._printed.clear()
            self.reading = reads
        begun = _BEGUN.search(data, at)
        self._rest = b"" if begun is None else begun[0]
        if not self.reading:
            self._printed += data[at : len(data) - len(self._rest)]
            del self._printed[:-MOST_PRINTED_BYTES]

    def printed(self) -> str:
        """What it has printed since it took the last line, as plain text; of much, the end."""
        return plain(bytes(self._printed))

    def printed_bytes(self) -> bytes:
        """The same, as it was printed."""
        return bytes(self._printed)

    def forget(self) -> None:
        """Some output is missing: nothing is known any more."""
        self.reading, self._rest = None, b""
        self._printed.clear()


def plain(data: bytes) -> str:
    """Output as plain text, without what a terminal obeys."""
    text = data.decode("utf-8", "replace")
    return "\n".join(line.rstrip() for line in _BACK.sub("\n", _CODES.sub("", text)).split("\n"))
