"""An agent's own server: answers and events, as HTTP has them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hitchpost.watcher.http import LocalServer, ServerSilent, is_ours

Answer = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


async def with_server(answer: Answer, ask: Callable[[LocalServer], Awaitable[Any]]) -> Any:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        await answer(head, writer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        return await ask(LocalServer(server.sockets[0].getsockname()[1], "me", "secret"))


def test_an_answer_comes_whole_or_in_chunks() -> None:
    async def answer(head: str, writer: asyncio.StreamWriter) -> None:
        assert "Authorization: Basic bWU6c2VjcmV0" in head
        if head.startswith("GET /whole "):
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{"a": 1}')
        elif head.startswith("GET /chunks "):
            writer.write(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\n5\r\n": 2}\r\n0\r\n\r\n')
        else:
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    async def ask(server: LocalServer) -> list[tuple[int, object]]:
        return [await server.ask("GET", path) for path in ("/whole", "/chunks", "/nothing")]

    assert asyncio.run(with_server(answer, ask)) == [(200, {"a": 1}), (200, {"a": 2}), (204, None)]


def test_events_come_one_by_one_however_they_are_cut() -> None:
    events = [{"type": "one"}, {"type": "two", "text": "zwei\n☃"}]

    async def answer(head: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        data = "".join(f": beat\n\ndata: {json.dumps(event)}\n\n" for event in events).encode()
        for byte in data:
            writer.write(b"1\r\n" + bytes([byte]) + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async def ask(server: LocalServer) -> list[dict[str, object]]:
        return [event async for event in server.events("/event")]

    assert asyncio.run(with_server(answer, ask)) == events


def test_a_refusal_and_a_broken_answer_are_told() -> None:
    async def answer(head: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n" if "/event" in head else b"nonsense")

    async def events(server: LocalServer) -> None:
        async for _ in server.events("/event"):
            raise AssertionError("there is none")

    with pytest.raises(ServerSilent, match="expected events from its server, but got status 401"):
        asyncio.run(with_server(answer, events))
    with pytest.raises(ServerSilent, match="its server did not answer GET /x"):
        asyncio.run(with_server(answer, lambda server: server.ask("GET", "/x")))


def test_nobody_gets_the_password_where_nobody_of_ours_listens() -> None:
    async def listening(server: LocalServer) -> int:
        assert is_ours(server.port)
        return server.port

    async def answer(head: str, writer: asyncio.StreamWriter) -> None:
        """Is not asked."""

    port = asyncio.run(with_server(answer, listening))
    assert not is_ours(port)
    with pytest.raises(ServerSilent, match="nobody listens"):
        asyncio.run(LocalServer(port, "me", "secret").ask("GET", "/"))
