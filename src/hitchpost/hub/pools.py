"""The hub's threads, apart by what waits in them: one session, or one kind of work, cannot keep the others waiting."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from time import thread_time
from typing import Any, ParamSpec, TypeVar

from hitchpost.hub.time_shares import PAYER, Share

P = ParamSpec("P")
T = TypeVar("T")

LOOKS, GIT, STARTS, ENDS, WAITS = "looks", "git", "starts", "ends", "waits"
SIZES = {LOOKS: 16, GIT: 16, STARTS: 16, ENDS: 16, WAITS: 64}
"""Looks read our files, git reads an agent's. Starts wait for an agent to be ready or to read a prompt. Ends wait for
processes to go. Waits wait for what becomes of a session, for some seconds at a time."""
AT_ONCE = 2
"""Operations of one kind on one session; more of them wait, without a thread."""
GITS_AT_ONCE, LONG_S = 4, 1.0
"""More gits than that only slow each other down. But an agent can make one last until its limit: one that is not done
after ``LONG_S`` goes on beside the others, and the next one has its place."""


async def run_in(threads: Executor, call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    return await asyncio.get_running_loop().run_in_executor(threads, partial(call, *args, **named))


class Pools:
    """What is too much for a pool's threads waits in its queue, in the order of its coming. Only clients, whose number
    is bounded, and the sessions' own jobs put something there."""

    def __init__(self) -> None:
        self._pools = {name: ThreadPoolExecutor(size, name) for name, size in SIZES.items()}
        self._turns: dict[tuple[str, str], asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(AT_ONCE))
        self._waiting: dict[tuple[str, str], int] = defaultdict(int)
        self._gits = asyncio.Semaphore(GITS_AT_ONCE)

    async def do(self, pool: str, call: Callable[..., T], *args: Any, **named: Any) -> T:
        if (payer := PAYER.get()) is not None:
            call = _paid(payer, call)
        if pool != GIT:
            return await run_in(self._pools[pool], call, *args, **named)
        async with self._gits:
            work = asyncio.create_task(run_in(self._pools[GIT], call, *args, **named))
            try:
                await asyncio.wait([work], timeout=LONG_S)
            except asyncio.CancelledError:
                work.cancel()
                raise
        return await work

    async def do_for(self, session: str, pool: str, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """As ``do``, in the session's turn."""
        key = session, pool
        self._waiting[key] += 1
        try:
            async with self._turns[key]:
                return await self.do(pool, call, *args, **named)
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key], self._turns[key]

    def close(self) -> None:
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)


def _paid(payer: Share, call: Callable[P, T]) -> Callable[P, T]:
    """The payer's share is the event loop's business: it is told what the thread has used."""
    loop = asyncio.get_running_loop()

    def paid(*args: P.args, **named: P.kwargs) -> T:
        began = thread_time()
        try:
            return call(*args, **named)
        finally:
            loop.call_soon_threadsafe(payer.use, thread_time() - began)

    return paid
