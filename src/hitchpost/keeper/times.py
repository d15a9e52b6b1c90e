"""The time index of the output log: when it reached which offset, and what else happened at that point.

The index stays small beside its log: a flood is noted once per step, records of dropped segments go with them, and an
index that still grows too large loses every second record and is noted half as often from then on.
"""

from __future__ import annotations

import os
import time

from hitchpost import wire
from hitchpost.store import files

STEP_US = 10_000
SMALLEST_LIMIT_BYTES = 64 * 1024
BLOCK_BYTES = wire.TIME_RECORD_BYTES * 4096
FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Times:
    """Writer of one run's index. A disk that takes nothing costs records, never an error."""

    def __init__(self, folder: str, limit_bytes: int) -> None:
        self.path = os.path.join(folder, wire.TIMES)
        self.limit_bytes = max(limit_bytes, SMALLEST_LIMIT_BYTES)
        self._step_us = STEP_US
        self._noted_us = 0
        self._late: tuple[int, int] | None = None
        self._typed_us: int | None = None
        self._fd = -1
        self._open()
        self._size = os.fstat(self._fd).st_size if self._fd >= 0 else 0
        self._thin_above = self.limit_bytes

    def reached(self, offset: int) -> None:
        """The log has reached ``offset`` now. The last word of a step is noted late: the silence after it is true."""
        now_us = time.time_ns() // 1000
        if 0 <= now_us - self._noted_us < self._step_us:
            self._late, self._typed_us = (now_us, offset), None
            return
        self._catch_up()
        self._noted_us = now_us
        input = b"" if self._typed_us is None else wire.time_record(wire.AT_INPUT, self._typed_us, offset)
        self._typed_us = None
        self._write(input + wire.time_record(wire.AT_OFFSET, now_us, offset))

    def typed(self) -> None:
        """Somebody types now. It is noted with the output that follows: it ends a pause that was not the agent's."""
        self._typed_us = time.time_ns() // 1000

    def mark(self, kind: bytes, value: int) -> None:
        self._catch_up()
        self._write(wire.time_record(kind, time.time_ns() // 1000, value))

    def drop_before(self, first: int) -> None:
        """Forget the times of what is no longer in the log. The size that it had is kept, with the time of the cut."""
        self._rewrite(_from(first, self._records()))

    def furthest(self) -> int:
        """The greatest offset that is noted; 0 when none is, or none can be read."""
        try:
            offsets = (record[9:] for record in self._records() if record[:1] in (wire.AT_OFFSET, wire.AT_GAP))
            return max((int.from_bytes(offset, "big") for offset in offsets), default=0)
        except OSError:
            return 0

    def close(self) -> None:
        self._catch_up()
        if self._fd >= 0:
            try:
                os.fdatasync(self._fd)
            except OSError:
                pass
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        try:
            self._fd = os.open(self.path, FLAGS, 0o600)
        except OSError:
            self._fd = -1

    def _catch_up(self) -> None:
        if self._late is not None:
            at_us, offset = self._late
            self._late = None
            self._write(wire.time_record(wire.AT_OFFSET, at_us, offset))

    def _write(self, record: bytes) -> None:
        if self._fd < 0:
            self._open()
            if self._fd < 0:
                return
        try:
            if os.write(self._fd, record) != len(record):
                os.ftruncate(self._fd, self._size)
                return
        except OSError:
            return
        self._size += len(record)
        if self._size > self._thin_above:
            self._step_us *= 2
            self._rewrite(_every_second(self._records()))
            # what could not be made smaller is not tried again at every record
            self._thin_above = max(self.limit_bytes, self._size * 3 // 2)

    def _records(self) -> Iterator[bytes]:
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            while block := os.read(fd, BLOCK_BYTES):
                for start in range(0, len(block) - wire.TIME_RECORD_BYTES + 1, wire.TIME_RECORD_BYTES):
                    yield block[start : start + wire.TIME_RECORD_BYTES]
        finally:
            os.close(fd)

    def _rewrite(self, records: Iterator[bytes]) -> None:
        """Give the file these records in one step; readers that have the old one open read it to its end."""
        temp = os.path.join(os.path.dirname(self.path), f".{wire.TIMES}.tmp")
        fd, size = -1, 0
        try:
            fd = os.open(temp, FLAGS | os.O_TRUNC, 0o600)
            block = bytearray()
            for record in records:
                block += record
                if len(block) >= BLOCK_BYTES:
                    files.write_all(fd, bytes(block))
                    size += len(block)
                    block.clear()
            files.write_all(fd, bytes(block))
            size += len(block)
            os.rename(temp, self.path)
        except OSError:
            if fd >= 0:
                os.close(fd)
            files.discard(temp)
            return
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._size = fd, size


def _from(first: int, records: Iterator[bytes]) -> Iterator[bytes]:
    """The records that speak of offsets beyond ``first``, behind the size that held there."""
    size = cut_at = b""
    begun = False
    for record in records:
        kind, value = record[:1], int.from_bytes(record[9:], "big")
        if not begun:
            if kind == wire.AT_SIZE:
                size = record
                continue
            if kind in (wire.AT_OFFSET, wire.AT_GAP, wire.AT_INPUT) and value <= first:
                cut_at = record[1:9]
                continue
            begun = True
            if size:
                yield _at(size, cut_at)
        yield record
    if size and not begun:
        yield _at(size, cut_at)


def _at(record: bytes, at: bytes) -> bytes:
    return record[:1] + max(record[1:9], at) + record[9:]


def _every_second(records: Iterator[bytes]) -> Iterator[bytes]:
    """Of two offsets in a row, the later one. That somebody typed between them is of interest for minutes only."""
    held = b""
    for record in records:
        if record[:1] == wire.AT_INPUT:
            continue
        if record[:1] != wire.AT_OFFSET:
            if held:
                yield held
                held = b""
            yield record
        elif held:
            held = b""
            yield record
        else:
            held = record
    if held:
        yield held
