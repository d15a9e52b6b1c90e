"""What a terminal shows after a stream of bytes, and bytes that show the same on another terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from hitchpost.terminal import output
from hitchpost.terminal.emulators import Emulators, NoEmulator, ScreenLost
from hitchpost.terminal.plaintext import Plain
from hitchpost.terminal.sanitize import Harmless

T = TypeVar("T")
MOST_LOSSES = 2
"""So many emulators may be lost on a run's output; then its screen is drawn without one."""
WITHOUT_EMULATOR = "[hitch: this output crashes the emulator; only its end is shown]"
TAIL_BYTES = 256 * 1024
MODE = re.compile(rb"\x1b\[(?:\?([0-9]+)[hl]|[><=][0-9;]*u)")
ALTERNATE = (b"47", b"1047", b"1049")
CANCEL = b"\x18\x1b[0m"


class Screen(Protocol):
    """A screen of ``cols`` by ``rows``. Columns and rows of the cursor count from 0."""

    cols: int
    rows: int

    @property
    def can_paint(self) -> bool:
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

    def text(self, *, unwrap: bool = False) -> str:
        """What is on the screen, without history, colours and blank ends.

        ``unwrap``: a line that the terminal has broken at its edge is one line, as it was written.
        """

    def cursor(self) -> tuple[int, int]: ...

    def alternate(self) -> bool:
        """Whether the alternate screen is shown, as full-screen programs do."""

    def input_modes(self) -> bytes:
        """What tells a terminal to encode keys and pastes as the program wants them."""

    def memory_bytes(self) -> int: ...

    def close(self) -> None: ...


class Losses:
    """How many emulators were lost on the output of each run, as long as the owner remembers."""

    def __init__(self, tell: Callable[[str, int, str], None] = lambda folder, count, why: None) -> None:
        self.by_run: Counter[str] = Counter()
        self._tell = tell

    def add(self, output_folder: str, why: str) -> None:
        self.by_run[output_folder] += 1
        self._tell(output_folder, self.by_run[output_folder], why)

    def too_many(self, output_folder: str) -> bool:
        return self.by_run[output_folder] >= MOST_LOSSES


class RunScreen:
    """A run's screen at some point of its output; it can only go on. It outlives the emulator that draws it.

    The whole log is taken, as far as it is still there: what was set long ago, the alternate screen above all, holds.
    When the emulator is lost, another one takes the log again; after ``MOST_LOSSES`` a ``PlainScreen`` does.
    """

    def __init__(
        self, output_folder: str, emulators: Emulators, losses: Losses, cols: int = 80, rows: int = 24
    ) -> None:
        self.folder, self._emulators, self._losses = output_folder, emulators, losses
        sizes = output.sizes(output_folder)
        self._first_size = sizes[0][1:] if sizes else (cols, rows)
        self.cols, self.rows = self._first_size
        self._reader = output.Reader(output_folder)
        self.offset = 0
        self._screen = self._opened()
        self._behind = False

    @property
    def can_paint(self) -> bool:
        return self._screen.can_paint

    def advance(self, end: int) -> None:
        """Show the screen after the first ``end`` bytes."""
        for _ in self.steps(end):
            pass

    def steps(self, end: int) -> Iterator[None]:
        """``advance`` for who has other things to do: a step for each piece of the log."""
        for piece in pieces(self._reader, end):
            self.feed(piece) if isinstance(piece, output.Chunk) else self.resize(*piece)
            yield

    def feed(self, chunk: output.Chunk) -> None:
        """Take the next bytes of the log."""
        self._do(lambda screen: _take(screen, chunk))
        self.offset = chunk.end

    def resize(self, cols: int, rows: int) -> None:
        self._do(lambda screen: screen.resize(cols, rows))
        self.cols, self.rows = cols, rows

    def snapshot(self, *, history: bool = True) -> bytes:
        return self._do(lambda screen: screen.snapshot(history=history))

    def lines(self, left: int, top: int, cols: int, rows: int) -> list[bytes]:
        return self._do(lambda screen: screen.lines(left, top, cols, rows))

    def text(self, *, unwrap: bool = False) -> str:
        return self._do(lambda screen: screen.text(unwrap=unwrap))

    def cursor(self) -> tuple[int, int]:
        return self._do(lambda screen: screen.cursor())

    def alternate(self) -> bool:
        return self._do(lambda screen: screen.alternate())

    def input_modes(self) -> bytes:
        return self._do(lambda screen: screen.input_modes())

    def memory_bytes(self) -> int:
        return self._screen.memory_bytes()

    def close(self) -> None:
        self._reader.close()
        self._screen.close()

    def _do(self, call: Callable[[Screen], T]) -> T:
        while True:
            try:
                if self._behind:
                    self._catch_up()
                return call(self._screen)
            except ScreenLost as lost:
                self._losses.add(self.folder, str(lost))
            self._screen = self._opened()
            self._behind = True

    def _opened(self) -> Screen:
        cols, rows = self._first_size
        if self._losses.too_many(self.folder):
            return PlainScreen(cols, rows, WITHOUT_EMULATOR)
        try:
            return self._emulators.open(cols, rows)
        except NoEmulator:
            return PlainScreen(cols, rows)

    def _catch_up(self) -> None:
        with output.Reader(self.folder) as reader:
            for piece in pieces(reader, self.offset):
                _take(self._screen, piece)
        self._screen.resize(self.cols, self.rows)
        self._behind = False


