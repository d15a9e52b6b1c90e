"""The session's folder in its pod: which of the files that hubs get have changed since the last look."""

from __future__ import annotations

import os
import stat

from hitchpost import wire
from hitchpost.fleet import shipped
from hitchpost.store import files
from hitchpost.system.folder_news import ANYTHING, FolderNews

TYPE_CHECKING = False
if TYPE_CHECKING:
    Named = tuple[int, str]
    """A run and the name of a file of it; run 0 for files of the session."""


class Folder:
    """``run`` is the newest run. Its files, and the session's, are looked at; those of older runs do not change."""

    def __init__(self, path: str) -> None:
        self.path, self.run = path, 0
        self._seen: dict[Named, tuple[int, int, int]] = {}
        self._news = FolderNews()
        self.is_told = False

    def file(self, run: int, name: str) -> str:
        return f"{self.path}/runs/{run}/{name}" if run else f"{self.path}/{name}"

    def output(self, run: int) -> str:
        return self.file(run, wire.OUTPUT)

    def runs(self) -> list[int]:
        try:
            return sorted(int(name) for name in os.listdir(f"{self.path}/runs") if _is_run(name))
        except FileNotFoundError:
            return []

    def watch(self) -> None:
        """Let the kernel tell of changes from now on (SIGIO). Output has its own way: a keeper tells of it."""
        self._news.close()
        paths = [path for path in (self.path, self.file(self.run, "").rstrip("/")) if os.path.isdir(path)]
        told = [self._news.open(path, ANYTHING) for path in paths]
        self.is_told = bool(told) and all(told)

    def close(self) -> None:
        self._news.close()

    def look(self) -> list[Named]:
        """What has changed. A run's end is written before its state is: files of the session are looked at first, so
        whoever sends them last sends nothing too early."""
        if self.is_told:
            self.is_told = self._news.listen()
        names = [(0, name) for name in reversed(shipped.OF_SESSION)]
        if self.run:
            names += [(self.run, name) for name in shipped.OF_RUN]
        changed = []
        for named in names:
            now = _signature(self.file(*named))
            if now is not None and self._seen.get(named) != now:
                self._seen[named] = now
                changed.append(named)
        return changed

    def all_of(self, run: int) -> list[Named]:
        return [(run, name) for name in shipped.OF_RUN if _signature(self.file(run, name)) is not None]

    def everything(self) -> list[Named]:
        """Of the session and its newest run."""
        found = [(0, name) for name in reversed(shipped.OF_SESSION) if _signature(self.file(0, name)) is not None]
        return found + (self.all_of(self.run) if self.run else [])


def _is_run(name: str) -> bool:
    """An agent can make folders of any name there; no session has as many runs as some of them say."""
    return name.isascii() and name.isdecimal() and len(name) < 8 and not name.startswith("0")


def _signature(path: str) -> tuple[int, int, int] | None:
    """None where there is no such file: something else in its place is none."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def read(path: str, most: int = shipped.MOST_WHOLE_BYTES) -> bytes | None:
    """A file, whole; None when it is gone, is none, or is absurdly large."""
    try:
        return files.read_bytes(path, most)
    except OSError:
        return None


def written_at_us(path: str) -> int:
    """0 when it is gone."""
    try:
        return os.stat(path, follow_symlinks=False).st_mtime_ns // 1000
    except OSError:
        return 0


def read_from(path: str, offset: int, most: int) -> tuple[int, int, bytes] | None:
    """The file's number and size, and bytes of it; None when it is gone, or is none."""
    try:
        fd = files.open_file(path)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        return found.st_ino, found.st_size, os.pread(fd, most, offset)
    finally:
        os.close(fd)
