"""Which files of a session, and of a home, are the same at every hub; and whether a copy has changed."""

from __future__ import annotations

import os
import re
import time
import zlib
from dataclasses import dataclass, field
from hashlib import blake2b

from hitchpost import lightjson, wire
from hitchpost.errors import MALFORMED, HitchpostError
from hitchpost.fleet.stored import GROWING, WHOLE
from hitchpost.notify.journal import FOLDER as NOTIFY
from hitchpost.store import files, records
from hitchpost.store.images import IMAGES
from hitchpost.store.statefile import ACTIVITY
from hitchpost.store.usage import FOLDER as USAGE

HOME = "home"
"""The name of what hubs share beside sessions. No session's id is as short."""
RUNS = "runs"
PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
NUMBER = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
OF_MACHINE = (wire.BOX, wire.FROZEN)
"""They speak of something on the machine of one hub."""
OF_HOME = ("retention.json", "tokens.json")
TICK_NS = 50_000_000
"""What changed so shortly before a look could change again without a trace: file systems count time in ticks."""
MOST_BYTES = 64 << 20
LAST = (files.STORY, records.RECORD, files.STATE)
"""In this order, and behind all others: a state is not seen before what it speaks of."""


class BadName(HitchpostError):
    """Raised when a name could lead out of the folder of its session, or is none of those that are copied."""

    http_status = 422
    code = "bad_input"

    def __init__(self, name: str) -> None:
        super().__init__(f"expected the name of a file that hubs copy, but got {name!r}")


def is_copied(name: str, session: str = "") -> bool:
    """Whether a file, by its path in the session's folder, is the same everywhere.

    Locks, sockets, room that is set aside and half-written files are not; the output goes its own way, in segments.
    """
    parts = name.split("/")
    if not all(PLAIN.fullmatch(part) for part in parts):
        return False
    last = parts[-1]
    is_json = last.endswith((".json", ".jsonl"))
    if session == HOME:
        return name in OF_HOME if len(parts) == 1 else is_json and len(parts) == 2 and parts[0] in (NOTIFY, USAGE)
    if len(parts) == 1:
        return is_json and last not in OF_MACHINE
    if len(parts) == 2:
        return parts[0] == IMAGES
    of_run = len(parts) == 3 and parts[0] == RUNS and NUMBER.fullmatch(parts[1]) is not None
    return of_run and (is_json or last == wire.EXIT_STATUS)


def check(name: str, session: str = "") -> str:
    """Raises ``BadName``. Names come from a database that others may write to."""
    if not is_copied(name, session):
        raise BadName(name)
    return name


def kind_of(name: str) -> str:
    return GROWING if name.endswith(".jsonl") else WHOLE


def is_of_run(name: str) -> bool:
    """Whether it is the pod's while a run is live."""
    return name == files.STATE or name.startswith(f"{RUNS}/")


def order(name: str) -> int:
    return LAST.index(name) if name in LAST else -1


def digest(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)


def crc(data: bytes, before: int = 0) -> int:
    return zlib.crc32(data, before)


def digest_of(name: str, data: bytes) -> int:
    return crc(data) if kind_of(name) == GROWING else digest(data)


Stamp = tuple[int, ...]
"""What tells a file from its next content. One that grows keeps its inode; others are replaced."""


def stamp_of(name: str, found: os.stat_result) -> Stamp:
    if kind_of(name) == GROWING:
        return found.st_ino, found.st_size
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def is_old(stamp: Stamp) -> bool:
    """Whether the next change is sure to give another stamp."""
    return max(stamp[2:], default=0) + TICK_NS < time.time_ns()


@dataclass(slots=True)
class Mark:
    """A file as PostgreSQL has it; and the stamp that the copy had when it held the same, None when it may not.

    ``part`` is where the last part of a growing file begins.
    """

    version: int
    size: int
    digest: int
    stamp: Stamp | None = None
    part: int = 0


@dataclass(slots=True)
class Copy:
    """What is known of a session, or of the home, whose folder is ``folder``. Who uses it holds the session's lock."""

    name: str
    folder: str
    revision: int = 0
    version: int = 0
    marks: dict[str, Mark] = field(default_factory=dict)
    steady_state: int = 0
    """The digest of the state as PostgreSQL has it, without the times of the last output."""
    committed_s: float = 0.0
    _runs: dict[str, tuple[int, dict[str, Stamp]]] = field(default_factory=dict)

    def path(self, name: str) -> str:
        return os.path.join(self.folder, check(name, self.name))

    def stamps(self) -> dict[str, Stamp]:
        """Every file that is copied, as it is now. Raises ``FileNotFoundError`` when the folder is gone."""
        if self.name == HOME:
            found = {name: stamp for name in OF_HOME if (stamp := _stamp(name, self.path(name))) is not None}
            for folder in (NOTIFY, USAGE):
                found |= self._in(folder)
            return found
        found = self._in("")
        found |= self._in(IMAGES)
        for run in _names(os.path.join(self.folder, RUNS)):
            if NUMBER.fullmatch(run):
                found |= self._of_run(f"{RUNS}/{run}")
        return found

    def _in(self, folder: str) -> dict[str, Stamp]:
        found = {}
        start = f"{folder}/" if folder else ""
        try:
            with os.scandir(os.path.join(self.folder, folder) if folder else self.folder) as entries:
                for entry in entries:
                    name = start + entry.name
                    if is_copied(name, self.name) and entry.is_file(follow_symlinks=False):
                        try:
                            found[name] = stamp_of(name, entry.stat(follow_symlinks=False))
                        except FileNotFoundError:
                            continue
        except (FileNotFoundError, NotADirectoryError):
            if not folder:
                raise
        return found

    def _of_run(self, folder: str) -> dict[str, Stamp]:
        """Files of a run are replaced, which the time of its folder tells. Most runs are over."""
        changed_ns = os.stat(os.path.join(self.folder, folder), follow_symlinks=False).st_mtime_ns
        known = self._runs.get(folder)
        if known is not None and known[0] == changed_ns:
            return known[1]
        found = self._in(folder)
        if changed_ns + TICK_NS < time.time_ns():
            self._runs[folder] = changed_ns, found
        return found

    def read(self, name: str) -> bytes | None:
        """None when it is not there, or is something else than a file."""
        try:
            return files.read_bytes(self.path(name), MOST_BYTES)
        except files.NoFile:
            return None

    def read_from(self, name: str, start: int) -> bytes:
        """The end of a growing file."""
        fd = files.open_file(self.path(name))
        try:
            return os.pread(fd, max(0, os.fstat(fd).st_size - start), start)
        finally:
            os.close(fd)

    def stamp(self, name: str) -> Stamp | None:
        """None when the file is not there, or when its next change could go unseen."""
        found = _stamp(name, self.path(name))
        return found if found is not None and is_old(found) else None


def _stamp(name: str, path: str) -> Stamp | None:
    try:
        return stamp_of(name, os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def steady(state: bytes) -> int:
    """The digest of a state without what tells only that output came."""
    try:
        value = lightjson.loads(state)
        assert isinstance(value, dict)
    except (*MALFORMED, AssertionError):
        return digest(state)
    return digest(lightjson.dumps({key: item for key, item in value.items() if key not in ACTIVITY}).encode())
