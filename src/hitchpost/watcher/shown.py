"""Agents whose screen is the best source. What it shows is known, or it is said that it is not."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from hitchpost.model.attention import UNKNOWN
from hitchpost.watcher.adapter import READY_S, SCREEN, Adapter
from hitchpost.watcher.looks import LOOK_S

if TYPE_CHECKING:
    from hitchpost.watcher.watching import Watching

LOOK_EVERY_S = 0.5
"""How often the screen is read while the agent goes on printing. Questions and prompts are read when it pauses."""
ODD_S = 1.5
"""A screen that shows nothing that is known may be half drawn. After this time it counts."""
ODD_SCREEN = "its screen shows nothing that is known; hitch attach shows it"


class Shown(Adapter):
    sources = (SCREEN,)

    def __init__(self, watching: Watching) -> None:
        super().__init__(watching)
        self._looked_at = 0.0
        self._odd_since: float | None = None

    def on_output(self) -> None:
        if time.monotonic() - self._looked_at > LOOK_EVERY_S:
            self._looked_at = time.monotonic()
            self.look()

    def on_screen(self, text: str) -> None:
        if self.read_screen(text) is not None:
            self._odd_since = None
            super().on_screen(text)
        elif self._odd_since is None:
            self._odd_since = time.monotonic()
            asyncio.get_running_loop().call_later(ODD_S, self.look)
        elif time.monotonic() - self._odd_since >= ODD_S and not self._is_said(SCREEN, UNKNOWN, ODD_SCREEN):
            self.watching.put(SCREEN, UNKNOWN, message=ODD_SCREEN)

    async def refusal(self) -> str | None:
        """As the screen is now, not as it was when the agent last paused. One that is being drawn, or that says only
        that it loads something, gets time to become known."""
        deadline = time.monotonic() + READY_S
        await self.seen()
        while self._odd_since is not None and time.monotonic() < deadline:
            await asyncio.sleep(LOOK_S)
            await self.seen()
        why = await super().refusal() if self._odd_since is None else None
        return ODD_SCREEN if why is None and self._odd_since is not None else why