def pieces(reader: output.Reader, end: int) -> Iterator[output.Chunk | tuple[int, int]]:
    """What the terminal got from the reader's place to ``end``: bytes, and sizes as (columns, rows)."""
    sizes = [size for size in output.sizes(reader.folder) if size[0] >= reader.offset]
    while True:
        while sizes and sizes[0][0] <= reader.offset:
            yield sizes.pop(0)[1:]
        until = min(end, sizes[0][0]) if sizes else end
        if reader.offset >= until:
            break
        chunk = reader.read(min(output.READ_BYTES, until - reader.offset))
        if not chunk.data:
            break
        yield chunk
    while sizes and sizes[0][0] <= end:
        yield sizes.pop(0)[1:]


def _take(screen: Screen, piece: output.Chunk | tuple[int, int]) -> None:
    if not isinstance(piece, output.Chunk):
        screen.resize(*piece)
    else:
        screen.feed(CANCEL + piece.data if piece.lost else piece.data)


class PlainScreen:
    """Not an emulator: the last bytes of the stream, without what a terminal would answer, and the modes set before.

    ``note`` stands in the first line.
    """

    can_paint = False

    def __init__(self, cols: int, rows: int, note: str = "") -> None:
        self.cols, self.rows = cols, rows
        self._note = note
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
        note = b"\x1b7\x1b[H\x1b[0;7m%s\x1b[0m\x1b[K\x1b8" % self._shown_note().encode() if self._note else b""
        return b"".join(self._modes.values()) + shown + note + self.input_modes()

    def lines(self, left: int, top: int, cols: int, rows: int) -> list[bytes]:
        return [line[left : left + cols].encode() for line in self.text().splitlines()[top : top + rows]]

    def text(self, *, unwrap: bool = False) -> str:
        plain = Plain()
        text = plain.feed(bytes(self._tail)) + plain.finish()
        lines = text.rstrip().split("\n")
        if self._note:
            lines = [self._shown_note(), *lines[-self.rows + 1 :]] if self.rows > 1 else [self._shown_note()]
        return "\n".join(lines[-self.rows :])

    def cursor(self) -> tuple[int, int]:
        return 0, self.rows - 1

    def alternate(self) -> bool:
        last = [mode for key, mode in self._modes_after(self._tail).items() if key in ALTERNATE]
        return bool(last) and last[-1].endswith(b"h")

    def input_modes(self) -> bytes:
        return b"".join(mode for key, mode in self._modes_after(self._tail).items() if key not in ALTERNATE)

    def memory_bytes(self) -> int:
        return len(self._tail)

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

    def _shown_note(self) -> str:
        return self._note[: self.cols]
