"""A client of Codex's app-server: JSON-RPC over a WebSocket on the run's own Unix socket."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import stat
from collections.abc import Callable
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from hitchpost.errors import HitchpostError
from hitchpost.system.shortpath import ShortPath

Told = dict[str, Any]
CONNECT_S = 5.0
ANSWER_S = 15.0
MOST_BYTES = 64 << 20
"""A longer message ends the connection, and another one is made."""
ME = {"name": "hitchpost", "title": "Hitchpost", "version": "1"}
UNHEARD = (
    "item/agentMessage/delta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/plan/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/textDelta",
    "turn/diff/updated",
    "turn/plan/updated",
)
"""What goes by while the agent works, and changes nothing that we say of it."""


class NotReached(HitchpostError):
    """Raised when nobody listens at the run's socket, or what listens is no app-server."""


class NoAnswer(HitchpostError):
    """Raised when the app-server did not answer a request, or refused it."""


class Declined(NoAnswer):
    """Raised when the app-server has refused a request."""


class NotInTime(NoAnswer):
    """Raised when the app-server has a request and did not answer it in time: it may carry it out yet."""


class AppServer:
    """``on_told(method, params, id)`` hears everything in order; ``id`` is None for what needs no answer."""

    def __init__(self, connection: ClientConnection, on_told: Callable[[str, Told, Any], None]) -> None:
        self._connection, self._on_told = connection, on_told
        self._next = 1
        self._asked: dict[int, asyncio.Future[Told]] = {}

    @classmethod
    async def connect(cls, folder: str, name: str, on_told: Callable[[str, Told, Any], None]) -> Self:
        try:
            async with asyncio.timeout(CONNECT_S):
                with ShortPath(folder, name) as path:
                    connection = await unix_connect(
                        path, uri="ws://localhost/", compression=None, max_size=MOST_BYTES, ping_interval=None
                    )
        except (OSError, WebSocketException) as error:
            raise NotReached(f"no app-server answers: {error}") from None
        return cls(connection, on_told)

    async def listen(self) -> None:
        """Until the server is gone. What is no JSON object is left out."""
        try:
            async for message in self._connection:
                told = json.loads(message)
                if isinstance(told, dict):
                    self._hear(told)
        except (ConnectionClosed, ValueError):
            return
        finally:
            for waiting in self._asked.values():
                waiting.cancel()
            await self._connection.close()

    def _hear(self, told: Told) -> None:
        method, params = told.get("method"), told.get("params")
        if isinstance(method, str):
            self._on_told(method, params if isinstance(params, dict) else {}, told.get("id"))
        elif (waiting := self._asked.pop(told.get("id"), None)) is not None and not waiting.done():  # type: ignore[arg-type]
            waiting.set_result(told)

    async def greet(self) -> None:
        """Raises ``NoAnswer``."""
        capabilities = {"experimentalApi": True, "optOutNotificationMethods": UNHEARD}
        await self.ask("initialize", clientInfo=ME, capabilities=capabilities)
        await self._send({"method": "initialized"})

    async def ask(self, method: str, **params: object) -> Told:
        """The result of a request. Raises ``NoAnswer``."""
        number, self._next = self._next, self._next + 1
        waiting = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"id": number, "method": method, "params": params})
            async with asyncio.timeout(ANSWER_S):
                told = await asyncio.shield(waiting)
        except TimeoutError:
            raise NotInTime(f"Codex has not answered {method} within {ANSWER_S:g} s") from None
        except asyncio.CancelledError:
            if waiting.cancelled():
                raise NoAnswer(f"Codex has ended before it answered {method}") from None
            raise
        finally:
            self._asked.pop(number, None)
        error, result = told.get("error"), told.get("result")
        if isinstance(error, dict):
            raise Declined(f"Codex has refused it: {error.get('message')}")
        return result if isinstance(result, dict) else {}

    async def answer(self, number: object, result: Told) -> None:
        """Answer a request of the server. The first answer of all clients counts."""
        await self._send({"id": number, "result": result})

    async def _send(self, message: Told) -> None:
        try:
            await self._connection.send(json.dumps(message))
        except ConnectionClosed:
            raise NoAnswer("Codex has ended") from None


def remove_left(folder: str, name: str) -> None:
    """The socket of a server that was killed. Codex keeps it in a folder of its own, and a link to it in the run's."""
    link = os.path.join(folder, name)
    try:
        path = os.readlink(link)
        is_own = os.path.basename(os.path.dirname(path)) == f"codex-daemon-{os.getuid()}"
        if is_own and stat.S_ISSOCK(os.lstat(path).st_mode) and not _listens(path):
            os.unlink(path)
            os.unlink(f"{path}.lock")
    except OSError:
        return  # a server that could still do so has removed it


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        return client.connect_ex(path) != errno.ECONNREFUSED
