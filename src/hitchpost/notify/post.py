"""One HTTP POST, within limits of time and size. Redirects are not followed: the owner named one place, and no other.

By h11, which is here for the server already: its client half needs no thread, and a limit of time ends it anywhere.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import SplitResult

import h11

from hitchpost.errors import HitchpostError
from hitchpost.notify.channel import Undelivered
from hitchpost.settings import address

CONNECT_S, WHOLE_S = 5.0, 10.0
MOST_ANSWER_BYTES = 64 << 10
PORTS = {"http": 80, "https": 443}
NOW_BUSY = (429, 500, 502, 503, 504)


class BadUrl(HitchpostError):
    """Raised for what is no address to send anything to. The message does not repeat it: it may hold a secret."""

    http_status = 422
    code = "bad_input"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    text: str


def parsed(url: str) -> SplitResult:
    """Raises ``BadUrl``."""
    parts = address(url)
    if parts is None:
        raise BadUrl("expected an http:// or https:// address")
    return parts


def origin(url: str) -> str:
    """What may be shown of an address."""
    parts = parsed(url)
    return f"{parts.scheme}://{parts.netloc}"


async def post(url: str, headers: Mapping[str, str], body: bytes) -> Answer:
    """The answer, whatever its status. Raises ``Undelivered``."""
    parts = parsed(url)
    began = False
    try:
        async with asyncio.timeout(WHOLE_S):
            reader, writer = await _connect(parts)
            try:
                began = True
                return await _exchange(parts, headers, body, reader, writer)
            finally:
                writer.close()
    except TimeoutError:
        raise Undelivered(f"no answer within {WHOLE_S:g} s", again=not began) from None
    except ssl.SSLError as error:
        raise Undelivered(f"TLS failed: {error.reason or 'no reason given'}") from None
    except OSError as error:
        raise Undelivered(_why(error), again=not began) from None
    except UnicodeError:  # a part of its name is too long
        raise Undelivered("its host is not known") from None
    except h11.ProtocolError:
        raise Undelivered("what answers does not speak HTTP") from None


def checked(answer: Answer, *, again: bool = False) -> str:
    """What a good answer means. Raises ``Undelivered`` for any other; ``again``: a busy server is tried again."""
    if 200 <= answer.status < 300:
        return f"HTTP {answer.status}"
    if 300 <= answer.status < 400:
        raise Undelivered(f"HTTP {answer.status}: it wants to redirect, and that is not followed")
    raise Undelivered(f"HTTP {answer.status}", again=again and answer.status in NOW_BUSY)


async def _connect(parts: SplitResult) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = _context() if parts.scheme == "https" else None
    async with asyncio.timeout(CONNECT_S):
        return await asyncio.open_connection(
            parts.hostname, parts.port or PORTS[parts.scheme], ssl=context, limit=MOST_ANSWER_BYTES
        )


async def _exchange(
    parts: SplitResult,
    headers: Mapping[str, str],
    body: bytes,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> Answer:
    link = h11.Connection(h11.CLIENT)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    usual = {"Host": parts.netloc, "User-Agent": "hitchpost", "Connection": "close", "Content-Length": str(len(body))}
    request = h11.Request(method="POST", target=target, headers=list({**usual, **headers}.items()))
    for part in (request, h11.Data(body), h11.EndOfMessage()):
        writer.write(link.send(part) or b"")
    await writer.drain()
    status, parts_of_text, size = 0, [], 0
    while True:
        event = link.next_event()
        if event is h11.NEED_DATA:
            data = await reader.read(16 << 10)
            if not data and not status:
                raise Undelivered("the connection ended without an answer")
            link.receive_data(data)
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            size += len(event.data)
            if size > MOST_ANSWER_BYTES:
                break  # the status counts, and it is here
            parts_of_text.append(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
            break
    return Answer(status, b"".join(parts_of_text).decode("utf-8", "replace"))


def _why(error: OSError) -> str:
    """Without the address, which Python's own words may have."""
    if isinstance(error, socket.gaierror):
        return "its host is not known"
    return os.strerror(error.errno).lower() if error.errno else "the connection failed"


@cache
def _context() -> ssl.SSLContext:
    return ssl.create_default_context()
