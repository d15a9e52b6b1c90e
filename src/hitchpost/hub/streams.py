"""Viewers of a session's terminal. Each reads the log at its own offset, so a slow viewer slows nobody else.

Nothing is queued for a viewer: one that falls too far behind gets the screen as it is now instead of what it missed.
All viewers of a session type through one connection to the keeper, which has the size of the viewer that typed last.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress

from hitchpost import wire
from hitchpost.hub.keepers import KeeperLink
from hitchpost.hub.screens import Screens
from hitchpost.hub.tasks import Tasks
from hitchpost.hub.watching import Watch
from hitchpost.runtimes.link import NotReached
from hitchpost.terminal import output

SNAPSHOT, OUTPUT, GAP = 0, 1, 2
TURN_BYTES = 64 * 1024
MOST_BEHIND_BYTES = 16 << 20
LOOK_EVERY_BYTES = 1 << 20
LATE_S, LATE_LOOK_S = 3.0, 0.02
"""A log that comes from elsewhere may be so much later here than at another hub."""
NO_DESCRIPTOR_PAUSE_S = 0.1
PICTURE_EVERY_S = 0.25

Send = Callable[[int, int, bytes], Awaitable[None]]
"""Sends a frame: its kind, the offset of its first byte, and its bytes."""


class Keys:
    """What the viewers of a run type, through one connection: the first viewer opens it, the last one closes it."""

    def __init__(self, run_folder: str) -> None:
        self.run_folder = run_folder
        self.viewers: list[Viewer] = []
        self._link: KeeperLink | None = None
        self._tasks = Tasks("keys")
        self._sent_size: tuple[Viewer, int, int] | None = None
        """The size that the keeper has, and whose it is: while the same viewer types, only keys are sent."""
        self._lock = asyncio.Lock()

    @property
    def is_connected(self) -> bool:
        return self._link is not None and not self._lock.locked()

    async def join(self, viewer: Viewer) -> None:
        """The last of the viewers has the size. Who joins comes first, and moves to the end when it types.

        A keeper that cannot be reached yet is tried again by the viewer's next key or size.
        """
        self.viewers.insert(0, viewer)
        if len(self.viewers) == 1:
            with suppress(NotReached):
                await self._own(viewer)

    async def leave(self, viewer: Viewer) -> None:
        self.viewers.remove(viewer)
        if self.viewers:
            await self._own(self.viewers[-1])
        else:
            self.close()

    async def type(self, viewer: Viewer, data: bytes) -> None:
        """Raises ``NotReached`` when the run is over."""
        link = self._link
        if link is None or self._sent_size != (viewer, viewer.cols, viewer.rows) or self._lock.locked():
            link = await self._own(viewer)
        link.send(wire.INPUT, data)

    def answer(self, viewer: Viewer, data: bytes) -> None:
        """What a viewer's terminal answers to the program: dropped unless the size is that viewer's."""
        if self._link is not None and self.viewers and self.viewers[-1] is viewer:
            try:
                self._link.send(wire.ANSWER, data)
            except NotReached:
                pass

    async def resize(self, viewer: Viewer) -> None:
        if self.viewers and self.viewers[-1] is viewer:
            await self._own(viewer)

    async def _own(self, viewer: Viewer) -> KeeperLink:
        async with self._lock:
            if self.viewers[-1] is not viewer:
                self.viewers.remove(viewer)
                self.viewers.append(viewer)
            if self._link is None:
                cols, rows = viewer.cols, viewer.rows
                self._link = await KeeperLink.connect(self.run_folder, _ignore, role="attach", cols=cols, rows=rows)
                self._tasks.start(self._forget(self._link))
            self._link.resize(viewer.cols, viewer.rows)
            self._sent_size = (viewer, viewer.cols, viewer.rows)
            return self._link

    async def _forget(self, link: KeeperLink) -> None:
        await link.lost()
        if self._link is link:
            self._link = self._sent_size = None

    def close(self) -> None:
        self._tasks.cancel()
        if self._link is not None:
            self._link.close()
        self._link = self._sent_size = None


def _ignore(kind: bytes, payload: bytes) -> None:
    """The run's watch gets the same frames."""


NextWatch = Callable[[], Awaitable[Watch | None]]


