"""The watcher's connection to its keeper."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from hitchpost import wire
from hitchpost.errors import HitchpostError
from hitchpost.system.shortpath import ShortPath

TYPED_TIMEOUT_S = 15.0


class NotTyped(HitchpostError):
    """Raised when the keeper did not type a text, or the agent did not read it."""


class OthersKeys(NotTyped):
    """Raised when nothing was typed, because the screen may not show yet what somebody has just typed."""

    def __init__(self, why: str, wait_s: float) -> None:
        super().__init__(why)
        self.wait_s = wait_s


class KeeperLink:
    """Frames in both directions. When the keeper is gone, ``events`` ends."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._inbox = bytearray()
        self._next = 1
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}

    @classmethod
    async def connect(cls, run_folder: str) -> KeeperLink:
        with ShortPath(run_folder, wire.SOCKET) as path:
            reader, writer = await asyncio.open_unix_connection(path)
        writer.write(wire.hello(wire.WATCHER, 0, 0))
        return cls(reader, writer)

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """What the keeper says, oldest first. A POKE is ``{"event": "output", "end": offset}``."""
        while data := await self._reader.read(65536):
            self._inbox += data
            for kind, payload in wire.take_frames(self._inbox):
                if kind == wire.POKE:
                    yield {"event": "output", "end": int.from_bytes(payload[:8], "big")}
                elif kind == wire.WELCOME:
                    yield {"event": "welcome", **json.loads(payload)}
                elif kind == wire.EVENT:
                    yield json.loads(payload)
                elif kind == wire.REPLY:
                    reply = json.loads(payload)
                    if (waiting := self._replies.pop(reply.get("id"), None)) is not None and not waiting.done():
                        waiting.set_result(reply)

    def tell(self, op: str, **fields: object) -> None:
        """Say something that is not answered."""
        self._writer.write(wire.request(0, op, **fields))

    def follow(self, offset: int) -> None:
        self._writer.write(wire.follow(offset))

    async def type(self, text: str, *, enter: bool = True, alone: bool = False) -> int:
        """Type a text and press Enter; ``alone`` as for ``press``. The log's offset before it. Raises ``NotTyped``."""
        return await self._typed("type", text=text, enter=enter, alone=alone)

    async def press(self, keys: str, *, alone: bool = False) -> int:
        """Press keys, just as they are; ``alone``: only if nobody else's are on their way. Raises ``NotTyped``."""
        return await self._typed("press", keys=keys, alone=alone)

    async def _typed(self, op: str, **fields: object) -> int:
        number, self._next = self._next, self._next + 1
        waiting = self._replies[number] = asyncio.get_running_loop().create_future()
        self._writer.write(wire.request(number, op, **fields))
        try:
            async with asyncio.timeout(TYPED_TIMEOUT_S):
                reply = await waiting
        except TimeoutError:
            raise NotTyped("the agent did not read all of the text; the rest is typed when it reads again") from None
        finally:
            self._replies.pop(number, None)
        if "wait_s" in reply:
            raise OthersKeys(str(reply.get("why")), float(reply["wait_s"]))
        if reply.get("ok") is not True:
            raise NotTyped(str(reply.get("why")))
        return int(reply["offset"])

    def close(self) -> None:
        self._writer.close()
