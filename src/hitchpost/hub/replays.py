"""Screens of the past, for players, in a thread of their own: to go back is to read a log from its beginning."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hitchpost.screen import Replay

MOST_KEPT = 4


@dataclass(frozen=True, slots=True)
class Shown:
    """``data`` shows the screen after ``offset`` bytes on a cleared terminal of this size; without its history."""

    offset: int
    cols: int
    rows: int
    data: bytes


class Replays:
    """The last few are kept where they are, so that a player that goes forward does not begin anew."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "replay")
        self._kept: dict[str, Replay] = {}

    async def screen(self, output_folder: str, offset: int) -> Shown:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._screen, output_folder, offset)

    def close(self) -> None:
        self._thread.submit(self._close_all)
        self._thread.shutdown(wait=True)

    def _screen(self, output_folder: str, offset: int) -> Shown:
        replay = self._kept.pop(output_folder, None)
        if replay is not None and replay.offset > offset:
            replay.close()
            replay = None
        if replay is None:
            replay = Replay(output_folder)
        self._kept[output_folder] = replay
        while len(self._kept) > MOST_KEPT:
            self._kept.pop(next(iter(self._kept))).close()
        screen = replay.advance(offset)
        return Shown(replay.offset, screen.cols, screen.rows, screen.snapshot(history=False))

    def _close_all(self) -> None:
        for replay in self._kept.values():
            replay.close()
        self._kept.clear()
