"""Screens of runs: what a terminal shows after so many bytes of a log.

Each is drawn in a process of its own. The hub's part, to read the logs and to wait, is done by a few threads, in which
the screens take turns: neither a long log nor an emulator that hangs makes the others wait.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakValueDictionary

from hitchpost.terminal.emulators import Emulators
from hitchpost.terminal.screen import Losses, RunScreen

TURN_S = 0.02
AT_ONCE = 8
MOST_KEPT_BYTES = 512 << 20
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shown:
    """``data`` shows the screen after ``offset`` bytes on a cleared terminal of this size."""

    offset: int
    cols: int
    rows: int
    data: bytes


class Kept:
    """A screen, and the lock of the thread that works on it: its client may be gone before that is done."""

    def __init__(self, screen: RunScreen) -> None:
        self.screen = screen
        self.memory_bytes = 0
        self._lock = threading.Lock()

    def do(self, call: Callable[[RunScreen], T]) -> T:
        with self._lock:
            try:
                return call(self.screen)
            finally:
                self.memory_bytes = self.screen.memory_bytes()


class Screens:
    """The last ``most`` are kept where they are: to go on is cheap, to go back is to read a log from its beginning."""

    def __init__(self, name: str, most: int, emulators: Emulators, losses: Losses) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, name)
        self._most = most
        self._emulators, self._losses = emulators, losses
        self._kept: dict[str, Kept] = {}
        self._in_use: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def warm_up(self) -> None:
        """Load the emulator in the background: the first viewer would wait for it for most of a second."""
        self._threads.submit(self._emulators.prepare)

    async def shown(
        self, output_folder: str, offset: int, cols: int = 80, rows: int = 24, *, history: bool = True
    ) -> Shown:
        """The size is that of the run, where it is known."""

        def show(screen: RunScreen) -> Shown:
            return Shown(screen.offset, screen.cols, screen.rows, screen.snapshot(history=history))

        return await self._at(output_folder, offset, cols, rows, show)

    async def text(self, output_folder: str, offset: int) -> str:
        return await self._at(output_folder, offset, 80, 24, lambda screen: screen.text())

    def close(self) -> None:
        for kept in self._kept.values():
            self._threads.submit(kept.do, RunScreen.close)
        self._kept.clear()
        self._threads.shutdown(wait=True)

    async def _do(self, kept: Kept, call: Callable[[RunScreen], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, kept.do, call)

    async def _at(self, output_folder: str, offset: int, cols: int, rows: int, call: Callable[[RunScreen], T]) -> T:
        """What ``call`` says about the screen at ``offset``. While a log is read for one, others of it wait."""
        in_use = self._in_use.setdefault(output_folder, asyncio.Lock())
        async with in_use:
            kept = self._kept.pop(output_folder, None)
            if kept is not None and kept.screen.offset > offset:
                self._drop(kept)
                kept = None
            if kept is None:
                opened = self._threads.submit(RunScreen, output_folder, self._emulators, self._losses, cols, rows)
                try:
                    kept = Kept(await asyncio.shield(asyncio.wrap_future(opened)))
                except asyncio.CancelledError:
                    opened.add_done_callback(_close_opened)
                    raise
                self._threads.submit(self._emulators.prepare)
            try:
                steps = kept.screen.steps(offset)
                while await self._do(kept, lambda _: _go_on(steps)):
                    pass
                return await self._do(kept, call)
            finally:
                self._keep(output_folder, kept)

    def _keep(self, output_folder: str, kept: Kept) -> None:
        self._kept[output_folder] = kept
        while len(self._kept) > self._most or self._memory_bytes() > MOST_KEPT_BYTES:
            self._drop(self._kept.pop(next(iter(self._kept))))

    def _memory_bytes(self) -> int:
        return sum(kept.memory_bytes for kept in self._kept.values())

    def _drop(self, kept: Kept) -> None:
        self._threads.submit(kept.do, RunScreen.close)


def _close_opened(opened: Future[RunScreen]) -> None:
    if opened.exception() is None:
        opened.result().close()


def _go_on(steps: Iterator[None]) -> bool:
    """Take steps for one turn. False when there are no more."""
    ends = time.monotonic() + TURN_S
    return any(time.monotonic() > ends for _ in steps)
