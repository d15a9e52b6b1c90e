"""The hub's side of a keeper's control socket."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any, cast

from hitchpost import wire
from hitchpost.errors import HitchpostError
from hitchpost.system.shortpath import ShortPath

TIMEOUT_S = 5.0
MOST_UNSENT_BYTES = 1 << 20

Heard = Callable[[bytes, bytes], None]
"""Hears a frame: its kind and its payload."""


class KeeperGone(HitchpostError):
    """Raised when nobody listens, or the connection ended."""

    http_status = 503
    code = "busy"


class KeeperBusy(KeeperGone):
    """Raised when a keeper does not take what is sent to it."""


class KeeperLink(asyncio.Protocol):
    """One connection. ``heard`` is called with each frame, before anything else in the event loop has its turn."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._inbox = bytearray()
        loop = asyncio.get_running_loop()
        self._greeted: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._lost: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def connect(
        cls, run_folder: str, heard: Heard, *, role: str = "control", cols: int = 0, rows: int = 0
    ) -> KeeperLink:
        """Raises ``KeeperGone``."""
        link: KeeperLink | None = None
        try:
            async with asyncio.timeout(TIMEOUT_S):
                loop = asyncio.get_running_loop()
                with await asyncio.to_thread(ShortPath, run_folder, wire.SOCKET) as path:
                    _, link = await loop.create_unix_connection(lambda: cls(heard), path)
                hello = {"v": wire.VERSION, "role": role, "cols": cols, "rows": rows, "read_only": False}
                link.send(wire.HELLO, json.dumps(hello).encode())
                await asyncio.wait((link._greeted, link._lost), return_when=asyncio.FIRST_COMPLETED)
                if link._greeted.done():
                    return link
        except (OSError, TimeoutError) as error:
            if link is not None:
                link.close()
            raise KeeperGone(str(error)) from None
        raise KeeperGone("the keeper closed the connection")

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
                self._heard(kind, payload)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._lost.done():
            self._lost.set_result(None)

    async def lost(self) -> None:
        """Returns when the connection has ended, whoever ended it."""
        await asyncio.shield(self._lost)

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """At once, where nothing waits to be sent: the event loop would first let everybody else have their turn.

        Raises ``KeeperBusy``, and sends nothing, when too much waits already: what is typed would fill the memory.
        """
        assert self._transport is not None
        data = wire.frame(kind, payload)
        if self._transport.get_write_buffer_size() > MOST_UNSENT_BYTES:
            raise KeeperBusy("the session does not take input now: its keeper does not read it")
        if not self._transport.get_write_buffer_size() and not self._transport.is_closing():
            try:
                data = data[os.write(self._fd, data) :]
            except OSError:
                pass  # the transport finds out what it is
        if data:
            self._transport.write(data)

    def follow(self, offset: int) -> None:
        """Ask to be told once the log reaches further than ``offset``."""
        self.send(wire.FOLLOW, offset.to_bytes(8, "big"))

    def resize(self, cols: int, rows: int) -> None:
        self.send(wire.RESIZE, cols.to_bytes(2, "big") + rows.to_bytes(2, "big"))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
