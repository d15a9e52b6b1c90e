"""What is going on over TCP, by who asked for it: requests, downloads and WebSockets.

When somebody is not known any more, all of theirs ends at once: the file of tokens has changed, a browser was signed
out, or time is up. Nobody has to ask again and again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

from hitchpost.hub.changes import ENTRIES, Changes
from hitchpost.hub.http.tokenfile import FILE, Known

IN_CLOSE_WRITE = 0x8
AGAIN_S = 1.0
"""Until the next look at the file where the kernel does not tell of its changes, or where it cannot be read now."""
SHORTEST_S, LONGEST_S = 0.05, 1.0
"""Until the next look at the time of day while something is held that expires: clocks are set, and machines sleep."""


class Held:
    """Something that goes on for somebody. ``end`` ends it."""

    __slots__ = ("end", "gone", "known")

    def __init__(self, known: Known, end: Callable[[], object]) -> None:
        self.known, self.end, self.gone = known, end, False


class Live:
    """``find`` tells who has a key now, ``wall`` the time of day."""

    def __init__(self, find: Callable[[str], Known | None], wall: Callable[[], float] = time.time) -> None:
        self.find, self.wall = find, wall
        self._held: set[Held] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._changes: Changes | None = None
        self._home = ""
        self._must_look = False
        """Whether somebody could not be looked up the last time."""

    def open(self, home: str) -> None:
        """Hear of every change of the tokens from now on."""
        self._home = home
        self._changes = Changes(self._changed, ENTRIES | IN_CLOSE_WRITE)
        self._changes.watch(home)

    def close(self) -> None:
        if self._changes is not None:
            self._changes.close()
        if self._timer is not None:
            self._timer.cancel()

    async def serve(self, held: Held, work: Coroutine[Any, Any, None]) -> None:
        """Do the work while whoever asked for it is known; ``held.gone`` tells that it was cut off."""
        self._held.add(held)
        self._arm(held.known)
        try:
            await work
        except asyncio.CancelledError:
            if not held.gone:
                raise
        finally:
            self._held.discard(held)

    def let_go(self, held: Held) -> None:
        """This one goes on, whatever becomes of who asked for it."""
        self._held.discard(held)

    def check(self) -> None:
        """End all that goes on for those who are not known any more."""
        self._must_look = False
        for held in list(self._held):
            try:
                known = self.find(held.known.key)
            except OSError:
                self._must_look = True  # it cannot be told now
                self._look_in(AGAIN_S)
                continue
            if known is None:
                self._held.discard(held)
                held.gone = True
                held.end()
            else:
                held.known = known

    def _changed(self, folder: str, name: str) -> None:
        if name in (FILE, ""):
            self.check()

    def _arm(self, known: Known) -> None:
        """See to it that somebody looks when time is up."""
        ends = known.grant.expires_at
        if ends is None and not self._is_unwatched():
            return
        after_s = AGAIN_S if self._is_unwatched() else LONGEST_S
        if ends is not None:
            after_s = min(after_s, max(SHORTEST_S, ends.timestamp() - self.wall()))
        self._look_in(after_s)

    def _look_in(self, after_s: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is None or self._timer.when() > loop.time() + after_s:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_later(after_s, self._time_is_up)

    def _is_unwatched(self) -> bool:
        return self._changes is not None and self._home in self._changes.unwatched

    def _time_is_up(self) -> None:
        self._timer = None
        now = datetime.fromtimestamp(self.wall(), UTC)
        must_look = self._must_look or not all(held.known.grant.holds(now) for held in self._held)
        if self._changes is not None and self._is_unwatched():
            must_look = True
            self._changes.open()
            self._changes.watch(self._home)
        if must_look:
            self.check()
        for held in self._held:
            self._arm(held.known)
