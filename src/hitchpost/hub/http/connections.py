"""Connections. Over TCP, what a client sends has to come in time, and those that are not known have few places.

A connection is known once a request on it has passed the gate with credentials. When more connections come than there
are places, the oldest of the unknown ones is closed, so that somebody who is known is not kept waiting outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from hitchpost.system.peer import why_refused

KEY = "connection"
"""Where a request's state has its connection."""


STRANGER = "stranger"
"""Where a request's state has why its peer may not speak; empty when it may."""


class LocalConnection(H11Protocol):
    """Over the Unix socket: the kernel says who is there."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = transport.get_extra_info("socket")
        self.app_state = {**self.app_state, STRANGER: why_refused(peer.fileno())}


class Connection(H11Protocol):
    """``unknown`` and ``known`` hold what is open and is no WebSocket, the oldest first."""

    unknown: dict[Connection, None]
    known: dict[Connection, None]
    most_unknown = 64
    most_known = 256
    unknown_s = 30.0
    """How long a connection may last without becoming known."""
    request_s = 60.0
    """How long a known client may take to send one request."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.app_state = {**self.app_state, KEY: self}
        self._due: asyncio.TimerHandle | None = None
        self._upgraded = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.unknown[self] = None
        self._due = self.loop.call_later(self.unknown_s, self._hang_up)
        if len(self.unknown) > self.most_unknown:
            next(iter(self.unknown))._hang_up()

    def recognise(self) -> None:
        """Somebody who is known speaks here."""
        if self in self.unknown:
            self._leave()
            if not self._upgraded:
                self.known[self] = None
                self._watch_request()
                if len(self.known) > self.most_known:
                    next(iter(self.known))._hang_up()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self in self.known:
            self._watch_request()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._leave()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """From here on it is a WebSocket's connection, as soon as it is known."""
        self._upgraded = True
        if self in self.known:
            self._leave()
        super().handle_websocket_upgrade(event)

    def _watch_request(self) -> None:
        """A request that has begun to come has to come to its end."""
        state = self.conn.their_state
        if state is h11.SEND_BODY or (state is h11.IDLE and self.conn.trailing_data[0]):
            if self._due is None:
                self._due = self.loop.call_later(self.request_s, self._hang_up)
        else:
            self._wait_no_longer()

    def _wait_no_longer(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _leave(self) -> None:
        self._wait_no_longer()
        self.unknown.pop(self, None)
        self.known.pop(self, None)

    def _hang_up(self) -> None:
        self._leave()
        self.transport.abort()


def limited(**limits: float) -> type[Connection]:
    """A class for one server, with places of its own."""
    return type("Limited", (Connection,), {"unknown": {}, "known": {}, **limits})


def recognise(scope: MutableMapping[str, Any]) -> None:
    """The request has passed with credentials: its connection is that of somebody who is known."""
    connection = scope.get("state", {}).get(KEY)
    if isinstance(connection, Connection):
        connection.recognise()
