"""Durable files: the ground that every change of state stands on.

The keeper imports this module, so it uses only C modules of the standard library and ``hitchpost``'s own light ones.

A file that another process reads is changed in one way: take the lock (``locks``), read, validate, write a temp file,
fsync it, rename it, fsync the folder, release the lock.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from hitchpost import lightjson
from hitchpost.errors import HitchpostError

SCHEMA = 1
STATE, LOCK, STORY = "state.json", "lock", "story.jsonl"
FULL = (errno.ENOSPC, errno.EDQUOT)
SPARE_BYTES = 4096
MOST_BYTES = 16 << 20
"""A file that is read whole is not larger, or not ours."""


class CannotRead(HitchpostError):
    """The base of what reading one of our files may fail with."""


class Unusable(CannotRead):
    """The base of what is wrong with a file itself. A disk that refuses now says nothing about the file."""


class Unreadable(Unusable):
    """Raised when a file does not hold what it should."""

    http_status = 409
    code = "unreadable"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path} is not readable as it should be: {why}")
        self.path, self.why = path, why


class NoFile(HitchpostError, OSError):
    """The base of the two ways in which there is no file to be read at a path: nothing is there, or something else."""


class NotAFile(NoFile):
    """Raised when something else is in the place of a file, such as a pipe or a device, or a file of absurd size."""

    http_status = 409
    code = "unreadable"

    def __init__(self, path: str, what: str) -> None:
        OSError.__init__(self, errno.EINVAL, f"expected a file, but got {what}", path)
        self.message = f"{path}: {self.strerror}"


class Missing(Unreadable, NoFile, FileNotFoundError):
    """Raised when a file is not there."""

    http_status = 503
    code = "system"

    def __init__(self, path: str) -> None:
        self.path, self.why = path, os.strerror(errno.ENOENT)
        OSError.__init__(self, errno.ENOENT, self.why, path)
        self.message = f"{path}: {self.why}"


class DiskRefused(CannotRead, OSError):
    """Raised when the system does not let us read a file that may be as it should: its rights, a failing disk."""

    http_status = 503
    code = "system"

    def __init__(self, path: str, error: OSError) -> None:
        OSError.__init__(self, error.errno, error.strerror, path)
        self.message = f"{path}: {error.strerror}"


class NewerSchema(Unusable):
    """Raised when a file was written by a newer version. Nothing is written then."""

    exit_code = 4
    http_status = 409
    code = "newer_schema"

    def __init__(self, path: str, schema: int) -> None:
        super().__init__(
            f"{path} was written by a newer hitchpost (schema {schema}; this one knows {SCHEMA})", "upgrade hitchpost"
        )
        self.path, self.schema = path, schema


class WrongRun(HitchpostError):
    """Raised when a change is meant for another run than the session's current one."""

    exit_code = 4
    http_status = 409
    code = "wrong_state"

    def __init__(self, expected: int, current: int) -> None:
        super().__init__(f"expected run {expected} to be the current one, but it is run {current}")
        self.expected, self.current = expected, current


# Time and identity ----------------------------------------------------------------------------------------------


def stamp(seconds: float | None = None) -> str:
    """RFC 3339 in UTC, with microseconds."""
    now = time.time() if seconds is None else seconds
    whole = int(now // 1)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{int((now - whole) * 1_000_000):06d}Z"


def folder_id(path: str) -> str:
    """Names a folder on this machine: the same one wherever it is moved, another one when it is copied."""
    place = os.stat(path)
    return f"{place.st_dev:x}-{place.st_ino:x}"


def home_id(session_folder: str) -> str:
    """The id of the home that a session's folder is in."""
    return folder_id(os.path.dirname(os.path.dirname(session_folder)))


# Files ----------------------------------------------------------------------------------------------------------


def sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def write_all_at(fd: int, at: int, data: bytes | memoryview) -> int:
    """Where it ends. At its place, whatever others write there meanwhile."""
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, at)
        at, view = at + written, view[written:]
    return at


def replace_file(path: str, data: bytes, *, spare: str | None = None, durable: bool = True) -> None:
    """Give ``path`` the content ``data`` in one step: readers see the old content or the new, never a mixture.

    ``spare`` names a file from ``reserve``: on a full disk its blocks are used instead of new ones, and those of the
    file that was there become the spare of the next time. Without ``durable`` the change may be lost in a power cut.
    """
    folder, _, name = path.rpartition("/")
    temp = f"{folder}/.{name}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        try:
            fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                write_all(fd, data)
                if durable:
                    os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            if spare is None or error.errno not in FULL:
                raise
            discard(temp)
            _overwrite(spare, data)
            _exchange(spare, path)
        else:
            os.rename(temp, path)
    except BaseException:
        discard(temp)
        raise
    if durable:
        sync_folder(folder)


