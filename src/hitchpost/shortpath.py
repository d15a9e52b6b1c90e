"""The path of a Unix socket ends at 107 bytes. Through its opened folder, every path is short enough."""

from __future__ import annotations

import os


class ShortPath:
    """``with ShortPath(folder, name) as path:`` gives one to bind or to connect to. No folder is an ``OSError``."""

    def __init__(self, folder: str, name: str) -> None:
        self.folder, self.name = folder, name

    def __enter__(self) -> str:
        self._fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._fd}/{self.name}"

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
