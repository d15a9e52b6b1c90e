"""Reading the output log: bytes at an offset, gaps, and the time index. The keeper writes; this module never does."""

from __future__ import annotations

import os

from hitchpost import wire
from hitchpost.store import files
from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK_RECORDS = 8
READ_BYTES = 1 << 18
MOST_TIMES_BYTES = 64 << 20


@value
class Chunk:
    """``data`` starts at ``offset``; ``lost`` bytes before it are not in the log. Empty data: nothing more yet."""

    offset: int
    data: bytes
    lost: int = 0

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


@value
class Moment:
    """One record of the time index: ``kind`` is one of wire.AT_…; seconds since 1970."""

    kind: bytes
    at: float
    value: int


class Reader:
    """A reader at an offset of one run's log. Slow readers cost nothing; what the cap dropped is told as lost."""

    def __init__(self, output_folder: str, offset: int = 0) -> None:
        self.folder, self.offset = output_folder, offset
        self._fd = -1
        self._start = 0

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @property
    def segment(self) -> int:
        """The offset of the first byte of the segment that was read last."""
        return self._start

    def read(self, most: int = READ_BYTES) -> Chunk:
        """The next bytes, at most ``most``. Moves the offset on, over gaps too."""
        if self._fd >= 0:
            data = os.pread(self._fd, most, self.offset - self._start)
            if data:
                return self._took(data, 0)
        return self._find(most)

    def read_at_once(self, most: int = READ_BYTES) -> Chunk | None:
        """``read`` for who must not wait for a disk, in the segment that is open. Empty at its end; None when there is
        no such segment yet, or its bytes are not in memory."""
        if self._fd < 0:
            return None
        buffer = bytearray(most)
        try:
            size = os.preadv(self._fd, [buffer], self.offset - self._start, os.RWF_NOWAIT)
        except OSError:
            return None
        return self._took(bytes(memoryview(buffer)[:size]), 0)

    def _took(self, data: bytes, lost: int) -> Chunk:
        chunk = Chunk(self.offset, data, lost)
        self.offset += len(data)
        return chunk

    def _find(self, most: int) -> Chunk:
        """Look for the segment that holds the offset, or the first one behind a gap."""
        for start in segments(self.folder):
            try:
                fd = files.open_file(os.path.join(self.folder, wire.segment_name(start)))
            except files.NoFile:
                continue
            lost = max(0, start - self.offset)
            data = os.pread(fd, most, max(0, self.offset - start))
            if not data:
                os.close(fd)
                continue
            self.close()
            self._fd, self._start = fd, start
            self.offset += lost
            return self._took(data, lost)
        return Chunk(self.offset, b"")


def segments(output_folder: str) -> list[int]:
    """The offsets at which the segments start, in order."""
    try:
        names = os.listdir(output_folder)
    except FileNotFoundError:
        return []
    return sorted(start for name in names if (start := wire.segment_offset(name)) is not None)


def bounds(output_folder: str) -> tuple[int, int]:
    """The first offset that is still there, and the end of the log."""
    starts = segments(output_folder)
    for start in reversed(starts):
        try:
            size = os.stat(os.path.join(output_folder, wire.segment_name(start))).st_size
        except FileNotFoundError:
            continue
        return starts[0], start + size
    return 0, 0


