"""Changes that other processes make to the sessions, reported by the kernel (inotify)."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import struct
from collections.abc import Callable

IN_MODIFY, IN_ATTRIB = 0x2, 0x4
IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE = 0x40, 0x80, 0x100, 0x200
ENTRIES = IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE
IN_SELF = 0x400 | 0x800
"""The folder itself was deleted or moved. It has no name."""
IN_IGNORED, IN_Q_OVERFLOW, IN_ONLYDIR = 0x8000, 0x4000, 0x01000000
IN_NONBLOCK, IN_CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC
HEADER = struct.Struct("iIII")
LIMITS = {errno.ENOSPC: "fs.inotify.max_user_watches", errno.EBADF: "fs.inotify.max_user_instances"}

_libc = ctypes.CDLL(None, use_errno=True)


class Changes:
    """Calls ``on_change(folder, name)`` for each entry that came, went or was replaced in a watched folder (``mask``).

    The kernel's queue is bounded. When it was full, ``on_change("", "")`` says so: look at everything.
    ``unwatched`` has the folders that the kernel refused to watch, and which of its limits was reached.
    """

    def __init__(self, on_change: Callable[[str, str], None], mask: int = ENTRIES) -> None:
        self.on_change, self.mask = on_change, mask | IN_ONLYDIR
        self.unwatched: dict[str, str] = {}
        self._fd = -1
        self._folders: dict[int, str] = {}
        self._watches: dict[str, int] = {}

    def open(self, *, tells: bool = True) -> None:
        """Open an inotify, unless it is open already or the user's are used up. One that does not tell is read by who
        wants to know."""
        if self._fd < 0:
            self._fd = _libc.inotify_init1(IN_NONBLOCK | IN_CLOEXEC)
            if self._fd >= 0 and tells:
                asyncio.get_running_loop().add_reader(self._fd, self.read)

    def watch(self, folder: str) -> bool:
        """Watch the folder. False when it is gone, or when the kernel allows no more watches."""
        number = _libc.inotify_add_watch(self._fd, os.fsencode(folder), self.mask)
        if number < 0:
            if (why := ctypes.get_errno()) not in (errno.ENOENT, errno.ENOTDIR):
                self.unwatched[folder] = LIMITS.get(why, os.strerror(why).lower())
            return False
        self._folders[number], self._watches[folder] = folder, number
        self.unwatched.pop(folder, None)
        return True

    def watches(self, folder: str) -> bool:
        return folder in self._watches

    def forget(self, folder: str) -> None:
        self.unwatched.pop(folder, None)
        number = self._watches.pop(folder, None)
        if number is not None:
            self._folders.pop(number, None)
            _libc.inotify_rm_watch(self._fd, number)

    def lose(self, folder: str) -> None:
        """What is watched is not at this path any more: count it as unwatched until ``watch`` finds it again."""
        self.forget(folder)
        self.unwatched[folder] = os.strerror(errno.ENOENT).lower()

    def close(self) -> None:
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def read(self) -> None:
        """Report all changes so far. The event loop calls it, and who cannot wait for that may call it too."""
        while self._fd >= 0 and self._read():
            continue

    def _read(self) -> bool:
        try:
            data = os.read(self._fd, 65536)
        except BlockingIOError:
            return False
        at = 0
        while at < len(data):
            number, mask, _, length = HEADER.unpack_from(data, at)
            name = data[at + HEADER.size : at + HEADER.size + length].rstrip(b"\0")
            at += HEADER.size + length
            if mask & IN_Q_OVERFLOW:
                self.on_change("", "")
            elif number in self._folders and not mask & IN_IGNORED:
                self.on_change(self._folders[number], os.fsdecode(name))
        return True
