"""The output log: raw bytes in segments named by offset, and a time index beside them.

Appending never fails for the agent: on a full disk the bytes are dropped, the offset goes on, and the next segment
starts behind the gap, where every reader can see it.
"""

from __future__ import annotations

import errno
import os
import time

from hitchpost import wire
from hitchpost.keeper.times import Times
from hitchpost.store import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SEGMENTS_PER_LOG = 16
MOST_SEGMENTS = 64
SMALLEST_SEGMENT_BYTES = 4096
LOG_PER_TIMES = 32
RETRY_AFTER_GAP_S = 0.2


class Log:
    """Writer of one run's output, at most ``cap_bytes`` of it. One process writes; any number read the files."""

    def __init__(self, folder: str, cap_bytes: int, *, goes_on: bool = False) -> None:
        """``goes_on``: behind what another process has written before."""
        self.folder = folder
        self.cap_bytes = max(cap_bytes, 2 * SMALLEST_SEGMENT_BYTES)
        self.segment_bytes = max(cap_bytes // SEGMENTS_PER_LOG, SMALLEST_SEGMENT_BYTES)
        self.end = 0
        self.lost_bytes = 0
        self.uncounted = False
        self.segments: list[int] = []
        self._sizes: list[int] = []
        self._fd = -1
        self._retry_at = 0.0
        self._losing = False
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.path.islink(folder):
            raise OSError(errno.ELOOP, "expected a folder, but got a symbolic link", folder)
        self._times = Times(folder, cap_bytes // LOG_PER_TIMES)
        if goes_on:
            self._find_end()

    def _find_end(self) -> None:
        for name in sorted(os.listdir(self.folder)):
            start = wire.segment_offset(name)
            size = 0 if start is None else os.stat(os.path.join(self.folder, name), follow_symlinks=False).st_size
            if start is not None and size:
                self.segments.append(start)
                self._sizes.append(size)
        if self.segments:
            self.end = self.segments[-1] + self._sizes[-1]
        self.end = max(self.end, self._times.furthest())  # the last bytes may have been lost

    @property
    def first(self) -> int:
        return self.segments[0] if self.segments else self.end

    def append(self, data: bytes, tell: Callable[[int], None] = lambda end: None) -> None:
        """``tell`` is called with the log's end as soon as readers find the bytes; their time is noted after that."""
        whole = self._write(data)
        tell(self.end)
        if whole:
            self._times.reached(self.end)

    def _write(self, data: bytes) -> bool:
        """Whether all of it is in the log; what is not is lost, and counted."""
        view = memoryview(data)
        while view:
            if self._fd < 0 and not self._next_segment():
                self._lose(len(view))
                return False
            room = self.segment_bytes - self._sizes[-1]
            if room == 0:
                self._close_segment()
                continue
            try:
                written = os.write(self._fd, view[:room])
            except OSError:
                self._close_segment()
                self._retry_at = time.monotonic() + RETRY_AFTER_GAP_S
                self._lose(len(view))
                return False
            self._losing = False
            self.end += written
            self._sizes[-1] += written
            view = view[written:]
        return True

    def written_at(self) -> float | None:
        """When output last came, in seconds since 1970, as the newest segment has it; None when none is open."""
        return os.fstat(self._fd).st_mtime if self._fd >= 0 else None

    def mark(self, kind: bytes, value: int) -> None:
        """Note in the time index what happened at this point of the output."""
        self._times.mark(kind, value)

    def typed(self) -> None:
        """Somebody types now: note it with the output that follows."""
        self._times.typed()

    def miss(self) -> None:
        """Output went by that nobody could count: a gap of one byte, so that every reader sees it."""
        if self._fd >= 0:
            self._close_segment()
        self._lose(wire.UNCOUNTED)
        self._losing = False
        self.uncounted = True

    def close(self) -> None:
        """Force everything to the disk, as far as it can be."""
        self._times.mark(wire.AT_OFFSET, self.end)
        self._times.close()
        if self._fd >= 0:
            try:
                os.fdatasync(self._fd)
            except OSError:
                pass
            self._close_segment()

    def read(self, offset: int, size: int) -> tuple[int, bytes]:
        """At most ``size`` bytes from ``offset`` on, and where they begin: later when the log has none from there."""
        for start, length in zip(self.segments, self._sizes, strict=True):
            if offset >= start + length:
                continue
            begin = max(offset, start)
            try:
                fd = os.open(os.path.join(self.folder, wire.segment_name(start)), os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                return begin, os.pread(fd, size, begin - start)
            finally:
                os.close(fd)
        return self.end, b""

    def tail(self, size: int) -> bytes:
        """The last bytes of the newest segment, at most ``size``."""
        if self._fd < 0:
            return b""
        return os.pread(self._fd, size, max(0, self._sizes[-1] - size))

    def _next_segment(self) -> bool:
        if time.monotonic() < self._retry_at:
            return False
        path = os.path.join(self.folder, wire.segment_name(self.end))
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            self._retry_at = time.monotonic() + RETRY_AFTER_GAP_S
            return False
        self.segments.append(self.end)
        self._sizes.append(0)
        self._make_room()
        return True

    def _make_room(self) -> None:
        """Drop the oldest segments, so that the newest one has room to fill up below the cap."""
        first = self.first
        while len(self.segments) > 1 and (
            sum(self._sizes) + self.segment_bytes > self.cap_bytes or len(self.segments) > MOST_SEGMENTS
        ):
            files.discard(os.path.join(self.folder, wire.segment_name(self.segments.pop(0))))
            self._sizes.pop(0)
        if self.first != first:
            self._times.drop_before(self.first)

    def _close_segment(self) -> None:
        """A segment into which nothing went is taken away again: it would count as one and hold nothing."""
        os.close(self._fd)
        self._fd = -1
        if self._sizes[-1] == 0:
            files.discard(os.path.join(self.folder, wire.segment_name(self.segments.pop())))
            self._sizes.pop()

    def _lose(self, size: int) -> None:
        if not self._losing:
            self._losing = True
            self._times.mark(wire.AT_GAP, self.end)
        self.end += size
        self.lost_bytes += size
