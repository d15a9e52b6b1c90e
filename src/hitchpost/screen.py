"""What a terminal shows after a stream of bytes, and bytes that show the same on another terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from hitchpost import escapes, output

HISTORY_LINES = 5000
TAIL_BYTES = 256 * 1024
CANCEL = b"\x18\x1b[0m"


class Screen(Protocol):
    """A screen of ``cols`` by ``rows``. Columns and rows of the cursor count from 0."""

    cols: int
    rows: int

    def feed(self, data: bytes) -> None:
        """Take bytes of the stream, cut anywhere."""

    def resize(self, cols: int, rows: int) -> None: ...

    def snapshot(self, *, history: bool = True) -> bytes:
        """Bytes for a cleared terminal of this size: history, screen, modes and cursor, as if it had read the stream.

        They ask the terminal nothing and do not touch its clipboard. What follows in the stream may follow them.
        """

    def lines(self, left: int, top: int, cols: int, rows: int) -> list[bytes] | None:
        """A part of the screen, a line each, with colours; None when this screen cannot tell."""

    def text(self) -> str:
        """What is on the screen, without history, colours and blank ends."""

    def cursor(self) -> tuple[int, int]: ...

    def alternate(self) -> bool:
        """Whether the alternate screen is shown, as full-screen programs do."""

    def input_modes(self) -> bytes:
        """What tells a terminal to encode keys and pastes as the program wants them."""

    def on_reply(self, tell: Callable[[bytes], None] | None) -> None:
        """Call ``tell`` with every answer that a query in the stream wants."""

    def close(self) -> None: ...


def open_screen(cols: int, rows: int) -> Screen:
    """An emulator, or a ``PlainScreen`` where it is not available."""
    try:
        from hitchpost.ghostty import GhosttyScreen
    except (ImportError, OSError):
        return PlainScreen(cols, rows)
    return GhosttyScreen(cols, rows, HISTORY_LINES)


def restore(output_folder: str, end: int, cols: int = 80, rows: int = 24) -> Screen:
    """The screen of a run after the first ``end`` bytes of its output, as far as its log still has them.

    The whole log is taken: what was set long ago, the alternate screen above all, still holds.
    """
    sizes = output.sizes(output_folder)
    if sizes:
        _, cols, rows = sizes.pop(0)
    screen = open_screen(cols, rows)
    with output.Reader(output_folder) as reader:
        while True:
            while sizes and sizes[0][0] <= reader.offset:
                screen.resize(*sizes.pop(0)[1:])
            until = min(end, sizes[0][0]) if sizes else end
            chunk = reader.read(min(output.READ_BYTES, until - reader.offset)) if reader.offset < until else None
            if chunk is None or not chunk.data:
                break
            screen.feed(CANCEL + chunk.data if chunk.lost else chunk.data)
    for _, cols, rows in sizes:
        screen.resize(cols, rows)
    return screen


class PlainScreen:
    """Not an emulator: the last bytes of the stream, without what a terminal would answer, and the modes set before."""

    def __init__(self, cols: int, rows: int) -> None:
        self.cols, self.rows = cols, rows
        self._tail = bytearray()
        self._modes: dict[bytes, bytes] = {}

    def feed(self, data: bytes) -> None:
        self._tail += data
        surplus = len(self._tail) - 2 * TAIL_BYTES
        if surplus > 0:
            cut = escapes.safe_cut(self._tail, surplus + TAIL_BYTES)
            self._remember(bytes(self._tail[:cut]))
            del self._tail[:cut]

    def resize(self, cols: int, rows: int) -> None:
        self.cols, self.rows = cols, rows

    def snapshot(self, *, history: bool = True) -> bytes:
        tail = bytes(self._tail) if history else bytes(self._tail[escapes.safe_cut(self._tail, -self.cols * self.rows) :])
        return b"".join(self._modes.values()) + escapes.harmless(tail)

    def lines(self, left: int, top: int, cols: int, rows: int) -> list[bytes] | None:
        return None

    def text(self) -> str:
        plain = escapes.SEQUENCE.sub(b"", bytes(self._tail)).decode("utf-8", "replace")
        lines = [line.rpartition("\r")[2] for line in re.split(r"\r*\n", plain.rstrip())]
        return "\n".join(lines[-self.rows :])

    def cursor(self) -> tuple[int, int]:
        return 0, self.rows - 1

    def alternate(self) -> bool:
        found = b""
        for source in (*self._modes.values(), bytes(self._tail)):
            for match in escapes.ALTERNATE.finditer(source):
                found = match.group()
        return found.endswith(b"h")

    def input_modes(self) -> bytes:
        return b""

    def on_reply(self, tell: Callable[[bytes], None] | None) -> None:
        """A stream that nobody emulates is not answered."""

    def close(self) -> None:
        self._tail.clear()

    def _remember(self, gone: bytes) -> None:
        for match in escapes.MODE.finditer(gone):
            key = match.group("key") if match.group("key") else match.group()[:3]
            self._modes.pop(key, None)
            self._modes[key] = match.group()
