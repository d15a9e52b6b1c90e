"""``python -m tests.fuzz.left_behind FILE``: what a terminal that was shown these bytes is left with, as JSON.

A process of its own: the emulator may die of what it is shown. The file is a list of [hexadecimal bytes] and sizes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hitchpost.terminal.emulator.ghostty import GhosttyScreen

PREFERENCES = {b"\x1b[?%d%c" % (mode, letter) for mode in (8, 67, 1007, 1035, 1036, 1039, 2027) for letter in b"hl"}
"""Modes that are on in some people's terminals and off in others': nobody can tell what to go back to."""


def left(pieces: list[list[object]]) -> list[str]:
    """What differs from a terminal that was shown nothing."""
    screen = GhosttyScreen(80, 24, 100)
    for piece in pieces:
        if len(piece) == 1:
            screen.feed(bytes.fromhex(str(piece[0])))
        else:
            screen.resize(*(max(int(str(side)), 2) for side in piece))
    quiet = GhosttyScreen(screen.cols, screen.rows, 100)
    found = [
        f"{name}: {now!r}"
        for name, now, then in (
            ("modes", [mode for mode in screen._modes() if mode not in PREFERENCES], quiet._modes()),
            ("alternate screen", screen.alternate(), False),
            ("input modes", screen.input_modes(), b""),
            ("scrolling region", screen._extra("scrolling_region"), quiet._extra("scrolling_region")),
            ("style", screen._extra("style"), quiet._extra("style")),
        )
        if now != then
    ]
    screen.close()
    quiet.close()
    return found


if __name__ == "__main__":
    print(json.dumps(left(json.loads(Path(sys.argv[1]).read_text()))))
