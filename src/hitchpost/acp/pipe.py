"""JSON-RPC 2.0 with a program on pipes, a line for each message: what ACP is spoken in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from hitchpost.errors import MALFORMED, HitchpostError

UNKNOWN_METHOD, FAILED = -32601, -32603
Json = dict[str, Any]


class PipeClosed(HitchpostError):
    """Raised when the program at the other end is gone."""


class ErrorAnswer(HitchpostError):
    """Raised when the program answers a request with an error."""

    def __init__(self, error: Any) -> None:
        told = error if isinstance(error, dict) else {}
        super().__init__(_plain(told.get("message")) or "the request has failed")
        data = told.get("data")
        self.details = _plain((data.get("details") or data.get("message")) if isinstance(data, dict) else data)


def _plain(told: Any) -> str:
    """Some agents hand on the answer of the API as it came: then the message in it."""
    text = str(told or "")
    try:
        return str(json.loads(text)["error"]["message"])
    except MALFORMED:
        return text


class Pipe:
    """``hear`` gets what the program says, in its order. It answers requests; None is for what it does not know."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        hear: Callable[[str, Json], Awaitable[Json] | Json | None],
    ) -> None:
        self._reader, self._writer, self._hear = reader, writer, hear
        self._next = 0
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def listen(self) -> None:
        """Until the program closes its end."""
        try:
            while line := await self._reader.readline():
                try:
                    self._on_message(json.loads(line))
                except MALFORMED:
                    continue  # a line that is no message: some agents print on the wrong pipe
        except (OSError, ValueError):
            pass  # a line without an end
        self.close()

    def close(self) -> None:
        self._is_closed = True
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(PipeClosed())
        for task in self._answering:
            task.cancel()

    async def ask(self, method: str, params: Json) -> Json:
        """The result of a request. Raises ``ErrorAnswer`` or ``PipeClosed``."""
        if self._is_closed:
            raise PipeClosed
        number, self._next = self._next, self._next + 1
        waiting = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            await self._write({"id": number, "method": method, "params": params})
            found = await waiting
        finally:
            self._asked.pop(number, None)
        return found if isinstance(found, dict) else {}

    async def tell(self, method: str, params: Json) -> None:
        await self._write({"method": method, "params": params})

    async def _write(self, message: Json) -> None:
        try:
            self._writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            await self._writer.drain()
        except OSError:
            raise PipeClosed from None

    def _on_message(self, message: Json) -> None:
        method, number = message.get("method"), message.get("id")
        if method is None:
            waiting = self._asked.get(number) if isinstance(number, int) else None
            if waiting is None or waiting.done():
                return
            if "error" in message:
                waiting.set_exception(ErrorAnswer(message["error"]))
            else:
                waiting.set_result(message.get("result"))
            return
        params = message.get("params")
        found = self._hear(str(method), params if isinstance(params, dict) else {})
        if number is not None:
            task = asyncio.get_running_loop().create_task(self._answer(number, found))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer(self, number: Any, found: Awaitable[Json] | Json | None) -> None:
        """Whatever happens: a request without an answer would keep the program waiting for ever."""
        if found is None:
            error = {"code": UNKNOWN_METHOD, "message": "Hitchpost does not know this method"}
            await self._write({"id": number, "error": error})
            return
        try:
            result = found if isinstance(found, dict) else await found
        except Exception as failure:
            error = {"code": FAILED, "message": f"Hitchpost has failed: {failure!r}"}
            await self._write({"id": number, "error": error})
            return
        await self._write({"id": number, "result": result})
