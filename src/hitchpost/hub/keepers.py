"""The client side of a keeper's control socket for an event loop. Its errors are those of ``runtimes.link``."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any, cast

from hitchpost import wire
from hitchpost.runtimes.link import TIMEOUT_S, NoKeeper, Silent
from hitchpost.system.shortpath import ShortPath

MOST_UNSENT_BYTES = 1 << 20

OnFrame = Callable[[bytes, bytes], None]
"""Takes a frame: its kind and its payload."""


class KeeperLink(asyncio.Protocol):
    """A connection. ``on_frame`` is called with each frame, before anything else in the event loop has its turn.

    What a keeper does not read waits here, up to ``MOST_UNSENT_BYTES`` and one frame; then ``send`` refuses more.
    """

    _transport: asyncio.Transport
    _fd: int

    def __init__(self, on_frame: OnFrame) -> None:
        self._on_frame = on_frame
        self._inbox = bytearray()
        loop = asyncio.get_running_loop()
        self._greeted: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._lost: asyncio.Future[None] = loop.create_future()

    @classmethod
    async def connect(
        cls, run_folder: str, on_frame: OnFrame, *, role: str = "control", cols: int = 0, rows: int = 0
    ) -> KeeperLink:
        """Raises ``NoKeeper`` or ``Silent``."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                with await asyncio.to_thread(ShortPath, run_folder, wire.SOCKET) as path:
                    loop = asyncio.get_running_loop()
                    _, link = await loop.create_unix_connection(lambda: cls(on_frame), path)
                try:
                    await link._greet(wire.hello(role, cols, rows))
                except BaseException:
                    link.close()
                    raise
        except TimeoutError:
            raise Silent("the keeper does not answer in time") from None
        except OSError as error:
            raise NoKeeper(str(error)) from None
        return link

    async def _greet(self, hello: bytes) -> None:
        self.send_frame(hello)
        await asyncio.wait((self._greeted, self._lost), return_when=asyncio.FIRST_COMPLETED)
        if not self._greeted.done():
            raise NoKeeper("the keeper closed the connection")

    @property
    def welcome(self) -> dict[str, Any]:
        return self._greeted.result()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._fd = transport.get_extra_info("socket").fileno()

    def data_received(self, data: bytes) -> None:
        self._inbox += data
        for kind, payload in wire.take_frames(self._inbox):
            if kind == wire.WELCOME:
                self._greeted.set_result(json.loads(payload))
            else:
                self._on_frame(kind, payload)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._lost.done():
            self._lost.set_result(None)

    async def lost(self) -> None:
        """Returns when the connection has ended, whoever ended it."""
        await asyncio.shield(self._lost)

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        self.send_frame(wire.frame(kind, payload))

    def send_frame(self, frame: bytes) -> None:
        """Send at once where nothing waits to be sent: the event loop would let everybody else go first.

        Raises ``Silent``, and sends nothing, when too much waits already.
        """
        if self._transport.get_write_buffer_size() > MOST_UNSENT_BYTES:
            raise Silent("the session does not take input now: its keeper does not read it")
        if not self._transport.get_write_buffer_size() and not self._transport.is_closing():
            try:
                frame = frame[os.write(self._fd, frame) :]
            except OSError:
                pass  # the transport finds out what it is
        if frame:
            self._transport.write(frame)

    def follow(self, offset: int) -> None:
        """Ask for one POKE as soon as the log reaches further than ``offset``."""
        self.send_frame(wire.follow(offset))

    def resize(self, cols: int, rows: int) -> None:
        self.send_frame(wire.resize(cols, rows))

    def close(self) -> None:
        self._transport.close()
