"""What a terminal shows after a stream of bytes, and bytes that show the same on another terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Protocol

from hitchpost import output
from hitchpost.harmless import Harmless
from hitchpost.plain import Plain

HISTORY_LINES = 5000
TAIL_BYTES = 256 * 1024
MODE = re.compile(rb"\x1b\[(?:\?([0-9]+)[hl]|[><=][0-9;]*u)")
ALTERNATE = (b"47", b"1047", b"1049")
CANCEL = b"\x18\x1b[0m"


class Screen(Protocol):
    """A screen of ``cols`` by ``rows``. Columns and rows of the cursor count from 0."""

    cols: int
    rows: int
    can_paint: bool
    """Whether ``lines`` and ``cursor`` can be relied on."""

    def feed(self, data: bytes) -> None:
        """Take bytes of the stream, cut anywhere."""

    def resize(self, cols: int, rows: int) -> None: ...

    def snapshot(self, *, history: bool = True) -> bytes:
        """Bytes for a cleared terminal of this size: history, screen, modes and cursor, as if it had read the stream.

        They ask the terminal nothing and do not touch its clipboard. What follows in the stream may follow them.
        """

    def lines(self, left: int, top: int, cols: int, rows: int) -> list[bytes]:
        """A part of the screen, a line each, with colours."""

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


class Replay:
    """A run's screen at some point of its output; it can only go on.

    The whole log is taken, as far as it is still there: what was set long ago, the alternate screen above all, holds.
    """

    def __init__(self, output_folder: str, cols: int = 80, rows: int = 24) -> None:
        self.folder = output_folder
        sizes = output.sizes(output_folder)
        if sizes:
            _, cols, rows = sizes[0]
        self.screen = open_screen(cols, rows)
        self._reader = output.Reader(output_folder)

    @property
    def offset(self) -> int:
        return self._reader.offset

    def advance(self, end: int) -> Screen:
        """Show the screen after the first ``end`` bytes."""
        for _ in self.steps(end):
            pass
        return self.screen

    def steps(self, end: int) -> Iterator[None]:
        """``advance`` for who has other things to do: a step for each piece of the log."""
        sizes = [size for size in output.sizes(self.folder) if size[0] >= self.offset]
        while True:
            while sizes and sizes[0][0] <= self.offset:
                self.screen.resize(*sizes.pop(0)[1:])
            until = min(end, sizes[0][0]) if sizes else end
            if self.offset >= until:
                break
            chunk = self._reader.read(min(output.READ_BYTES, until - self.offset))
            if not chunk.data:
                break
            self.screen.feed(CANCEL + chunk.data if chunk.lost else chunk.data)
            yield
        while sizes and sizes[0][0] <= end:
            self.screen.resize(*sizes.pop(0)[1:])

    def close(self) -> None:
        self._reader.close()
        self.screen.close()


def restore(output_folder: str, end: int, cols: int = 80, rows: int = 24) -> Screen:
    """The screen of a run after the first ``end`` bytes of its output, as far as its log still has them."""
    replay = Replay(output_folder, cols, rows)
    screen = replay.advance(end)
    replay._reader.close()
    return screen


class PlainScreen:
    """Not an emulator: the last bytes of the stream, without what a terminal would answer, and the modes set before."""

    can_paint = False

    def __init__(self, cols: int, rows: int) -> None:
        self.cols, self.rows = cols, rows
        self._tail = bytearray()
        self._modes: dict[bytes, bytes] = {}

    def feed(self, data: bytes) -> None:
        self._tail += data
        if len(self._tail) > 2 * TAIL_BYTES:
            line_end = self._tail.find(b"\n", -TAIL_BYTES, -TAIL_BYTES // 2)
            cut = line_end + 1 if line_end >= 0 else len(self._tail) - TAIL_BYTES
            self._modes = self._modes_after(self._tail[:cut])
            del self._tail[:cut]

    def resize(self, cols: int, rows: int) -> None:
        self.cols, self.rows = cols, rows

    def snapshot(self, *, history: bool = True) -> bytes:
        shown = Harmless().feed(self._tail.decode("utf-8", "replace")).encode()
        return b"".join(self._modes.values()) + shown + self.input_modes()

    def lines(self, left: int, top: int, cols: int, rows: int) -> list[bytes]:
        return [line[left : left + cols].encode() for line in self.text().splitlines()[top : top + rows]]

    def text(self) -> str:
        plain = Plain()
        text = plain.feed(bytes(self._tail)) + plain.finish()
        return "\n".join(text.rstrip().split("\n")[-self.rows :])

    def cursor(self) -> tuple[int, int]:
        return 0, self.rows - 1

    def alternate(self) -> bool:
        last = [mode for key, mode in self._modes_after(self._tail).items() if key in ALTERNATE]
        return bool(last) and last[-1].endswith(b"h")

    def input_modes(self) -> bytes:
        return b"".join(mode for key, mode in self._modes_after(self._tail).items() if key not in ALTERNATE)

    def on_reply(self, tell: Callable[[bytes], None] | None) -> None:
        """A stream that nobody emulates is not answered."""

    def close(self) -> None:
        self._tail.clear()

    def _modes_after(self, data: bytes | bytearray) -> dict[bytes, bytes]:
        """The last setting of each mode, in the order in which they were made."""
        modes = dict(self._modes)
        for match in MODE.finditer(data):
            key = match.group(1) or b"keyboard"
            modes.pop(key, None)
            modes[key] = match.group()
        return modes
