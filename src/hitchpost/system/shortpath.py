"""The path of a Unix socket ends at 107 bytes. Through its opened folder, every path is short enough."""

from __future__ import annotations

import os


class ShortPath:
    """``with ShortPath(folder, name) as path:`` gives one to bind or to connect to. No folder is an ``OSError``."""

    def __init__(self, folder: str, name: str) -> None:
        self._fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._path = f"/proc/self/fd/{self._fd}/{name}"

    def __enter__(self) -> str:
        return self._path

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        self._fd = -1

    def __del__(self) -> None:
        """Of one that was opened in a thread for somebody who had left by then."""
        if getattr(self, "_fd", -1) >= 0:
            os.close(self._fd)
