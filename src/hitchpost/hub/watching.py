"""Watching a run through its keeper's socket: events as they happen, and how far its log reaches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from hitchpost import wire
from hitchpost.hub.keepers import KeeperLink
from hitchpost.hub.tasks import Tasks
from hitchpost.runtimes.link import NotReached, is_kept
from hitchpost.terminal import output

LONGEST_PAUSE_S = 1.0


class Watch:
    """Calls ``on_event`` with every event of the keeper, and with ``{"event": "closed"}`` at the end.

    ``end`` is how far the log reaches, as far as somebody wants to know: followers wait in ``beyond``.
    """

    def __init__(self, run_folder: str, run: int, on_event: Callable[[dict[str, Any]], None]) -> None:
        self.run_folder, self.run, self.on_event = run_folder, run, on_event
        self.over = False
        self.end = 0
        self.cols, self.rows = 80, 24
        self._link: KeeperLink | None = None
        self._is_following = False
        self._has_exit = False
        """The keeper has reported the exit, with the end of the log in it."""
        self._moved = asyncio.Event()
        self._tasks = Tasks("watch")
        self._tasks.start(self._listen())

    async def _listen(self) -> None:
        try:
            await self._follow_keeper()
        finally:  # whatever went wrong: who waits for output must not wait for ever
            was_closed, self.over = self.over, True
            self._wake()
            if not was_closed:
                self.on_event({"event": "closed"})

    async def _follow_keeper(self) -> None:
        try:
            while not self.over and not self._has_exit:
                link = await self._connected()
                self._welcomed(link)
                await link.lost()  # with the run, or because the keeper hung up on a hub that stood still
                self._link = None
        except NotReached:
            pass
        if not self._has_exit:
            _, end = await asyncio.to_thread(output.bounds, f"{self.run_folder}/{wire.OUTPUT}")
            self.end = max(self.end, end)

    async def _connected(self) -> KeeperLink:
        """Raises ``NotReached`` when it is gone. One that lives and is silent is asked again: viewers wait for it."""
        pause_s = 0.01
        while True:
            try:
                return await KeeperLink.connect(self.run_folder, self._on_frame)
            except NotReached:
                if not await asyncio.to_thread(is_kept, self.run_folder):
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    def _welcomed(self, link: KeeperLink) -> None:
        self._link, self._is_following = link, False
        self.end = int(link.welcome["end"])
        self.cols, self.rows = int(link.welcome["cols"]), int(link.welcome["rows"])
        self._wake()
        self.on_event({"event": "attention"})  # what was reported before we listened

    def _on_frame(self, kind: bytes, payload: bytes) -> None:
        if kind == wire.POKE:
            self.end = int.from_bytes(payload[:8], "big")
            self._is_following = False
            self._wake()
        elif kind == wire.EVENT:
            event = json.loads(payload)
            if event.get("event") == "exit":
                self.end, self._has_exit = int(event["end"]), True
                self._wake()
            elif event.get("event") == "resize":
                self.cols, self.rows = int(event["cols"]), int(event["rows"])
            self.on_event(event)

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def beyond(self, offset: int) -> bool:
        """Wait until the log reaches further than ``offset``; False when it never will.

        The keeper reports once for each request, so nothing is requested while nobody waits.
        """
        while self.end <= offset and not self.over:
            if self._link is not None and not self._is_following:
                self._is_following = True
                self._link.follow(self.end)
            await self._moved.wait()
        return self.end > offset

    def close(self) -> None:
        self.over = True
        self._tasks.cancel()
        if self._link is not None:
            self._link.close()
        self._wake()
