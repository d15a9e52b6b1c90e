"""An agent's own HTTP server on loopback: requests, and its stream of events. What it sends has bounds."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator
from typing import Any

from hitchpost.errors import HitchpostError

ANSWER_S = 10.0
MOST_HEAD_BYTES = 1 << 16
MOST_BYTES = 16 << 20
"""Of an answer, and of one event. A longer event is left out."""
LISTENS = "0A"
BROKEN = (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)
"""What a connection may end with, or an answer that is no HTTP or no JSON."""


class ServerSilent(HitchpostError):
    """Raised when an agent's own server does not answer, or not as expected. ``sent``: it may have the request."""

    def __init__(self, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent


class LocalServer:
    """``silent_s``: a stream of events that says nothing for so long is over."""

    def __init__(self, port: int, user: str, password: str, *, silent_s: float = 45.0) -> None:
        self.port, self.silent_s = port, silent_s
        self._key = base64.b64encode(f"{user}:{password}".encode()).decode()

    async def ask(self, method: str, path: str, body: Any = None, *, within_s: float = ANSWER_S) -> tuple[int, Any]:
        """The status and the JSON of the answer. Raises ``ServerSilent``."""
        try:
            async with asyncio.timeout(within_s):
                status, head, reader, writer = await self._open(method, path, body)
                try:
                    data = b"".join([piece async for piece in _body(reader, head)])
                finally:
                    writer.close()
            return status, json.loads(data) if data else None
        except BROKEN as error:
            why = f"its server did not answer {method} {path}: {str(error) or 'time is up'}"
            raise ServerSilent(why, sent=not isinstance(error, ConnectionRefusedError)) from None

    async def events(self, path: str) -> AsyncIterator[dict[str, Any]]:
        """Events as they come, until the server ends the stream. Raises ``ServerSilent``."""
        try:
            async with asyncio.timeout(ANSWER_S):
                status, head, reader, writer = await self._open("GET", path, None)
            try:
                if status != 200:
                    raise ServerSilent(f"expected events from its server, but got status {status}")
                async for event in self._events(reader, head):
                    yield event
            finally:
                writer.close()
        except BROKEN as error:
            raise ServerSilent(f"its server ended the events: {str(error) or 'it is silent'}") from None

    async def _events(self, reader: asyncio.StreamReader, head: dict[str, str]) -> AsyncIterator[dict[str, Any]]:
        inbox = bytearray()
        pieces = _body(reader, head, bound=False)
        while True:
            async with asyncio.timeout(self.silent_s):
                piece = await anext(pieces, b"")
            if not piece:
                return
            inbox += piece.replace(b"\r\n", b"\n")
            while (end := inbox.find(b"\n\n")) >= 0:
                event = bytes(inbox[:end])
                del inbox[: end + 2]
                text = b"\n".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))
                told = json.loads(text) if text else None
                if isinstance(told, dict):
                    yield told
            if len(inbox) > MOST_BYTES:
                inbox.clear()

    async def _open(
        self, method: str, path: str, body: Any
    ) -> tuple[int, dict[str, str], asyncio.StreamReader, asyncio.StreamWriter]:
        if not is_ours(self.port):
            raise ConnectionRefusedError("nobody listens")
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=MOST_HEAD_BYTES)
        try:
            data = b"" if body is None else json.dumps(body).encode()
            writer.write(
                f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Basic {self._key}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode()
                + data
            )
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            status = int(lines[0].split(" ")[1])
            named = [line.partition(":") for line in lines[1:] if line]
            return status, {name.lower(): text.strip() for name, _, text in named}, reader, writer
        except BaseException:
            writer.close()
            raise


async def _body(reader: asyncio.StreamReader, head: dict[str, str], *, bound: bool = True) -> AsyncIterator[bytes]:
    """The body in pieces. Raises ``ValueError`` when a bounded one is too long."""
    size = 0
    if head.get("transfer-encoding", "").lower() == "chunked":
        while (left := int((await reader.readline()).partition(b";")[0] or b"0", 16)) > 0:
            if left > MOST_BYTES or (bound and (size := size + left) > MOST_BYTES):
                raise ValueError(f"its answer is longer than {MOST_BYTES} bytes")
            yield await reader.readexactly(left)
            await reader.readline()
        return
    left = int(head.get("content-length", -1 if head.get("connection", "").lower() == "close" else 0))
    while left and (piece := await reader.read(65536 if left < 0 else min(left, 65536))):
        left -= len(piece) if left > 0 else 0
        if bound and (size := size + len(piece)) > MOST_BYTES:
            raise ValueError(f"its answer is longer than {MOST_BYTES} bytes")
        yield piece


def is_ours(port: int) -> bool:
    """Whether a process of this user listens at the port. Others' get no password."""
    try:
        with open("/proc/net/tcp", encoding="ascii") as file:
            rows = [line.split() for line in file]
    except OSError:
        return False
    here = f"0100007F:{port:04X}"
    return any(row[1] == here and row[3] == LISTENS and row[7] == str(os.getuid()) for row in rows[1:])
