"""Locks between processes, with a time limit. The keeper imports this module.

A lock is a file of its own: a lock on a file that is replaced by renaming would let a second holder in.
"""

from __future__ import annotations

import _thread
import fcntl
import os
import time

from hitchpost.errors import HitchpostError
from hitchpost.store.files import LOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Protocol

    class Guard(Protocol):
        """Who else has to agree before a session is changed: in a fleet, its lock is that of all hubs."""

        def is_inside(self, folder: str) -> bool:
            """Whether this thread has the lock already: then it may take it once more, and nothing happens."""

        def enter(self, folder: str, timeout_s: float) -> Callable[[BaseException | None], None]:
            """Called with the file's lock held. What it returns is called before that is given back."""


LOCK_TIMEOUT_S = 10.0
MOST_WAITING = 32


class LockTimeout(HitchpostError):
    """Raised when another process holds a lock for too long."""

    http_status = 503
    code = "busy"

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__(f"{path} is locked by another process for more than {timeout_s:g} s", "see hitch doctor")
        self.path = path


class Removed(HitchpostError, FileNotFoundError):
    """Raised when the session was removed while somebody waited for its lock."""

    exit_code = 3
    http_status = 404
    code = "not_found"

    def __init__(self, folder: str) -> None:
        super().__init__(f"{folder} has been removed")
        self.folder = folder


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


GUARDS: dict[str, Guard] = {}
"""By the folder of the sessions that it guards. Empty on a machine that is no fleet's hub."""


class SessionLock(Lock):
    """The lock of a session folder. Raises ``Removed`` when the folder went away while we waited."""

    is_guarded = True

    def __init__(self, folder: str, timeout_s: float = LOCK_TIMEOUT_S) -> None:
        super().__init__(f"{folder}/{LOCK}", timeout_s)
        self.folder = folder
        self._leave: Callable[[BaseException | None], None] | None = None

    def __enter__(self) -> SessionLock:
        guard = GUARDS.get(os.path.dirname(self.folder)) if GUARDS else None
        if guard is None:
            return self._enter()
        if guard.is_inside(self.folder):
            return self
        self._enter()
        if not self.is_guarded:
            return self
        try:
            self._leave = guard.enter(self.folder, self.timeout_s)
        except BaseException:
            self.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        leave, self._leave = self._leave, None
        try:
            if leave is not None:
                leave(error)
        finally:
            self.release()

    def _enter(self) -> SessionLock:
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


class FolderLock(SessionLock):
    """The lock of a session's folder here, whatever the fleet does: for what comes into a copy from elsewhere, and is
    told to the other hubs later. Who has the lock of the session has this one, too."""

    is_guarded = False


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
