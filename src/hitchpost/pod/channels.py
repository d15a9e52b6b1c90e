"""Clients of the keeper, in the name of hubs: each client that a hub has is a client here, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from hitchpost import wire
from hitchpost.system.shortpath import ShortPath

ACK_BYTES = 32 * 1024
"""What the keeper has taken is told in steps of so many bytes."""

OnFrame = Callable[[bytes, bytes], None]


class KeeperClient(asyncio.Protocol):
    """A connection to the keeper of a run. What is written before it is there goes first when it is.

    ``on_taken`` is called with how many bytes more the keeper's socket has taken.
    """

    def __init__(
        self,
        run_folder: str,
        hello: bytes,
        on_frame: OnFrame,
        on_lost: Callable[[], None],
        on_taken: Callable[[int], None] = lambda size: None,
    ) -> None:
        self._run_folder, self._hello = run_folder, hello
        self._on_frame, self._on_lost, self._on_taken = on_frame, on_lost, on_taken
        self._transport: asyncio.Transport | None = None
        self._inbox = bytearray()
        self._before: list[bytes] = []
        self._has_room = True
        self._untold = 0
        self.over = False

    async def connect(self) -> None:
        """Tells ``on_lost`` when nobody is there."""
        try:
            with ShortPath(self._run_folder, wire.SOCKET) as path:
                await asyncio.get_running_loop().create_unix_connection(lambda: self, path)
        except OSError:
            self._lose()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.over:
            self._transport.close()
            return
        self._transport.write(wire.frame(wire.HELLO, self._hello))
        waiting, self._before = self._before, []
        for frame in waiting:
            self.write(frame)

    def data_received(self, data: bytes) -> None:
        self._inbox += data
        for kind, payload in wire.take_frames(self._inbox):
            self._on_frame(kind, payload)

    def connection_lost(self, error: Exception | None) -> None:
        self._lose()

    def _lose(self) -> None:
        if not self.over:
            self.over = True
            self._on_lost()

    def write(self, frame: bytes) -> None:
        if self._transport is None:
            self._before.append(frame)
            return
        self._transport.write(frame)
        self._untold += len(frame)
        if self._has_room and self._untold >= ACK_BYTES:
            self._tell()

    def pause_writing(self) -> None:
        self._has_room = False

    def resume_writing(self) -> None:
        self._has_room = True
        self._tell()

    def _tell(self) -> None:
        told, self._untold = self._untold, 0
        self._on_taken(told)

    def hold(self, is_held: bool) -> None:
        """Read no more for now, or again: the keeper hangs up on who does not read for long."""
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.pause_reading if is_held else self._transport.resume_reading)()

    def close(self) -> None:
        self.over = True
        if self._transport is not None:
            self._transport.close()