def told_end(output_folder: str) -> int:
    """How far the log reached, as the end of its time index has it: beyond its last byte when that was lost. Else 0."""
    try:
        fd = files.open_file(os.path.join(output_folder, wire.TIMES))
    except files.NoFile:
        return 0
    try:
        last = max(0, os.fstat(fd).st_size // wire.TIME_RECORD_BYTES - 1)
        record = os.pread(fd, wire.TIME_RECORD_BYTES, last * wire.TIME_RECORD_BYTES)
    finally:
        os.close(fd)
    return int.from_bytes(record[9:], "big") if record[:1] == wire.AT_OFFSET else 0


def tail_offset(output_folder: str, lines: int) -> int:
    """The offset from which the last ``lines`` lines begin. A line without its end, the last one, counts."""
    first, end = bounds(output_folder)
    begin, size = end, READ_BYTES // 4
    while begin > first:
        begin = max(first, end - size)
        found = _line_begin(output_folder, begin, end, lines)
        if found is not None:
            return found
        size *= 4
    return begin


def _line_begin(output_folder: str, begin: int, end: int, lines: int) -> int | None:
    """Where the last ``lines`` lines between two offsets begin; None when there are not as many."""
    import re
    from collections import deque

    ends: deque[int] = deque(maxlen=lines + 1)
    with Reader(output_folder, begin) as reader:
        while reader.offset < end and (chunk := reader.read(end - reader.offset)).data:
            for found in re.finditer(b"\n", chunk.data):
                ends.append(chunk.offset + found.end())
        if reader.offset not in ends:
            ends.append(reader.offset)
    return ends[0] if len(ends) > lines else None


def counted(lost: int) -> int | None:
    """How many bytes a gap stands for; None when nobody knows."""
    return None if lost == wire.UNCOUNTED else lost


def gap_text(lost: int) -> str:
    """What is said where output is missing."""
    if counted(lost) is None:
        return "some output is missing here (amount unknown)"
    return f"{lost} bytes are no longer in the log"


def last_written(output_folder: str) -> float | None:
    """When output last came, in seconds since 1970; None when there was none."""
    try:
        names = os.listdir(output_folder)
    except FileNotFoundError:
        return None
    for name in sorted(names, reverse=True):  # segments are named in the order of their offsets
        try:
            found = os.stat(f"{output_folder}/{name}") if wire.segment_offset(name) is not None else None
        except FileNotFoundError:
            continue
        if found is not None and found.st_size:
            return found.st_mtime
    return None


def times_back(output_folder: str, short_s: float) -> Iterator[tuple[float, bool]]:
    """When output came, as the time index has it, the last first, and whether somebody had typed since the output
    before. Some are left out where so little time is between them. A size and an end are noted with the offset that
    the log had reached before: no output came with them."""
    index, step = _times(output_folder), wire.TIME_RECORD_BYTES
    kinds = index[::step][: len(index) // step]

    def at_us(number: int) -> int:
        return int.from_bytes(index[number * step + 1 : number * step + 9], "big")

    def reached(number: int) -> int:
        return int.from_bytes(index[number * step + 9 : number * step + step], "big") if number >= 0 else 0

    def came(number: int) -> bool:
        is_offset = kinds[number : number + 1] == wire.AT_OFFSET
        return is_offset and reached(number) > reached(kinds.rfind(wire.AT_OFFSET, 0, number))

    number = len(kinds) - 1
    while number >= 0:
        if not came(number):
            number -= 1
            continue
        yield at_us(number) / 1_000_000, kinds.endswith(wire.AT_INPUT, 0, number)
        first = number - BLOCK_RECORDS
        is_short = first >= 0 and at_us(number) - at_us(first) < short_s * 1_000_000
        number = first if is_short and came(first) else number - 1


def moments(output_folder: str) -> Iterator[Moment]:
    """The time index, oldest first. A record that a crash cut is left out."""
    index, step = _times(output_folder), wire.TIME_RECORD_BYTES
    for start in range(0, len(index) - step + 1, step):
        record = index[start : start + step]
        at_us, value = int.from_bytes(record[1:9], "big"), int.from_bytes(record[9:], "big")
        yield Moment(record[:1], at_us / 1_000_000, value)


def _times(output_folder: str) -> bytes:
    try:
        return files.read_bytes(os.path.join(output_folder, wire.TIMES), MOST_TIMES_BYTES)
    except files.NoFile:
        return b""


def sizes(output_folder: str) -> list[tuple[int, int, int]]:
    """The terminal's sizes as (offset, columns, rows): from that offset on it had that size."""
    index = _times(output_folder)
    step = wire.TIME_RECORD_BYTES
    kinds = index[::step][: len(index) // step]
    found = []
    at = kinds.find(wire.AT_SIZE)
    while at >= 0:
        before = kinds.rfind(wire.AT_OFFSET, 0, at)
        offset = int.from_bytes(index[before * step + 9 : before * step + step], "big") if before >= 0 else 0
        value = int.from_bytes(index[at * step + 9 : at * step + step], "big")
        found.append((offset, value >> 32, value & 0xFFFFFFFF))
        at = kinds.find(wire.AT_SIZE, at + 1)
    return found
