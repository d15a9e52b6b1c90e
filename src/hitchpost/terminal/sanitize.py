"""Terminal output that may be played on somebody's terminal: it draws, and does nothing else.

What makes a terminal answer (queries, status and title reports), what reaches beyond its screen (clipboard, title,
colours of the palette, printing, window size) and what changes the keyboard or the mouse is left out. The list is of
what may pass: a sequence that nobody thought of does not.
"""

from __future__ import annotations

import re

from hitchpost.terminal.sequences import Kind, Splitter

CONTROLS = "\a\b\t\n\v\f\r\x0e\x0f"
DRAWING = "@ABCDEFGHIJKLMPSTXZ`abdefmrsu"
MODES = ("4", "20")
PRIVATE_MODES = ("5", "6", "7", "12", "25", "45", "47", "1047", "1048", "1049", "2026")
ALTERNATE = ("47", "1047", "1049")
ESCAPES = ("\x1b7", "\x1b8", "\x1bD", "\x1bE", "\x1bM", "\x1b#3", "\x1b#4", "\x1b#5", "\x1b#6", "\x1b#8")
RESET = "\x1b[!p\x1b[2J\x1b[H"
LINKS = ("http://", "https://", "mailto:")

CALM = "\x1b[0m\x1b[?5l\x1b[?6l\x1b[?7h\x1b[4l\x1b[20l\x1b[r\x1b(B\x0f\x1b[0 q\x1b]8;;\x1b\\\x1b[?2026l\x1b[?25h"
LEAVE_ALTERNATE = "\x1b[?1049l"

_CSI = re.compile(r"\x1b\[([<-?]*)([0-9:;]*)([ -/]*)([@-~])")
_CHARSET = re.compile(r"\x1b[()*+][0-9A-Z]")
_LINK = re.compile(r"\x1b\](8;[^;]*;(.*?))(?:\x07|\x1b\\)", re.DOTALL)


class Harmless:
    """A filter over decoded output. ``alternate`` tells whether what was played has left the normal screen."""

    def __init__(self) -> None:
        self.alternate = False
        self._splitter = Splitter()

    def feed(self, text: str) -> str:
        return "".join(self._harmless(kind, token) for kind, token in self._splitter.feed(text))

    def restore(self) -> str:
        """What brings the viewer's terminal back to how terminals usually are."""
        return (LEAVE_ALTERNATE if self.alternate else "") + CALM

    def _harmless(self, kind: Kind, token: str) -> str:
        if kind is Kind.TEXT:
            return token
        if kind is Kind.CONTROL:
            return token if token in CONTROLS else ""
        if kind is Kind.CSI:
            return self._csi(token)
        if kind is Kind.ESCAPE:
            if token == "\x1bc":
                return RESET
            return token if token in ESCAPES or _CHARSET.fullmatch(token) else ""
        return token if kind is Kind.OSC and _is_link(token) else ""

    def _csi(self, token: str) -> str:
        found = _CSI.fullmatch(token)
        if found is None:
            return ""
        private, numbers, between, final = found.groups()
        if final in "hl" and not between and private in ("", "?"):
            return self._modes(private, numbers.split(";"), final)
        drawn = final in DRAWING and not between and (not private or (private == "?" and final in "JK"))
        return token if drawn or (private, between + final) in (("", " q"), ("", "!p")) else ""

    def _modes(self, private: str, numbers: list[str], final: str) -> str:
        passed = [number for number in numbers if number in (PRIVATE_MODES if private else MODES)]
        if private and any(number in ALTERNATE for number in passed):
            self.alternate = final == "h"
        return f"\x1b[{private}{';'.join(passed)}{final}" if passed else ""


def _is_link(token: str) -> bool:
    found = _LINK.fullmatch(token)
    if found is None or not found[1].isprintable():
        return False
    return not found[2] or found[2].lower().startswith(LINKS)
