"""The socket beside a run through which its watcher prompts, answers and interrupts the agent: JSON, a line each."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

from hitchpost.agents.acp import MOST_LINE, SOCKET
from hitchpost.errors import MALFORMED
from hitchpost.system.peer import why_refused
from hitchpost.system.shortpath import ShortPath

MOST_CLIENTS = 4
Json = dict[str, Any]


class Door:
    """Who comes is told how things stand, and then of each change. ``carry_out`` answers a request."""

    def __init__(self, run_folder: str, carry_out: Callable[[Json], Awaitable[Json]]) -> None:
        self._folder, self._carry_out = run_folder, carry_out
        self._clients: set[asyncio.StreamWriter] = set()
        self._standing: dict[str, Json] = {}
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        with ShortPath(self._folder, SOCKET) as path:
            self._server = await asyncio.start_unix_server(self._serve, path, limit=MOST_LINE)
            os.chmod(path, 0o600)

    def tell(self, event: str, *, standing: bool = True, **details: Any) -> None:
        """``standing``: who comes later hears it, too."""
        line = {"event": event, **details}
        if standing:
            self._standing[event] = line
        for client in tuple(self._clients):
            _write(client, line)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= MOST_CLIENTS or why_refused(writer.get_extra_info("socket").fileno()):
            writer.close()
            return
        self._clients.add(writer)
        try:
            for line in self._standing.values():
                _write(writer, line)
            while text := await reader.readline():
                try:
                    asked = json.loads(text)
                    answer = {"id": asked["id"], **await self._carry_out(asked)}
                except MALFORMED:
                    answer = {"id": None, "ok": False, "why": "expected a request with an id and an op"}
                _write(writer, answer)
                await writer.drain()
        except (OSError, ValueError):
            pass  # gone, or a line without an end
        finally:
            self._clients.discard(writer)
            writer.close()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for client in tuple(self._clients):
            client.close()


def _write(client: asyncio.StreamWriter, line: Json) -> None:
    client.write(json.dumps(line).encode() + b"\n")
