"""Looks at an agent's title and screen: one at a time, with a pause after each."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from hitchpost.errors import HitchpostError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any

PAUSE, LONGEST_PAUSE_S = 2.0, 1.0
"""After each look, so many times as long as it took: a flood of the screen costs a third of a core at most."""
RULES_S = 0.25
"""On a processor, for all patterns together. More means that the screen was drawn to make them slow."""
SHOWN_S, LOOK_S = 8.0, 0.1
"""How long the screen may take to show what was typed, and how often it is read for that."""


class NothingSeen(HitchpostError):
    """Raised when a look did not tell what the agent shows."""


class Looks:
    """``start`` runs a look beside everything else; ``read`` is told whether the screen is read, too."""

    def __init__(
        self,
        start: Callable[[Coroutine[Any, Any, None]], object],
        read: Callable[[bool], Awaitable[None]],
        done: Callable[[], None],
    ) -> None:
        self._start, self._read, self._done = start, read, done
        self._looking = self._again = self._screen_too = False

    def ask(self, *, screen: bool) -> None:
        """Look soon. Looks that are asked for during another become one."""
        self._again = True
        self._screen_too = self._screen_too or screen
        if not self._looking:
            self._looking = True
            self._start(self._look())

    async def _look(self) -> None:
        try:
            while self._again:
                self._again, screen_too, self._screen_too = False, self._screen_too, False
                began = time.monotonic()
                await self._read(screen_too)
                await asyncio.sleep(min(PAUSE * (time.monotonic() - began), LONGEST_PAUSE_S))
        finally:
            self._looking = False
        self._done()
