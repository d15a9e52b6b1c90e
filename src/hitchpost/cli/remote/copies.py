"""A copy of a run's output, here: whatever reads an output log reads it, as if the run were on this machine."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from itertools import pairwise

from hitchpost import wire
from hitchpost.cli.remote.hub import Found, RemoteHub
from hitchpost.store import files
from hitchpost.system import process
from hitchpost.terminal import output

AT = "Hitchpost-Offset"
PREFIX = "hitchpost-copy-"
SEGMENT_BYTES = 4 << 20
MOST_AHEAD_BYTES = 8 << 20


class OutputCopy:
    """``folder`` goes when this is closed. ``first`` and ``end`` are those of the log there, when it was asked."""

    def __init__(self, hub: RemoteHub, found: Found, run: int | None = None) -> None:
        self.hub, self.path = hub, f"{found.path}/output"
        outline = hub.get(self.path, run=run)
        self.run: int = outline["run"]
        self.first: int = outline["first"]
        self.end: int = outline["end"]
        self.told_end: int = outline["told_end"]
        self._top = new_folder()
        self.folder = output_folder(self._top, found.id, self.run)

    def __enter__(self) -> OutputCopy:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._top, ignore_errors=True)

    def fetch(self, start: int = 0) -> None:
        """Copy what the log has from ``start`` on; what was copied before is replaced."""
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        self.end = max(self.end, append(self.hub, self.path, self.run, self.folder, start, self.end))
        times, _ = self.hub.octets(f"{self.path}/times", run=self.run)
        with open(os.path.join(self.folder, wire.TIMES), "wb") as file:
            file.write(times)


def new_folder() -> str:
    """For this process, and nobody else. Those of processes that were killed are deleted: outputs hold secrets."""
    top = tempfile.gettempdir()
    for name in os.listdir(top):
        pid, _, start = name.removeprefix(PREFIX).partition("-")[0].partition(".")
        if name.startswith(PREFIX) and pid.isdecimal() and str(process.start_time(int(pid))) != start:
            shutil.rmtree(os.path.join(top, name), ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}.{process.start_time(os.getpid())}-")


def output_folder(top: str, session: str, run: int) -> str:
    """A folder below ``top``, as a home would have it."""
    folder = os.path.join(top, session, "runs", str(run), wire.OUTPUT)
    os.makedirs(folder, 0o700)
    return folder


def append(hub: RemoteHub, path: str, run: int, folder: str, start: int, end: int) -> int:
    """Copy what a log has between two offsets. What is missing there is missing here. Returns the offset behind it."""
    offset, fd = start, -1
    try:
        while offset < end:
            data, headers = hub.octets(f"{path}/part", run=run, from_=offset)
            at = int(headers[AT])
            if not data:
                break
            if fd < 0 or at != offset:
                if fd >= 0:
                    os.close(fd)
                fd = open_segment(folder, at)
            files.write_all(fd, data)
            offset = at + len(data)
    finally:
        if fd >= 0:
            os.close(fd)
    return offset


def open_segment(folder: str, offset: int) -> int:
    """A descriptor to append to a new segment of a log."""
    path = os.path.join(folder, wire.segment_name(offset))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


class GrowingCopy:
    """The end of a log that is copied while it grows. ``end`` is how far it reaches; readers may be behind.

    ``read_to`` is how far its reader has come. What is more than ``MOST_AHEAD_BYTES`` beyond that has to wait. With
    ``forgets``, what was read long ago is deleted.
    """

    def __init__(self, folder: str, end: int = 0, *, forgets: bool) -> None:
        self.folder, self.end, self.read_to = folder, end, end
        self._forgets = forgets
        self._fd, self._begun = -1, 0

    @property
    def has_room(self) -> bool:
        return self.end - self.read_to < MOST_AHEAD_BYTES

    def put(self, data: bytes) -> None:
        if self._fd < 0 or self.end - self._begun > SEGMENT_BYTES:
            self.close()
            self._fd, self._begun = open_segment(self.folder, self.end), self.end
            self._forget()
        files.write_all(self._fd, data)
        self.end += len(data)

    def skip_to(self, offset: int) -> None:
        """What is missing up to there is somewhere else, or nowhere."""
        self.close()
        self.end = max(self.end, offset)

    def write_size(self, cols: int, rows: int) -> None:
        """The terminal's size where the copy begins."""
        record = wire.time_record(wire.AT_SIZE, time.time_ns() // 1000, cols << 32 | rows)
        with open(os.path.join(self.folder, wire.TIMES), "ab") as file:
            file.write(record)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _forget(self) -> None:
        for start, following in pairwise(output.segments(self.folder)):
            if self._forgets and following + MOST_AHEAD_BYTES < self.read_to:
                os.unlink(os.path.join(self.folder, wire.segment_name(start)))
