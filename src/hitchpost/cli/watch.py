"""``hitch ps --watch``: the table, kept up to date in place; without a terminal, one table for every change."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from typing import NoReturn, Protocol

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, unix_connect

from hitchpost.cli.common import terminal_size
from hitchpost.cli.ps import table_from_files, table_from_hub
from hitchpost.errors import HitchpostError
from hitchpost.store.home import open_home
from hitchpost.system.shortpath import ShortPath
from hitchpost.text import width

EVERY_S = 1.0
CLEAR, HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[2J", "\x1b[H", "\x1b[K", "\x1b[J"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
PLAIN = "\x1b[0m"
_DURATION = re.compile("[0-9]+[dhms]( [0-9]+[dhms])?")
_PAINT = re.compile("(\x1b\\[[0-9;]*m)")


class Ended(BaseException):
    """Raised when a signal asks this process to end: the terminal is put in order first."""

    def __init__(self, number: int) -> None:
        self.number = number


def _end(number: int, frame: object) -> None:
    raise Ended(number)


def watch(records: tuple[str, ...]) -> int:
    """Until Ctrl-C. Returns the exit code."""
    home = open_home(create=False)
    return follow(lambda: source(home, records))


def follow(opened: Callable[[], Source]) -> int:
    """Show what the source tells, until Ctrl-C; one that is gone is opened again. Returns the exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    # blocked, so that it can be waited for: a new size is drawn at once
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
    try:
        if sys.stdout.isatty():
            _redraw(opened)
        else:
            _print_changes(opened)
    except KeyboardInterrupt:
        return 0
    except Ended as ended:
        return 128 + ended.number
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def terminal_width() -> int:
    """The table is made to fit a terminal, and nothing else."""
    return terminal_size()[0] if sys.stdout.isatty() else 0


class Source(Protocol):
    def lines(self, *, colour: bool) -> list[str]:
        """The table as it is now. Raises ``HubGone``."""

    def wait(self, *, ticks: bool) -> None:
        """Until something changed; or, with ``ticks``, until durations have. Raises ``HubGone``."""


class Files:
    """Without a hub: look at the files now and then."""

    def __init__(self, home: str, records: tuple[str, ...]) -> None:
        self.home, self.records = home, records

    def lines(self, *, colour: bool) -> list[str]:
        table = table_from_files(self.home, self.records, colour=colour, width=terminal_width())
        return table.decode().split("\n")[:-1]

    def wait(self, *, ticks: bool) -> None:
        signal.sigtimedwait({signal.SIGWINCH}, EVERY_S)


class Resized(BaseException):
    """Raised when the terminal has another size."""


class HubEvents:
    """With a hub: it tells of every change. ``table`` asks it how things are then; None when it is gone."""

    def __init__(self, table: Callable[[bool], bytes | bytearray | None], connection: ClientConnection) -> None:
        self.table, self.connection = table, connection
        signal.signal(signal.SIGWINCH, self._resized)

    def lines(self, *, colour: bool) -> list[str]:
        table = self.table(colour)
        if table is None:
            raise HubGone
        return table.decode().split("\n")[:-1]

    def wait(self, *, ticks: bool) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGWINCH})
        try:
            self.connection.recv(timeout=EVERY_S if ticks else None)
        except (TimeoutError, Resized):
            return
        except ConnectionClosed:
            raise HubGone from None
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})

    @staticmethod
    def _resized(number: int, frame: object) -> None:
        raise Resized


class HubGone(HitchpostError):
    """Raised when the hub has ended: the files go on."""


def source(home: str, records: tuple[str, ...]) -> Source:
    if not os.path.exists(os.path.join(home, "hub.sock")):
        return Files(home, records)
    try:
        with ShortPath(home, "hub.sock") as path:
            connection = unix_connect(path, "ws://hub/ws", compression=None, max_size=None, open_timeout=2)
        return HubEvents(
            lambda colour: table_from_hub(home, records, colour=colour, width=terminal_width()), connection
        )
    except (OSError, WebSocketException):
        return Files(home, records)


def _redraw(opened: Callable[[], Source]) -> NoReturn:
    _write(HIDE_CURSOR + CLEAR)
    try:
        while True:
            try:
                told = opened()
                while True:
                    _write(screen(told.lines(colour=True), *terminal_size()))
                    told.wait(ticks=True)
            except HubGone:
                continue
    finally:
        _write(SHOW_CURSOR + PLAIN + "\n")


def _print_changes(opened: Callable[[], Source]) -> NoReturn:
    shown: list[str] | None = None
    while True:
        try:
            told = opened()
            while True:
                lines = told.lines(colour=False)
                found = lasting(lines)
                if found != shown:
                    _write("\n" * (shown is not None) + "\n".join(lines) + "\n")
                    shown = found
                told.wait(ticks=False)
        except HubGone:
            continue


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def lasting(lines: list[str]) -> list[str]:
    """What the table says beside durations, which change all the time."""
    status, in_status = (lines[0].index(word) for word in ("STATUS", "IN STATUS"))
    found = []
    for line in lines:
        before = cut(line, status)
        label = cut(line, in_status)[len(before) :]
        found.append(before + _DURATION.sub("", label).rstrip())
    return found


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
        elif part.isascii():
            parts.append(part[:left])
            left = 0
        else:
            for letter in part:
                if width(letter) > left:
                    break
                parts.append(letter)
                left -= width(letter)
            left = 0
    return "".join(parts)
