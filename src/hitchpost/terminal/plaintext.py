"""Terminal output as plain text: nothing in it can act on the terminal of whoever reads it."""

from __future__ import annotations

import codecs
import re

from hitchpost.terminal.sequences import Kind, Splitter

WIDEST_STEP = 80
_TURNING = re.compile("[\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Letters that turn or break the line they stand in: what is read would not be what was written."""

_STEP = re.compile(r"\x1b\[([0-9]*)([CG])")
"""So many columns to the right, or to this column."""


class Plain:
    """A filter over the log's bytes. Characters and sequences may be cut anywhere between two calls.

    Escape sequences go, except that a step to the right becomes blanks: programs that draw their screen write words
    that way. A carriage return becomes a line end, so does a step to the first column, and other control characters go.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._splitter = Splitter()
        self._column = 0
        self._returned = False

    def feed(self, data: bytes) -> str:
        return "".join(self._plain(token) for token in self._splitter.feed(self._decoder.decode(data)))

    def finish(self) -> str:
        """What was kept back, when nothing more comes or bytes are missing here."""
        tokens = [*self._splitter.feed(self._decoder.decode(b"", final=True)), *self._splitter.finish()]
        self._decoder.reset()
        return "".join(map(self._plain, tokens))

    def _plain(self, token: tuple[Kind, str]) -> str:
        kind, text = token
        if kind is Kind.TEXT:
            return self._text(escape_turning(text))
        if kind is Kind.CONTROL:
            return self._control(text)
        if kind is Kind.CSI and (step := _STEP.fullmatch(text)):
            return self._step(int(step[1][:9] or "1") or 1, step[2])
        return ""

    def _step(self, number: int, kind: str) -> str:
        if kind == "C":
            return self._text(" " * min(number, WIDEST_STEP))
        if number == 1:
            return self._control("\r")
        gap = number - 1 - (0 if self._returned else self._column)
        return self._text(" " * min(gap, WIDEST_STEP)) if gap > 0 else ""

    def _text(self, text: str) -> str:
        begin = "\n" if self._returned and self._column else ""
        self._column = len(text) + (0 if self._returned else self._column)
        self._returned = False
        return begin + text

    def _control(self, letter: str) -> str:
        if letter == "\n":
            self._column, self._returned = 0, False
            return letter
        if letter == "\t":
            return self._text(letter)
        if letter == "\r":
            self._returned = True
        return ""


def escape_turning(text: str) -> str:
    return text if text.isascii() else _TURNING.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
