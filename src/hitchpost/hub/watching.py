"""Watching one run through its keeper's socket: events as they happen, and how far its log reaches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from hitchpost import wire
from hitchpost.hub.keepers import KeeperGone, KeeperLink
from hitchpost.runtimes.link import is_kept
from hitchpost.terminal import output

MOST_PAUSE_S = 1.0


class Watch:
    """Tells ``tell`` every event of the keeper, and ``{"event": "closed"}`` at the end.

    ``end`` is how far the log reaches, as far as somebody wants to know: followers wait in ``beyond``.
    """

    def __init__(self, run_folder: str, run: int, tell: Callable[[dict[str, Any]], None]) -> None:
        self.run_folder, self.run, self.tell = run_folder, run, tell
        self.over = False
        self.end = 0
        self.cols, self.rows = 80, 24
        self._link: KeeperLink | None = None
        self._asked = False
        self._ended = False
        """The keeper has said its last word, with the end of the log in it."""
        self._moved = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        try:
            while not self.over and not self._ended:
                link = await self._connected()
                self._welcomed(link)
                await link.lost()  # with the run, or because the keeper hung up on a hub that stood still
                self._link = None
        except KeeperGone:
            pass
        if not self._ended:
            _, end = await asyncio.to_thread(output.bounds, f"{self.run_folder}/{wire.OUTPUT}")
            self.end = max(self.end, end)
        self.over = True
        self._wake()
        self.tell({"event": "closed"})

    async def _connected(self) -> KeeperLink:
        """Raises ``KeeperGone`` when it is. One that lives and does not answer is asked again: viewers wait for it."""
        pause_s = 0.01
        while True:
            try:
                return await KeeperLink.connect(self.run_folder, self._heard)
            except KeeperGone:
                if not await asyncio.to_thread(is_kept, self.run_folder):
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, MOST_PAUSE_S)

    def _welcomed(self, link: KeeperLink) -> None:
        self._link, self._asked = link, False
        self.end = int(link.welcome["end"])
        self.cols, self.rows = int(link.welcome["cols"]), int(link.welcome["rows"])
        self._wake()
        self.tell({"event": "attention"})  # what was reported before we listened

    def _heard(self, kind: bytes, payload: bytes) -> None:
        if kind == wire.POKE:
            self.end = int.from_bytes(payload[:8], "big")
            self._asked = False
            self._wake()
        elif kind == wire.EVENT:
            event = json.loads(payload)
            if event.get("event") == "exit":
                self.end, self._ended = int(event["end"]), True
                self._wake()
            elif event.get("event") == "resize":
                self.cols, self.rows = int(event["cols"]), int(event["rows"])
            self.tell(event)

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def beyond(self, offset: int) -> bool:
        """Wait until the log reaches further than ``offset``; False when it never will.

        The keeper tells once for each time that it is asked. So nothing is asked while nobody waits.
        """
        while self.end <= offset and not self.over:
            if self._link is not None and not self._asked:
                self._asked = True
                self._link.follow(self.end)
            await self._moved.wait()
        return self.end > offset

    def close(self) -> None:
        self.over = True
        self._task.cancel()
        if self._link is not None:
            self._link.close()
        self._wake()
