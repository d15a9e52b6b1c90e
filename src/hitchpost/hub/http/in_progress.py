"""What is going on over TCP, by who asked for it: requests, downloads and WebSockets.

When a credential is taken back or expires, or what it allows changes, all that goes on with it ends at once. Nobody has
to ask again and again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hitchpost.hub.http.grants import Grant
from hitchpost.hub.http.tokenfile import Credential
from hitchpost.hub.tasks import Tasks

AGAIN_S = 1.0
"""Until the next check where the kernel does not report changes of the file, or where it cannot be read now."""
SHORTEST_S, LONGEST_S = 0.05, 1.0
"""Until the next look at the time of day while something is held that expires: clocks are set, and machines sleep."""


class Held:
    """Something that goes on with a credential. ``end`` ends it; ``gone`` says that it was ended so."""

    __slots__ = ("credential", "end", "gone")

    def __init__(self, credential: Credential, end: Callable[[], object]) -> None:
        self.credential, self.end, self.gone = credential, end, False


class Live:
    """``find`` has the credential of a key now, after ``refresh``. ``is_watched`` says whether changes are reported,
    ``wall`` the time of day."""

    def __init__(
        self,
        find: Callable[[str], Credential | None],
        refresh: Callable[[], Awaitable[None]],
        is_watched: Callable[[], bool],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._find, self._refresh, self._is_watched, self._wall = find, refresh, is_watched, wall
        self._must_check = False
        """Whether somebody could not be looked up the last time."""
        self._held: set[Held] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = Tasks("credentials")
        self._is_check_due = False

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.close()

    async def serve(self, held: Held, work: Coroutine[Any, Any, None]) -> None:
        """Do the work while the credential holds; ``held.gone`` says that it was cut off."""
        self._held.add(held)
        self._arm(held.credential)
        try:
            await work
        except asyncio.CancelledError:
            if not held.gone:
                raise
        finally:
            self._held.discard(held)

    def let_go(self, held: Held) -> None:
        """Let this go on, whatever becomes of its credential."""
        self._held.discard(held)

    def request_check(self) -> None:
        """Check soon. A check that has not begun sees every change so far: at most one waits."""
        if not self._is_check_due:
            self._is_check_due = True
            self._tasks.start(self.check())

    async def check(self) -> None:
        """End all that goes on with credentials that hold no more."""
        self._is_check_due = self._must_check = False
        await self._refresh()
        for held in list(self._held):
            try:
                credential = self._find(held.credential.key)
            except OSError:
                self._must_check = True  # nobody can tell now
                self._check_in(AGAIN_S)
                continue
            if credential is None or not _is_as_before(held.credential.grant, credential.grant):
                self._held.discard(held)
                held.gone = True
                held.end()
            else:
                held.credential = credential

    def _arm(self, credential: Credential) -> None:
        """See to it that there is a check when time is up."""
        ends = credential.grant.expires_at
        if ends is None and self._is_watched():
            return
        after_s = LONGEST_S if self._is_watched() else AGAIN_S
        if ends is not None:
            after_s = min(after_s, max(SHORTEST_S, ends.timestamp() - self._wall()))
        self._check_in(after_s)

    def _check_in(self, after_s: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is None or self._timer.when() > loop.time() + after_s:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_later(after_s, self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        self._tasks.start(self._check_and_arm())

    async def _check_and_arm(self) -> None:
        now = datetime.fromtimestamp(self._wall(), UTC)
        expired = not all(held.credential.grant.holds(now) for held in self._held)
        if expired or self._must_check or not self._is_watched():
            await self.check()
        for held in self._held:
            self._arm(held.credential)


def _is_as_before(before: Grant, after: Grant) -> bool:
    """Whether it allows the same, for however long. What goes on was let in by what was allowed before."""
    return before == replace(after, expires_at=before.expires_at)
