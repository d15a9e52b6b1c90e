"""Being told by the kernel that a name in a folder was removed or renamed: by a signal (dnotify).

inotify would tell more, but a user has only 128 of those, and agents and editors need them: a keeper takes none.
"""

from __future__ import annotations

import os
from _signal import SIG_DFL, SIGIO, getsignal
from fcntl import DN_CREATE, DN_DELETE, DN_MODIFY, DN_RENAME, F_NOTIFY, fcntl

REMOVED, RENAMED = DN_DELETE, DN_RENAME
ANYTHING = DN_CREATE | DN_DELETE | DN_MODIFY | DN_RENAME
"""Also that a file in it was written to."""


class FolderNews:
    """The first change in each folder after ``listen`` raises SIGIO in this process, once."""

    def __init__(self) -> None:
        self._folders: list[tuple[int, int]] = []

    def open(self, folder: str, changes: int) -> bool:
        """False when it cannot tell: it cannot be read, or the system does not know how.

        Nor does it where nobody handles the signal, which would end this process.
        """
        if getsignal(SIGIO) == SIG_DFL:
            return False
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl(fd, F_NOTIFY, changes)
        except OSError:
            os.close(fd)
            return False
        self._folders.append((fd, changes))
        return True

    def listen(self) -> bool:
        """From now on, also in those that have told something. False when one of them cannot tell any more."""
        try:
            for fd, changes in self._folders:
                fcntl(fd, F_NOTIFY, changes)
        except OSError:
            return False
        return True

    def close(self) -> None:
        for fd, _ in self._folders:
            os.close(fd)
        self._folders = []