def _overwrite(path: str, data: bytes) -> None:
    if len(data) > SPARE_BYTES:
        raise OSError(errno.ENOSPC, f"{len(data)} bytes do not fit into the {SPARE_BYTES} reserved ones", path)
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        write_all(fd, data)
        os.ftruncate(fd, len(data))
        os.fsync(fd)
    finally:
        os.close(fd)


def _exchange(spare: str, path: str) -> None:
    """Move ``spare`` to ``path``; what was there, if anything, is the spare afterwards."""
    kept = f"{spare}.tmp"
    discard(kept)
    try:
        os.link(path, kept, follow_symlinks=False)
    except OSError:
        kept = ""
    os.rename(spare, path)
    if kept:
        os.rename(kept, spare)


def reserve(path: str) -> None:
    """Set aside room that ``replace_file`` can use on a full disk."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.posix_fallocate(fd, 0, SPARE_BYTES)
    finally:
        os.close(fd)


def discard(path: str) -> None:
    """Remove a file that may not be there."""
    try:
        os.unlink(path)
    except OSError:
        return


def is_temp(name: str) -> bool:
    """Whether a file of this name is a half-written one, from ``replace_file``."""
    return name.startswith(".") and name.endswith(".tmp")


def writer_of(name: str) -> int:
    """The process that was writing the half-written file ``name``; 0 when its name does not tell."""
    pid = name.split(".")[-3:-2]
    return int(pid[0]) if pid and pid[0].isdecimal() else 0


def append_line(path: str, line: str, *, durable: bool = True) -> None:
    """Append one line. A line that a crash left without its end is closed first, so it spoils no other."""
    append_bytes(path, line.encode() + b"\n", durable=durable)


def append_bytes(path: str, lines: bytes, *, durable: bool = True) -> None:
    """Append whole lines, as ``append_line`` does."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        size = checked_file(fd, path).st_size
        torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        write_all(fd, b"\n" + lines if torn else lines)
        if durable:
            os.fdatasync(fd)
    finally:
        os.close(fd)


def open_file(path: str, *, follow: bool = False) -> int:
    """A descriptor to read a file from. Never waits for the other end of a pipe. Raises ``NoFile`` or ``OSError``."""
    link = 0 if follow else os.O_NOFOLLOW
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | link)
    except FileNotFoundError:
        raise Missing(path) from None
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise NotAFile(path, "a socket") from None
    try:
        checked_file(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def checked_file(fd: int, path: str) -> os.stat_result:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        kinds = {stat.S_IFDIR: "a link or a folder", stat.S_IFIFO: "a pipe"}
        raise NotAFile(path, kinds.get(stat.S_IFMT(found.st_mode), "a device"))
    return found


def read_bytes(path: str, most: int = MOST_BYTES, *, follow: bool = False) -> bytes:
    """All of a file. Raises ``NotAFile`` for anything else, and for one of more than ``most`` bytes."""
    fd = open_file(path, follow=follow)
    try:
        parts, left = [], most
        while part := os.read(fd, 65536):
            parts.append(part)
            left -= len(part)
            if left < 0:
                raise NotAFile(path, f"one of more than {most} bytes")
        return b"".join(parts)
    finally:
        os.close(fd)


def read_ends(path: str, head: int, tail: int) -> bytes:
    """A file's first and last lines: all of it unless it is larger than both together."""
    fd = open_file(path)
    try:
        size = os.fstat(fd).st_size
        if size <= head + tail:
            return os.pread(fd, size, 0)
        return os.pread(fd, head, 0) + b"\n" + os.pread(fd, tail, size - tail)
    finally:
        os.close(fd)


def read_object(path: str) -> dict[str, object]:
    """A file that holds one JSON object. Raises ``CannotRead``: ``Missing``, ``Unreadable``, ``NewerSchema``…"""
    try:
        value = lightjson.loads(read_bytes(path))
    except ValueError as error:
        raise Unreadable(path, str(error)) from None
    except NotAFile as error:
        raise Unreadable(path, str(error.strerror)) from None
    except Missing:
        raise
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise DiskRefused(path, error) from None
        raise Unreadable(path, "expected a file, but got a link or a folder") from None
    if not isinstance(value, dict):
        raise Unreadable(path, f"expected an object, but got {type(value).__name__}")
    schema = value.get("schema", 0)
    if type(schema) is not int or schema < 0:
        raise Unreadable(path, f"expected a schema number, but got {schema!r}")
    if schema > SCHEMA:
        raise NewerSchema(path, schema)
    return value


def write_object(path: str, value: dict[str, object], *, spare: str | None = None, durable: bool = True) -> None:
    replace_file(path, (lightjson.dumps(value) + "\n").encode(), spare=spare, durable=durable)
