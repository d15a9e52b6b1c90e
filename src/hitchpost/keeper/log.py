"""The output log: raw bytes in segments named by offset, and a time index beside them.

Appending never fails for the agent: on a full disk the bytes are dropped, the offset goes on, and the next segment
starts behind the gap, where every reader can see it.
"""

from __future__ import annotations

import errno
import os
import time

from hitchpost import wire
from hitchpost.state import files

SEGMENTS_PER_LOG = 16
SMALLEST_SEGMENT_BYTES = 4096
TIME_STEP_US = 10_000
RETRY_AFTER_GAP_S = 0.2
LOST = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EROFS)


class Log:
    """Writer of one run's output. One process writes; any number read the files."""

    def __init__(self, folder: str, cap_bytes: int) -> None:
        self.folder = folder
        self.segment_bytes = max(cap_bytes // SEGMENTS_PER_LOG, SMALLEST_SEGMENT_BYTES)
        self.kept = max(cap_bytes // self.segment_bytes, 2)
        self.end = 0
        self.lost_bytes = 0
        self.segments: list[int] = []
        self._fd = -1
        self._room = 0
        self._retry_at = 0.0
        self._last_time_us = 0
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._times = self._open(wire.TIMES)

    @property
    def first(self) -> int:
        return self.segments[0] if self.segments else self.end

    def append(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            if self._fd < 0 and not self._next_segment():
                self._lose(len(view))
                return
            if self._room == 0:
                self._close_segment()
                continue
            try:
                written = os.write(self._fd, view[: self._room])
            except OSError as error:
                if error.errno not in LOST:
                    raise
                self._close_segment()
                self._retry_at = time.monotonic() + RETRY_AFTER_GAP_S
                self._lose(len(view))
                return
            self.end += written
            self._room -= written
            view = view[written:]
        self.note_time()

    def note_time(self) -> None:
        """Index the time of the newest output, at most once per step: a flood must not grow the index."""
        now_us = time.time_ns() // 1000
        if now_us - self._last_time_us >= TIME_STEP_US:
            self._last_time_us = now_us
            self.mark(wire.AT_OFFSET, self.end, now_us)

    def mark(self, kind: bytes, value: int, at_us: int | None = None) -> None:
        record = wire.time_record(kind, time.time_ns() // 1000 if at_us is None else at_us, value)
        if self._times < 0:
            return
        try:
            if os.write(self._times, record) != len(record):
                os.ftruncate(self._times, os.fstat(self._times).st_size // len(record) * len(record))
        except OSError as error:
            if error.errno not in LOST:
                raise

    def close(self) -> None:
        """Force everything to the disk, as far as it can be."""
        self.mark(wire.AT_OFFSET, self.end)
        for fd in (self._fd, self._times):
            if fd >= 0:
                try:
                    os.fdatasync(fd)
                except OSError:
                    self.lost_bytes += 0
                os.close(fd)
        self._fd = self._times = -1

    def tail(self, size: int) -> bytes:
        """The last bytes of the newest segment, at most ``size``."""
        if self._fd < 0 or not self.segments:
            return b""
        length = self.end - self.segments[-1]
        return os.pread(self._fd, size, max(0, length - size))

    def _open(self, name: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(os.path.join(self.folder, name), flags, 0o600)
        except OSError as error:
            if error.errno not in LOST:
                raise
            return -1

    def _next_segment(self) -> bool:
        if time.monotonic() < self._retry_at:
            return False
        self._fd = self._open(wire.segment_name(self.end))
        if self._fd < 0:
            self._retry_at = time.monotonic() + RETRY_AFTER_GAP_S
            return False
        self._room = self.segment_bytes
        if not self.segments or self.segments[-1] != self.end:
            self.segments.append(self.end)
        while len(self.segments) > self.kept:
            files.discard(os.path.join(self.folder, wire.segment_name(self.segments.pop(0))))
        return True

    def _close_segment(self) -> None:
        os.close(self._fd)
        self._fd = -1

    def _lose(self, size: int) -> None:
        self.mark(wire.AT_GAP, self.end)
        self.end += size
        self.lost_bytes += size
