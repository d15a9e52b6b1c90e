"""Shares of the hub's time: who does not own everything pays for what is done, and waits when that is much."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

T = TypeVar("T")
SHORTEST_WAIT_S = 0.01


class Share:
    """A part of the event loop's time. Who has used more waits until that is made up for; ``burst_s`` are free.
    What threads compute counts as well: the event loop waits for them.

    Time is measured as it passes, also while the hub itself has to wait for a core.
    """

    def __init__(self, part: float, burst_s: float, above: Share | None = None) -> None:
        self.part, self.burst_s, self.above = part, burst_s, above
        self._used_s = self._at = 0.0
        self._line = asyncio.Lock()

    def wait_s(self, now: float) -> float:
        """How long to wait before more of it is used; 0.0 when there is some left."""
        self._used_s = max(0.0, self._used_s - (now - self._at) * self.part)
        self._at = now
        wait_s = max(0.0, (self._used_s - self.burst_s) / self.part)
        return wait_s if self.above is None else max(wait_s, self.above.wait_s(now))

    def use(self, seconds: float) -> None:
        self._used_s += seconds
        if self.above is not None:
            self.above.use(seconds)

    def is_idle(self, now: float) -> bool:
        """Whether nothing is lost when it is forgotten."""
        self.wait_s(now)
        return self._used_s == 0.0

    async def turn(self) -> None:
        """Wait until there is some left, in the order of coming. Hold nothing that others wait for."""
        async with self._line:
            while wait_s := self.wait_s(perf_counter()):  # noqa: ASYNC110 - time is all that it waits for
                await asyncio.sleep(max(wait_s, SHORTEST_WAIT_S))

    async def pay(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work. The event loop's time for it is used from this share, step by step, and so is that of what it
        has done in a pool's threads."""
        token = PAYER.set(self)
        try:
            done: T = await _Steps(work, self)
            return done
        finally:
            PAYER.reset(token)


class _Steps:
    """Awaits ``work``, and measures how long each of its steps keeps the event loop."""

    def __init__(self, work: Coroutine[Any, Any, T], share: Share) -> None:
        self.work, self.share = work, share

    def __await__(self) -> Generator[Any, Any, Any]:
        go_on: Callable[[], Any] = partial(self.work.send, None)
        while True:
            began = perf_counter()
            try:
                waits_for = go_on()
            except StopIteration as end:
                return end.value
            finally:
                self.share.use(perf_counter() - began)
            try:
                yield waits_for
                go_on = partial(self.work.send, None)
            except BaseException as error:  # a cancellation is the work's own business
                go_on = partial(self.work.throw, error)


PAYER: ContextVar[Share | None] = ContextVar("payer", default=None)
"""For whom the current task works; None when nobody has to pay."""
