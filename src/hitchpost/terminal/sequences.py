"""Terminal output taken apart: text, control characters and whole escape sequences, wherever the reads cut them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto

LONGEST = 256 * 1024
"""Letters. What is not complete by then is no sequence: its ESC stands alone, and the rest is text."""


class Kind(Enum):
    TEXT = auto()
    CONTROL = auto()  # one letter of C0 or C1
    CSI = auto()
    OSC = auto()
    STRING = auto()  # DCS, SOS, PM, APC
    ESCAPE = auto()  # the short ones
    ABORTED = auto()  # an OSC or a string that something else interrupted


# C1 letters introduce nothing here: in UTF-8 most terminals agree, and mis-encoded text is full of them.
_TOKEN = re.compile(
    r"(?P<TEXT>[^\x00-\x1f\x7f-\x9f]+)"
    r"|(?P<CSI>\x1b\[[0-?]*[ -/]*[@-~])"
    r"|(?P<OSC>\x1b\][^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\))"
    r"|(?P<STRING>\x1b[PX^_][^\x18\x1a\x1b]*\x1b\\)"
    r"|(?P<ABORTED>\x1b[\]PX^_][^\x18\x1a\x1b]*(?:[\x18\x1a]|(?=\x1b[^\\])))"
    r"|(?P<ESCAPE>\x1b(?:[ -/]+[0-~]|[0-OQ-WYZ\\`-~]))"
    r"|(?P<CONTROL>[\x00-\x1f\x7f-\x9f])",
)
_UNFINISHED = re.compile(r"\x1b(?:[ -/]*|\[[0-?]*[ -/]*|\][^\x07\x18\x1a\x1b]*\x1b?|[PX^_][^\x18\x1a\x1b]*\x1b?)\Z")
_INTRODUCES_STRING = re.compile(r"\x1b[\]PX^_][^\x1b]*\Z")
_ENDS_STRING = re.compile(r"[\x07\x18\x1a\x1b]")


class Splitter:
    """Feed it decoded output; it gives the tokens in order and keeps back a sequence that is not complete."""

    def __init__(self) -> None:
        self._rest = ""

    @property
    def has_rest(self) -> bool:
        """Whether a sequence has begun that is not complete."""
        return bool(self._rest)

    def feed(self, text: str) -> Iterator[tuple[Kind, str]]:
        whole = self._rest + text
        if _INTRODUCES_STRING.match(self._rest) and len(whole) <= LONGEST and not _ENDS_STRING.search(text):
            self._rest = whole
            return
        self._rest = ""
        yield from self._split(whole, final=False)

    def finish(self) -> Iterator[tuple[Kind, str]]:
        """What was kept back, when nothing more comes or bytes are missing here."""
        rest, self._rest = self._rest, ""
        yield from self._split(rest, final=True)

    def _split(self, whole: str, *, final: bool) -> Iterator[tuple[Kind, str]]:
        for token in _TOKEN.finditer(whole):
            start = token.start()
            if (
                not final
                and whole[start] == "\x1b"
                and len(whole) - start <= LONGEST
                and _UNFINISHED.match(whole, start)
            ):
                self._rest = whole[start:]
                return
            yield Kind[str(token.lastgroup)], token.group()
