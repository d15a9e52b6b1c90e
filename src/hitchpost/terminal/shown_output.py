"""What a run has shown, as text: its log read through ``Shown``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from hitchpost.terminal import output
from hitchpost.terminal.screen import pieces
from hitchpost.terminal.shown import Shown
from hitchpost.values import value

TAIL_BYTES = 4 << 20
"""The last lines are looked for in so much of a log first."""


@value
class Piece:
    """Text that is final, the offset that was read to for it, and how many bytes are missing before it."""

    text: str
    offset: int
    lost: int = 0


def shown_pieces(folder: str, end: int, start: int = 0) -> Iterator[Piece]:
    """What was shown between two offsets."""
    sizes = [size for size in output.sizes(folder) if size[0] <= start] or output.sizes(folder)[:1]
    shown = Shown(*(sizes[-1][1:] if sizes else ()))
    with output.Reader(folder, start) as reader:
        for piece in pieces(reader, end):
            if not isinstance(piece, output.Chunk):
                yield Piece(shown.resize(*piece), reader.offset)
                continue
            if piece.lost:
                yield Piece(shown.finish(), piece.offset)
            yield Piece(shown.feed(piece.data), piece.end, piece.lost)
        yield Piece(shown.finish(), reader.offset)


def last_lines(folder: str, end: int, count: int) -> tuple[list[str], int]:
    """The last lines that were shown, and the offset that was read to."""
    first = output.bounds(folder)[0]
    for start in dict.fromkeys((max(first, end - TAIL_BYTES), first)):
        lines: deque[str] = deque(maxlen=count + 1)
        rest, offset = "", start
        for piece in shown_pieces(folder, end, start):
            offset = piece.offset
            *whole, rest = (rest + piece.text).split("\n")
            lines.extend(f"{line}\n" for line in whole)
        if rest:
            lines.append(rest)
        if len(lines) > count:
            break
    return list(lines)[-count:] if count else [], offset
