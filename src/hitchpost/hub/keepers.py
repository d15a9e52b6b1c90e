"""The hub's side of a keeper's control socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from hitchpost import wire
from hitchpost.errors import HitchpostError
from hitchpost.shortpath import ShortPath

TIMEOUT_S = 5.0


class KeeperGone(HitchpostError):
    """Raised when nobody listens, or the connection ended."""

    http_status = 503
    code = "busy"


class KeeperLink:
    """One connection; frames come from ``frames``."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._inbox = bytearray()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._next_id = 1
        self.welcome: dict[str, Any] = {}

    @classmethod
    async def connect(cls, run_folder: str, *, role: str = "control", cols: int = 0, rows: int = 0) -> KeeperLink:
        """Raises ``KeeperGone``."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                with await asyncio.to_thread(ShortPath, run_folder, wire.SOCKET) as path:
                    link = cls(*await asyncio.open_unix_connection(path))
                hello = {"v": wire.VERSION, "role": role, "cols": cols, "rows": rows, "read_only": False}
                link.send(wire.HELLO, json.dumps(hello).encode())
                async for kind, payload in link.frames():
                    if kind == wire.WELCOME:
                        link.welcome = json.loads(payload)
                        return link
        except (OSError, TimeoutError) as error:
            raise KeeperGone(str(error)) from None
        raise KeeperGone("the keeper closed the connection")

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        self._writer.write(wire.frame(kind, payload))

    def follow(self, offset: int) -> None:
        """Ask to be told once the log reaches further than ``offset``."""
        self.send(wire.FOLLOW, offset.to_bytes(8, "big"))

    def resize(self, cols: int, rows: int) -> None:
        self.send(wire.RESIZE, cols.to_bytes(2, "big") + rows.to_bytes(2, "big"))

    async def frames(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """Everything that the keeper says, until it closes the connection."""
        while True:
            frames = wire.take_frames(self._inbox)
            for frame in frames:
                yield frame
            if frames:
                continue
            try:
                data = await self._reader.read(65536)
            except OSError:
                return
            if not data:
                return
            self._inbox += data

    def close(self) -> None:
        self._writer.close()
