"""``tokens.json`` as the hub last read it. The kernel reports its changes, and a thread reads it again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from hitchpost.hub.changes import ENTRIES, IN_SELF, Changes
from hitchpost.hub.http.tokenfile import FILE, Credential, Known, TokenFile

IN_CLOSE_WRITE = 0x8


class TokenCache:
    """Calls ``on_change`` when the file has changed.

    Once it is open, only ``refresh`` reads the file, and only after a change. Where the kernel cannot watch the file,
    every ``refresh`` looks at it.
    """

    def __init__(self, file: TokenFile, on_change: Callable[[], None]) -> None:
        self.file, self.on_change = file, on_change
        self._home = os.path.dirname(file.path)
        self._changes = Changes(self._changed, ENTRIES | IN_CLOSE_WRITE | IN_SELF)
        self._known: Known | OSError = Known()
        self._is_open = False
        self._is_stale = True
        self._reading = asyncio.Lock()

    def open(self) -> None:
        self._changes.open()
        self._changes.watch(self._home)
        self._is_open = True

    def close(self) -> None:
        self._changes.close()
        self._is_open = False

    @property
    def is_watched(self) -> bool:
        return self._is_open and self._home not in self._changes.unwatched

    def find(self, key: str) -> Credential | None:
        """Who has the key, as of the last ``refresh``. Raises ``OSError`` when the file could not be read then."""
        if not self._is_open:
            return self.file.find(key)
        return self.known.find(key, self.file.now())

    @property
    def known(self) -> Known:
        """All that the file has, as of the last ``refresh``. Raises ``OSError`` when it could not be read then."""
        if not self._is_open:
            return self.file.read_if_changed()
        if isinstance(self._known, OSError):
            raise self._known
        return self._known

    async def refresh(self) -> None:
        """Read the file if it has changed: what others have written by now is reported by now."""
        if not self._is_open:
            return
        self._changes.read()
        if not self._is_stale and self.is_watched and not self._reading.locked():
            return
        async with self._reading:
            if self._is_stale or not self.is_watched:
                self._changes.open()
                self._is_stale = False
                try:
                    self._known = await asyncio.to_thread(self._read)
                except BaseException:
                    self._is_stale = True
                    raise
                if isinstance(self._known, OSError):
                    self._is_stale = True

    def _read(self) -> Known | OSError:
        if not self.is_watched:
            self._changes.watch(self._home)
        try:
            return self.file.read_if_changed()
        except OSError as error:
            return error

    def _changed(self, folder: str, name: str) -> None:
        if folder and not name:
            self._changes.lose(folder)
        if name in (FILE, ""):
            self._is_stale = True
            self.on_change()
