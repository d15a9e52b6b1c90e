"""The agent's screen, read from its log. Nothing runs until somebody looks."""

from __future__ import annotations

import asyncio
import os
import time

from hitchpost import wire
from hitchpost.terminal import output
from hitchpost.terminal.emulators import Emulators
from hitchpost.terminal.screen import Losses, RunScreen
from hitchpost.watcher.looks import NothingSeen


class NoScreen(NothingSeen):
    """Raised when nothing can draw the screen: what it shows is not known."""


class LogScreen:
    """Looks go on where the last one ended, one at a time. ``end`` is the offset in the log that the last one saw, and
    ``read_at`` when that was: drawing it takes a moment, and an agent may say something else meanwhile."""

    def __init__(self, run_folder: str) -> None:
        self._folder = os.path.join(run_folder, wire.OUTPUT)
        self._emulators: Emulators | None = None
        self._screen: RunScreen | None = None
        self._lock = asyncio.Lock()
        self._over = False
        self.end, self.read_at = 0, 0.0

    async def text(self) -> str:
        """What is on the screen now, in lines as the agent wrote them: rules read the same at any width.

        Raises ``NoScreen``.
        """
        async with self._lock:
            self._over = False
            look = asyncio.create_task(asyncio.to_thread(self._text))
            try:
                return await asyncio.shield(look)
            finally:
                await asyncio.wait([look])  # also of one that nobody waits for any more
                if self._over:
                    self._give_back()

    def _text(self) -> str:
        if self._screen is None:
            self._emulators = Emulators()
            self._screen = RunScreen(self._folder, self._emulators, Losses())
        self.read_at = time.monotonic()
        end = output.bounds(self._folder)[1]
        self._screen.advance(end)
        self.end = end
        text = self._screen.text(unwrap=True)
        if not self._screen.can_paint:
            raise NoScreen("the agent's screen cannot be drawn")
        return text

    def close(self) -> None:
        """Give back what the last look took, when it is over. The next look begins anew."""
        if self._lock.locked():
            self._over = True
        else:
            self._give_back()

    def _give_back(self) -> None:
        screen, emulators, self._screen, self._emulators = self._screen, self._emulators, None, None
        if screen is not None:
            screen.close()
        if emulators is not None:
            emulators.close()
