"""``hitch ps --watch``: the table, kept up to date in place; without a terminal, one table for every change."""

from __future__ import annotations

import os
import re
import signal
import sys
from typing import NoReturn

from hitchpost.cli.common import terminal_size
from hitchpost.cli.ps import as_lines
from hitchpost.cli.text import width
from hitchpost.ops.listing import Row, listing
from hitchpost.state.home import open_home

EVERY_S = 1.0
CLEAR, HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[2J", "\x1b[H", "\x1b[K", "\x1b[J"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
PLAIN = "\x1b[0m"
_DURATION = re.compile("[0-9]+[dhms]( [0-9]+[dhms])?")
_PAINT = re.compile("(\x1b\\[[0-9;]*m)")


class Ended(Exception):
    """Raised when a signal asks this process to end: the terminal is put in order first."""

    def __init__(self, number: int) -> None:
        self.number = number


def _end(number: int, frame: object) -> None:
    raise Ended(number)


def watch(everything: bool) -> int:
    """Until Ctrl-C. Returns the exit code."""
    home = open_home(create=False)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    # blocked, so that it can be waited for: a new size is drawn at once
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
    try:
        if sys.stdout.isatty():
            _redraw(home, everything)
        else:
            _print_changes(home, everything)
    except KeyboardInterrupt:
        return 0
    except Ended as ended:
        return 128 + ended.number
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _redraw(home: str, everything: bool) -> NoReturn:
    _write(HIDE_CURSOR + CLEAR)
    try:
        while True:
            lines = as_lines(listing(home, everything=everything), colour=True)
            _write(screen(lines, *terminal_size()))
            signal.sigtimedwait({signal.SIGWINCH}, EVERY_S)
    finally:
        _write(SHOW_CURSOR + PLAIN + "\n")


def _print_changes(home: str, everything: bool) -> NoReturn:
    shown: list[tuple[object, ...]] | None = None
    while True:
        rows = listing(home, everything=everything)
        found = [lasting(row) for row in rows]
        if found != shown:
            _write("\n" * (shown is not None) + "\n".join(as_lines(rows, colour=False)) + "\n")
            shown = found
        signal.sigtimedwait({signal.SIGWINCH}, EVERY_S)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def lasting(row: Row) -> tuple[object, ...]:
    """What a row of the table says beside durations, which change all the time."""
    shown = (row.shape[key] for key in ("id", "index", "name", "description", "agent", "workspace"))
    return (*shown, _DURATION.sub("", row.shape["label"]))


def screen(lines: list[str], cols: int, rows: int) -> str:
    """The lines over what was drawn before, cut to the terminal. Its last row is left free for the cursor."""
    room = max(1, rows - 1)
    if len(lines) > room:
        hidden = len(lines) - room + 1
        lines = [*lines[: room - 1], f"… {hidden} more"]
    return HOME + "".join(cut(line, cols) + CLEAR_LINE + "\r\n" for line in lines) + CLEAR_BELOW


def cut(line: str, cols: int) -> str:
    """The beginning of the line that fits into so many columns; colours take none."""
    parts, left = [], cols
    for part in _PAINT.split(line):
        if part.startswith("\x1b"):
            parts.append(part)
        elif width(part) <= left:
            parts.append(part)
            left -= width(part)
        else:
            for letter in part:
                if width(letter) > left:
                    break
                parts.append(letter)
                left -= width(letter)
            left = 0
    return "".join(parts)
