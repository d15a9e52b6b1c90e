"""Chats that somebody reads: their lines from an offset on, and each further line as it is written."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from hitchpost.acp import chat
from hitchpost.hub.changes import IN_CREATE, IN_MODIFY, Changes

LOOK_EVERY_S = 1.0
"""At a chat of which the kernel tells nothing, because it allows no more watches."""

Send = Callable[[int, list[dict[str, Any]], int], Awaitable[None]]
"""Sends lines: the offset of their first byte, the lines, and the offset behind them."""


class Chats:
    """The kernel tells when one has grown (inotify). Nothing is queued for a reader: each has an offset in the file,
    and is sent a part of it at a time, so a slow one slows nobody else."""

    def __init__(self, do: Callable[..., Awaitable[Any]]) -> None:
        self._do = do
        self._changes = Changes(self._changed, IN_MODIFY | IN_CREATE)
        self._readers: dict[str, set[asyncio.Event]] = {}

    async def follow(self, folder: str, start: int, send: Send) -> None:
        """Send the lines of a session's chat from the byte ``start`` on, until this is cancelled.

        The first part is sent even when it is empty. Raises what reading raises.
        """
        grown = asyncio.Event()
        self._readers.setdefault(folder, set()).add(grown)
        try:
            self._changes.open()
            is_told = self._changes.watch(folder)
            is_first = True
            while True:
                grown.clear()
                lines, end = await self._do(chat.read, folder, start)
                if end > start or is_first:
                    await send(start, lines, max(start, end))
                is_whole, is_first, start = end - start < chat.PART_BYTES, False, max(start, end)
                if is_whole:
                    await _wait(grown, None if is_told else LOOK_EVERY_S)
        finally:
            self._leave(folder, grown)

    def _leave(self, folder: str, grown: asyncio.Event) -> None:
        self._readers[folder].discard(grown)
        if not self._readers[folder]:
            del self._readers[folder]
            self._changes.forget(folder)

    def _changed(self, folder: str, name: str) -> None:
        """Without a folder, the kernel has lost what it had to tell."""
        if name not in (chat.CHAT, ""):
            return
        for place in (folder,) if folder else tuple(self._readers):
            for grown in self._readers.get(place, ()):
                grown.set()

    def close(self) -> None:
        self._changes.close()


async def _wait(grown: asyncio.Event, most_s: float | None) -> None:
    try:
        async with asyncio.timeout(most_s):
            await grown.wait()
    except TimeoutError:
        return
