"""Screens of runs: what a terminal shows after so many bytes of a log.

Each set of them has a thread of its own, in which they take turns: a long log does not make the others wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakValueDictionary

from hitchpost.screen import Replay, open_screen

TURN_S = 0.02
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shown:
    """``data`` shows the screen after ``offset`` bytes on a cleared terminal of this size."""

    offset: int
    cols: int
    rows: int
    data: bytes


class Screens:
    """The last ``most`` are kept where they are: to go on is cheap, to go back is to read a log from its beginning."""

    def __init__(self, name: str, most: int) -> None:
        self._thread = ThreadPoolExecutor(1, name)
        self._most = most
        self._kept: dict[str, Replay] = {}
        self._in_use: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def warm_up(self) -> None:
        """Load the emulator in the background: the first viewer would wait for it for most of a second."""
        self._thread.submit(_warm_up)

    async def shown(
        self, output_folder: str, offset: int, cols: int = 80, rows: int = 24, *, history: bool = True
    ) -> Shown:
        """The size is that of the run, where it is known."""

        def show(replay: Replay) -> Shown:
            screen = replay.screen
            return Shown(replay.offset, screen.cols, screen.rows, screen.snapshot(history=history))

        return await self._at(output_folder, offset, cols, rows, show)

    async def text(self, output_folder: str, offset: int) -> str:
        return await self._at(output_folder, offset, 80, 24, lambda replay: replay.screen.text())

    def close(self) -> None:
        self._thread.submit(self._close_all)
        self._thread.shutdown(wait=True)

    async def _do(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def _at(self, output_folder: str, offset: int, cols: int, rows: int, call: Callable[[Replay], T]) -> T:
        """What ``call`` says about the screen at ``offset``. While a log is read for one, others of it wait."""
        in_use = self._in_use.setdefault(output_folder, asyncio.Lock())
        async with in_use:
            replay = await self._do(lambda: self._take(output_folder, offset, cols, rows))
            try:
                steps = replay.steps(offset)
                while await self._do(lambda: _go_on(steps)):
                    pass
                return await self._do(lambda: call(replay))
            finally:
                self._thread.submit(self._keep, output_folder, replay)

    def _take(self, output_folder: str, offset: int, cols: int, rows: int) -> Replay:
        replay = self._kept.pop(output_folder, None)
        if replay is not None and replay.offset > offset:
            replay.close()
            replay = None
        return replay or Replay(output_folder, cols, rows)

    def _keep(self, output_folder: str, replay: Replay) -> None:
        self._kept[output_folder] = replay
        while len(self._kept) > self._most:
            self._kept.pop(next(iter(self._kept))).close()

    def _close_all(self) -> None:
        for replay in self._kept.values():
            replay.close()
        self._kept.clear()


def _go_on(steps: Iterator[None]) -> bool:
    """Take steps for one turn. False when there are no more."""
    ends = time.monotonic() + TURN_S
    return any(time.monotonic() > ends for _ in steps)


def _warm_up() -> None:
    screen = open_screen(80, 24)
    screen.feed(b" ")
    screen.snapshot()
    screen.close()
