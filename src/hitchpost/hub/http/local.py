"""The hub's Unix socket, which is made again when somebody has removed it."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Awaitable, Callable

import structlog

from hitchpost.hub.client import SOCKET
from hitchpost.store import files
from hitchpost.system.shortpath import ShortPath

BACKLOG = 4096
"""Nobody waits to get into its queue: the kernel refuses whoever comes when it is full, and asyncio takes that for a
connection."""
LOOK_S = 2.0
log = structlog.get_logger()


class LocalSocket:
    def __init__(self, home: str) -> None:
        self.home = home
        self.path = os.path.join(home, SOCKET)
        self._folder = _identity(os.stat(home))
        self._file: tuple[int, int] | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def open(self) -> socket.socket:
        """Listen on a new one, never open to others, not even for a moment. Raises ``OSError``, also when it was
        discarded: the next hub may have its own there."""
        with self._lock:
            return self._open()

    def _open(self) -> socket.socket:
        if self._is_closed:
            raise OSError(errno.ESHUTDOWN, os.strerror(errno.ESHUTDOWN), self.path)
        if not self.is_at_home:
            raise OSError(errno.ENOENT, "the home was moved away", self.home)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            files.discard(self.path)
            os.fchmod(sock.fileno(), 0o600)  # Linux makes the file with it: other threads must not meet a changed umask
            with ShortPath(self.home, SOCKET) as short:
                sock.bind(short)
            sock.listen(BACKLOG)
            self._file = self._found()
        except BaseException:
            sock.close()
            raise
        return sock

    @property
    def is_at_home(self) -> bool:
        """Whether the home is still the folder that this hub serves: in another, the files are another hub's."""
        try:
            return _identity(os.stat(self.home)) == self._folder
        except OSError:
            return False

    def is_there(self) -> bool:
        return self._file is not None and self._found() == self._file

    def _found(self) -> tuple[int, int] | None:
        try:
            return _identity(os.lstat(self.path))
        except OSError:
            return None

    def discard(self) -> None:
        """For good: a thread that makes another one comes too late."""
        with self._lock:
            self._is_closed = True
            if self.is_at_home:
                files.discard(self.path)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


async def keep(local: LocalSocket, move: Callable[[socket.socket], Awaitable[None]], every_s: float = LOOK_S) -> None:
    """For ever: hand ``move`` another socket when the one before was removed or replaced."""
    is_warned = False
    while True:
        await asyncio.sleep(every_s)
        if await asyncio.to_thread(local.is_there):
            continue
        try:
            await move(await asyncio.to_thread(local.open))
        except OSError as error:  # the home was moved away, or its disk is full
            if not is_warned:
                log.error("the hub's socket was removed and cannot be made again", error=str(error))
            is_warned = True
        else:
            log.warning("the hub's socket was removed, and is made again")
            is_warned = False
