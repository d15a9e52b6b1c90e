"""Screens of runs: what a terminal shows after so many bytes of a log. Each set of them has a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from hitchpost.screen import Replay, open_screen

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

        return await self._do(lambda: show(self._at(output_folder, offset, cols, rows)))

    async def text(self, output_folder: str, offset: int) -> str:
        return await self._do(lambda: self._at(output_folder, offset, 80, 24).screen.text())

    def close(self) -> None:
        self._thread.submit(self._close_all)
        self._thread.shutdown(wait=True)

    async def _do(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def _at(self, output_folder: str, offset: int, cols: int, rows: int) -> Replay:
        replay = self._kept.pop(output_folder, None)
        if replay is not None and replay.offset > offset:
            replay.close()
            replay = None
        if replay is None:
            replay = Replay(output_folder, cols, rows)
        self._kept[output_folder] = replay
        while len(self._kept) > self._most:
            self._kept.pop(next(iter(self._kept))).close()
        replay.advance(offset)
        return replay

    def _close_all(self) -> None:
        for replay in self._kept.values():
            replay.close()
        self._kept.clear()


def _warm_up() -> None:
    screen = open_screen(80, 24)
    screen.feed(b" ")
    screen.snapshot()
    screen.close()
