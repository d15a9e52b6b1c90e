"""Locks and durable files: the ground that every change of state stands on.

The keeper imports this module, so it uses only C modules of the standard library and ``hitchpost``'s own light ones.

A file that another process reads is changed in one way: take the lock, read, validate, write a temp file, fsync it,
rename it, fsync the folder, release the lock. The lock is a file of its own: a lock on the renamed file would let a
second holder in.
"""

from __future__ import annotations

import _thread
import errno
import fcntl
import os
import stat
import time

from hitchpost import lightjson
from hitchpost.errors import HitchpostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

SCHEMA = 1
STATE, LOCK, STORY = "state.json", "lock", "story.jsonl"
LOCK_TIMEOUT_S = 10.0
MOST_WAITING = 32
FULL = (errno.ENOSPC, errno.EDQUOT)
SPARE_BYTES = 4096
MOST_BYTES = 16 << 20
"""A file that is read whole is not larger, or not ours."""


class Unreadable(HitchpostError):
    """Raised when a file is there and does not hold what it should."""

    http_status = 409
    code = "unreadable"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path} is not readable as it should be: {why}")
        self.path, self.why = path, why


class NewerSchema(HitchpostError):
    """Raised when a file was written by a newer version. Nothing is written then."""

    exit_code = 4
    http_status = 409
    code = "newer_schema"

    def __init__(self, path: str, schema: int) -> None:
        super().__init__(
            f"{path} was written by a newer hitchpost (schema {schema}; this one knows {SCHEMA})", "upgrade hitchpost"
        )
        self.path, self.schema = path, schema


class LockTimeout(HitchpostError):
    """Raised when another process holds a lock for too long."""

    http_status = 503
    code = "busy"

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__(f"{path} is locked by another process for more than {timeout_s:g} s", "see hitch doctor")
        self.path = path


class WrongRun(HitchpostError):
    """Raised when a change is meant for another run than the session's current one."""

    exit_code = 4
    http_status = 409
    code = "wrong_state"

    def __init__(self, expected: int, current: int) -> None:
        super().__init__(f"expected run {expected} to be the current one, but it is run {current}")
        self.expected, self.current = expected, current


class Removed(HitchpostError):
    """Raised when the session was removed while somebody waited for its lock."""

    exit_code = 3
    http_status = 404
    code = "not_found"

    def __init__(self, folder: str) -> None:
        super().__init__(f"{folder} has been removed")
        self.folder = folder


class NotAFile(HitchpostError, OSError):
    """Raised when something else is in the place of a file, such as a pipe or a device, or a file of absurd size.

    Who expects a file that cannot be read expects this, too.
    """

    http_status = 409
    code = "unreadable"

    def __init__(self, path: str, what: str) -> None:
        OSError.__init__(self, errno.EINVAL, f"expected a file, but got {what}", path)
        self.message = str(self)


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


# Locks ----------------------------------------------------------------------------------------------------------


class Lock:
    """An exclusive ``flock``, with a time limit. The file stays when the lock is released."""

    def __init__(self, path: str, timeout_s: float = LOCK_TIMEOUT_S) -> None:
        self.path, self.timeout_s = path, timeout_s
        self.fd = -1

    def __enter__(self) -> Lock:
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            wait_in_line(fd, self.path, self.timeout_s)
        except BaseException:
            os.close(fd)
            raise
        self.fd = fd
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Give the lock back, before the end of the ``with`` or at it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class SessionLock(Lock):
    """The lock of a session folder. Raises ``Removed`` when the folder went away while we waited."""

    def __init__(self, folder: str, timeout_s: float = LOCK_TIMEOUT_S) -> None:
        super().__init__(f"{folder}/{LOCK}", timeout_s)
        self.folder = folder

    def __enter__(self) -> SessionLock:
        try:
            super().__enter__()
        except (FileNotFoundError, NotADirectoryError):
            raise Removed(self.folder) from None
        try:
            there = os.stat(self.path, follow_symlinks=False)
            ours = os.fstat(self.fd)
            same = (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
        except FileNotFoundError:
            same = False
        if not same:
            self.release()
            raise Removed(self.folder)
        return self


_waiting: set[int] = set()


def wait_in_line(fd: int, path: str, timeout_s: float) -> None:
    """Take an exclusive lock on ``fd``, first come, first served: the kernel keeps the line.

    A thread stands in it, because that wait has no time limit. Its descriptor is its own: one that we gave up waiting
    for takes the lock when its turn comes, and gives it back at once. A process has few such threads; then it polls.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    except BlockingIOError:
        if timeout_s <= 0:
            raise LockTimeout(path, timeout_s) from None
    if len(_waiting) >= MOST_WAITING:
        return wait_for_flock(fd, path, timeout_s)
    own, over = os.dup(fd), _thread.allocate_lock()
    failures: list[OSError] = []

    def stand() -> None:
        try:
            fcntl.flock(own, fcntl.LOCK_EX)
        except OSError as error:
            failures.append(error)
        _waiting.discard(own)
        os.close(own)
        over.release()

    over.acquire()
    _waiting.add(own)
    try:
        _thread.start_new_thread(stand, ())
    except RuntimeError:  # no thread may be started here
        _waiting.discard(own)
        os.close(own)
        return wait_for_flock(fd, path, timeout_s)
    if not over.acquire(timeout=timeout_s):
        raise LockTimeout(path, timeout_s)
    if failures:
        raise failures[0]


def wait_for_flock(fd: int, path: str, timeout_s: float) -> None:
    """Take an exclusive lock on ``fd`` by trying: for one that may be held for long, and is not waited for then."""
    deadline: float | None = None
    pause_s = 0.0005
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            now = time.monotonic()
            if deadline is None:
                deadline = now + timeout_s
            if now >= deadline:
                raise LockTimeout(path, timeout_s) from None
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.02)


def is_held(path: str) -> bool | None:
    """Whether somebody holds an exclusive lock on ``path``; None when that cannot be known.

    A shared probe: two probes at once do not take each other for life. A file that is not there is held by nobody.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(fd)


# Files ----------------------------------------------------------------------------------------------------------


def sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


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
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        size = checked_file(fd, path).st_size
        torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        write_all(fd, ("\n" if torn else "").encode() + line.encode() + b"\n")
        if durable:
            os.fdatasync(fd)
    finally:
        os.close(fd)


def open_file(path: str, *, follow: bool = False) -> int:
    """A descriptor to read a file from. Never waits for the other end of a pipe: raises ``NotAFile``."""
    link = 0 if follow else os.O_NOFOLLOW
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | link)
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
    """A file that holds one JSON object. Raises ``FileNotFoundError``, ``Unreadable`` or ``NewerSchema``."""
    try:
        value = lightjson.loads(read_bytes(path))
    except ValueError as error:
        raise Unreadable(path, str(error)) from None
    except NotAFile as error:
        raise Unreadable(path, str(error.strerror)) from None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
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
