"""TLS: connections are accepted here, and handed on when the handshake is done.

A client that is shaking hands has a place among those who are not known, and no more time than they have. Without
that, whoever opens connections and says nothing would use up the descriptors before anybody counts them.
"""

from __future__ import annotations

import asyncio
import socket
import ssl

import structlog
import uvicorn

from hitchpost.hub.http.connection_limits import ConnectionLimits
from hitchpost.hub.http.connections import Connection
from hitchpost.hub.tasks import Tasks

HANDSHAKE_S = 10.0
NO_DESCRIPTOR_S = 0.1
"""Until the next try to accept somebody, when there is no descriptor left."""

log = structlog.get_logger()


class Handshake:
    """A client that has not shown yet that it speaks TLS."""

    key, is_owner, is_busy = "", False, False

    def __init__(self, client: socket.socket, limits: ConnectionLimits) -> None:
        self.client, self.limits = client, limits
        self.since = asyncio.get_running_loop().time()
        self.task: asyncio.Task[None] | None = None

    def hang_up(self) -> None:
        self.limits.leave(self)
        if self.task is not None:
            self.task.cancel()
        self.client.close()


class TlsListener:
    """Accepts for a server that has no sockets of its own."""

    def __init__(self, context: ssl.SSLContext, server: uvicorn.Server) -> None:
        self.context, self.server = context, server
        self.protocol: type[Connection] = server.config.http  # type: ignore[assignment]
        self._tasks = Tasks("tls")

    def start(self, listening: list[socket.socket]) -> None:
        for sock in listening:
            sock.setblocking(False)
            self._tasks.start(self._accept(sock))

    async def close(self) -> None:
        await self._tasks.close()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(listening)
            except OSError as error:
                log.warning("cannot accept a connection", error=str(error))
                await asyncio.sleep(NO_DESCRIPTOR_S)
                continue
            handshake = Handshake(client, self.protocol.limits)
            handshake.limits.arrive(handshake)
            handshake.task = self._tasks.start(self._shake_hands(handshake))

    async def _shake_hands(self, handshake: Handshake) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                self._connection, handshake.client, ssl=self.context, ssl_handshake_timeout=HANDSHAKE_S
            )
        except (OSError, ssl.SSLError):
            handshake.client.close()  # not a client of ours: a scan, plain HTTP, a browser that distrusts us
        finally:
            handshake.limits.leave(handshake)

    def _connection(self) -> Connection:
        return self.protocol(config=self.server.config, server_state=self.server.server_state, app_state={})
