"""JSON-RPC on a pipe, with the test at the other end."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable
from typing import Any

import pytest

from hitchpost.acp.pipe import FAILED, UNKNOWN_METHOD, Json, Pipe

SOON_S = 30.0


async def refused() -> Json:
    raise TypeError("'int' object is not iterable")


async def well() -> Json:
    return {"well": True}


def answer_to(found: Awaitable[Json] | None) -> Json:
    """What a program gets to a request that is heard so."""

    async def scene() -> Json:
        ours, theirs = socket.socketpair()
        pipe = Pipe(*await asyncio.open_connection(sock=ours), lambda method, params: found)
        reader, writer = await asyncio.open_connection(sock=theirs)
        listening = asyncio.create_task(pipe.listen())
        writer.write(b'{"jsonrpc": "2.0", "id": 7, "method": "ask"}\n')
        async with asyncio.timeout(SOON_S):
            answer: Json = json.loads(await reader.readline())
        writer.close()
        await listening
        pipe._writer.close()
        return answer

    return asyncio.run(scene())


@pytest.mark.parametrize(("hear", "code"), [(refused, FAILED), (None, UNKNOWN_METHOD)])
def test_each_request_is_answered(hear: Any, code: int) -> None:
    answer = answer_to(None if hear is None else hear())
    assert (answer["id"], answer["error"]["code"]) == (7, code)


def test_what_a_request_is_answered_with_arrives() -> None:
    assert answer_to(well()) == {"jsonrpc": "2.0", "id": 7, "result": {"well": True}}
