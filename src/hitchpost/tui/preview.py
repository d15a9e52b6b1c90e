"""The screen of the session that is chosen, as it is now. Its keeper tells when there is more."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from rich.text import Text

from hitchpost import wire
from hitchpost.hub.keepers import KeeperLink
from hitchpost.ops.views.session_types import Session
from hitchpost.runtimes.link import NotReached
from hitchpost.store.home import run_folder, session_folder
from hitchpost.terminal import output
from hitchpost.terminal.emulators import Emulators
from hitchpost.terminal.screen import Losses, RunScreen

T = TypeVar("T")
DRAW_EVERY_S = 0.1
"""A flood is drawn so often."""
Show = Callable[[Text], None]


class Preview:
    """One thread draws: a screen must not be used by two."""

    def __init__(self, home: str, show: Show) -> None:
        self.home, self.show = home, show
        self._emulators, self._losses = Emulators(), Losses()
        self._thread = ThreadPoolExecutor(1, "preview")

    async def follow(self, session: Session) -> None:
        """Until it is cancelled, or the run has ended: then its last screen stays."""
        if session["run"] == 0 or session["state"] == "created":
            self.show(Text("It has not been started yet.", "dim"))
            return
        where = run_folder(session_folder(self.home, session["id"]), session["run"])
        folder = os.path.join(where, wire.OUTPUT)
        moved, screens = asyncio.Event(), list[RunScreen]()
        link: KeeperLink | None = None
        over: asyncio.Future[None] | None = None
        try:
            screen = await self._draw(self._opened, folder, screens)
            try:
                link = await KeeperLink.connect(where, lambda kind, payload: moved.set() if kind == wire.POKE else None)
                over = asyncio.ensure_future(link.lost())
                over.add_done_callback(lambda _: moved.set())
            except NotReached:
                pass  # it has ended
            while True:
                moved.clear()
                is_last = over is None or over.done()
                end = await self._draw(_advanced, screen, folder)
                self.show(await self._draw(_picture, screen))
                if link is None or is_last:
                    return
                link.follow(end)
                await moved.wait()
                await asyncio.sleep(DRAW_EVERY_S)
        finally:
            if over is not None:
                over.cancel()
            if link is not None:
                link.close()
            self._thread.submit(_close, screens)

    def _opened(self, folder: str, screens: list[RunScreen]) -> RunScreen:
        """It is among ``screens``, too, for whoever has not waited until it was there."""
        screens.append(RunScreen(folder, self._emulators, self._losses))
        return screens[0]

    async def _draw(self, call: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *args)

    def close(self) -> None:
        self._thread.submit(self._emulators.close)
        self._thread.shutdown(wait=True)


def _close(screens: list[RunScreen]) -> None:
    for screen in screens:
        screen.close()


def _advanced(screen: RunScreen, folder: str) -> int:
    end = output.bounds(folder)[1]
    screen.advance(end)
    return end


def _picture(screen: RunScreen) -> Text:
    """The screen at its own size, in its colours, without the empty lines at its end."""
    height = len(screen.text().rstrip().split("\n"))
    lines = screen.lines(0, 0, screen.cols, height) if screen.can_paint else [screen.text().encode()]
    picture = Text(no_wrap=True, overflow="crop", end="")
    for number, line in enumerate(lines):
        picture.append("\n" if number else "")
        picture.append_text(Text.from_ansi(line.decode("utf-8", "replace")))
    return picture