class Viewer:
    """A client's view of a run. A ``picture`` has no history, and is sent what is new a few times a second.

    ``next_watch`` is there for a run elsewhere, which may live although nobody here watches it yet, or any more, and
    whose log may be further at another hub: it waits for the next watch; None: the run is over.
    """

    def __init__(
        self,
        watch: Watch | None,
        run_folder: str,
        screens: Screens,
        cols: int,
        rows: int,
        *,
        picture: bool = False,
        next_watch: NextWatch | None = None,
    ) -> None:
        self.watch, self.screens, self.picture, self.next_watch = watch, screens, picture, next_watch
        self.folder = os.path.join(run_folder, wire.OUTPUT)
        self.cols, self.rows = cols, rows
        self._reading: asyncio.Future[output.Chunk] | None = None
        self._sent = -1
        self._moved = asyncio.Event()

    async def end(self) -> int:
        """Of the log itself: the watch knows it only as far as somebody waits for more."""
        try:
            return (await self._bounds())[1]
        except OSError:
            return max(self._sent, self.watch.end if self.watch is not None else 0)

    async def _bounds(self) -> tuple[int, int]:
        return await asyncio.to_thread(output.bounds, self.folder)

    async def caught_up(self, timeout_s: float) -> None:
        """Wait until the client was sent all that the log has now; a slow one is waited for only so long."""
        try:
            async with asyncio.timeout(timeout_s):
                end = await self.end()
                while self._sent < end:
                    await self._moved.wait()
        except TimeoutError:
            return

    async def show(self, send_frame: Send, offset: int | None = None) -> None:
        """Send the screen, then every byte that follows, until the run is over. With ``offset``: all from there on."""
        reader = output.Reader(self.folder)

        async def send(kind: int, offset: int, data: bytes) -> None:
            await send_frame(kind, offset, data)
            self._sent = offset + len(data) if kind == OUTPUT else offset
            self._moved.set()
            self._moved = asyncio.Event()

        try:
            first, end = await self._bounds()
            if offset is not None and offset > end and self.next_watch is not None:
                first, end = await self._reached(offset)
            if offset is None or not first <= offset <= end:
                offset = await self._screen(send)
            self._sent = reader.offset = look_at = offset
            while True:
                if reader.offset >= look_at:
                    if await self.end() - reader.offset > MOST_BEHIND_BYTES:
                        reader.offset = await self._screen(send)
                    look_at = reader.offset + LOOK_EVERY_BYTES
                reported_end = self.watch.end if self.watch is not None else 0
                chunk = reader.read_at_once(TURN_BYTES)
                if chunk is None or not (chunk.data or self._is_all(reported_end, reader.offset)):
                    chunk = await self._read(reader)
                if chunk.lost:
                    # what follows a gap means nothing without what came before it
                    await send(GAP, chunk.offset - chunk.lost, chunk.lost.to_bytes(8, "big"))
                    reader.offset = look_at = await self._screen(send)
                elif chunk.data:
                    await send(OUTPUT, chunk.offset, chunk.data)
                    # now it goes out, and others have their turn
                    await asyncio.sleep(PICTURE_EVERY_S if self.picture and len(chunk.data) < TURN_BYTES else 0)
                elif not await self._more(max(reader.offset, reported_end)):
                    return
        finally:
            if self._reading is None or self._reading.done():
                reader.close()
            else:
                self._reading.add_done_callback(lambda _: reader.close())

    def _is_all(self, reported_end: int, offset: int) -> bool:
        """Whether the log ends at ``offset``, as the keeper reports it. It reports as soon as that changes."""
        return reported_end <= offset and self.watch is not None and not self.watch.over

    async def _read(self, reader: output.Reader) -> output.Chunk:
        """In a thread: it may have to look for the next segment, or wait for the disk, or for a descriptor."""
        while True:
            self._reading = asyncio.get_running_loop().run_in_executor(None, reader.read, TURN_BYTES)
            try:
                return await asyncio.shield(self._reading)
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE):
                    raise
            await asyncio.sleep(NO_DESCRIPTOR_PAUSE_S)

    async def _more(self, offset: int) -> bool:
        """Wait for output beyond ``offset``; False when there will be none."""
        while True:
            if self.watch is not None and await self.watch.beyond(offset):
                return True
            if await self.end() > offset:
                return True
            watch = None if self.next_watch is None else await self.next_watch()
            if watch is None:
                return await self.end() > offset
            self.watch = watch

    async def _reached(self, offset: int) -> tuple[int, int]:
        """The bounds of the log, once it reaches as far as a client has it from another hub; or when it does not."""
        first, end = await self._bounds()
        try:
            async with asyncio.timeout(LATE_S):
                while end < offset:
                    await asyncio.sleep(LATE_LOOK_S)
                    first, end = await self._bounds()
        except TimeoutError:
            return first, end
        return first, end

    async def _screen(self, send: Send) -> int:
        _, end = await self._bounds()
        shown = await self.screens.shown(self.folder, end, self.cols, self.rows, history=not self.picture)
        self.shown_size = (shown.cols, shown.rows)
        await send(SNAPSHOT, shown.offset, shown.data)
        return shown.offset
