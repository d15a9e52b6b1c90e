"""Connections. Over TCP, what a client sends has to come in time, is taken apart in turns, and places are few.

A connection is known once a request on it has passed the gate with credentials. Until then nothing of a body is looked
at before the gate has seen the head, and little in all.
"""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import h11
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

from hitchpost.hub.http.connection_limits import ConnectionLimits
from hitchpost.hub.http.intake import PIECE_BYTES, Intake
from hitchpost.hub.http.tokenfile import Credential
from hitchpost.hub.time_shares import Share
from hitchpost.system.peer import why_refused

KEY = "connection"
"""Where a request's state has its connection."""


STRANGER = "stranger"
"""Where a request's state has why its peer may not speak; empty when it may."""

END_OF_HEAD = b"\r\n\r\n"
BODY_PIECE_BYTES = 64 << 10
"""Of a body whose length is known: all of a piece is one."""
SMALL_BODY_BYTES = 4096
LINGER_S = 2.0
MOST_DROPPED_BYTES = 8 << 20
"""What somebody may still send who has been refused: who hangs up at once takes the answer away."""


class LocalConnection(H11Protocol):
    """Over the Unix socket: the kernel says who is there."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = transport.get_extra_info("socket")
        self.app_state = {**self.app_state, STRANGER: why_refused(peer.fileno())}


class Flow(FlowControl):
    """Reading goes on when the intake has nothing left."""

    def __init__(self, transport: asyncio.Transport, intake: Intake) -> None:
        super().__init__(transport)
        self._intake = intake

    def resume_reading(self) -> None:
        if self.read_paused and self._intake.held:
            self.read_paused = False
            self._intake.soon()
        else:
            super().resume_reading()


class Answering:
    """What the answer to a request with a body is written to.

    Uvicorn closes it after the answer when the client wants that (``Connection: close``). While more of the body is to
    come, that would take the answer away: the connection lets the client go itself.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.write, self.is_closing = connection.transport.write, connection.transport.is_closing

    def close(self) -> None:
        if not (self._connection.cycle.response_complete and self._connection.is_let_go):
            self._connection.transport.close()


class Connection(H11Protocol):
    limits: ConnectionLimits

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.app_state = {**self.app_state, KEY: self}
        self.credential: Credential | None = None
        self.since = self.loop.time()
        self._intake = Intake(self._take, self._may_take)
        self._intake.piece_bytes = self._piece_bytes
        self._due: asyncio.TimerHandle | None = None
        self._upgraded = False
        self._taken_bytes = 0
        self._dropped_bytes: int | None = None

    @property
    def key(self) -> str:
        return "" if self.credential is None else self.credential.key

    @property
    def is_owner(self) -> bool:
        return self.credential is None or self.credential.grant.is_whole

    @property
    def is_busy(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete

    @property
    def is_let_go(self) -> bool:
        """Whether the client is still sending what nobody wants, when it has been answered."""
        return self in self.limits.unknown and self._is_owed_a_body()

    @property
    def share(self) -> Share | None:
        """Of the sign-in, for as long as that is the same."""
        return self.limits.share_of_unknown if self in self.limits.unknown else self.limits.share_of(self.credential)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        # not uvicorn's own: it asks the kernel for addresses that nobody needs, which is most of what accepting costs
        self.connections.add(self)
        self.transport = transport
        self.scheme = "http" if transport.get_extra_info("sslcontext") is None else "https"
        self.flow = Flow(transport, self._intake)
        self._intake.transport = transport
        self._due = self.loop.call_later(self.limits.unknown_s, self.hang_up)
        self.limits.arrive(self)

    def recognise(self, credential: Credential | None) -> None:
        """Somebody who is known speaks here."""
        is_another = self in self.limits.unknown or (self in self.limits.known and credential != self.credential)
        if not is_another:
            return
        self._leave()
        self.credential = credential
        self._intake.share = self.limits.share_of(credential)
        if not self._upgraded:
            self.limits.settle(self)
            self._watch_request()

    def data_received(self, data: bytes) -> None:
        if self._dropped_bytes is not None:
            self._dropped_bytes += len(data)
            if self._dropped_bytes > MOST_DROPPED_BYTES:
                self.hang_up()
            return
        self._unset_keepalive_if_required()
        self._intake.put(data)
        if self in self.limits.known:
            self._watch_request()

    def on_response_complete(self) -> None:
        if self.is_let_go:
            self._let_go()
        else:
            super().on_response_complete()

    def connection_lost(self, error: Exception | None) -> None:
        self._intake.close()
        super().connection_lost(error)
        self._leave()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """From here on it is a WebSocket's connection, as soon as it is known."""
        self._upgraded = True
        if self in self.limits.known:
            self._leave()
        rest = self._intake.rest()
        super().handle_websocket_upgrade(event)
        if not self.transport.is_closing():
            self.transport.resume_reading()
            if rest := self.conn.trailing_data[0] + rest:
                self.transport.get_protocol().data_received(rest)  # type: ignore[attr-defined]

    def hang_up(self) -> None:
        self._leave()
        self.transport.abort()

    # what has come ----------------------------------------------------------------------------------------------

    def _may_take(self) -> bool:
        return not (self.flow.read_paused or self._upgraded or self.transport.is_closing())

    def _piece_bytes(self) -> int:
        if self.conn.their_state is h11.SEND_BODY:
            return PIECE_BYTES if self._is_chunked() else BODY_PIECE_BYTES
        end = self._intake.held.find(END_OF_HEAD, 0, PIECE_BYTES) if self in self.limits.unknown else -1
        return PIECE_BYTES if end < 0 else end + len(END_OF_HEAD)

    def _take(self, piece: bytes) -> None:
        before = self.cycle
        super().data_received(piece)
        if self in self.limits.known:
            self._watch_request()
        elif self in self.limits.unknown and not self._upgraded:
            # the first piece has waited for nobody: it may be an owner's
            self._intake.share = self.limits.share_of_unknown
            self._taken_bytes += len(piece)
            if self._taken_bytes > self.limits.unknown_bytes:
                self.hang_up()
            elif self.cycle is not before and self.conn.their_state is h11.SEND_BODY:
                self.flow.pause_reading()  # until the gate has seen the head, and somebody asks for the body
                self.cycle.transport = Answering(self)  # type: ignore[assignment]

    def _is_chunked(self) -> bool:
        return any(name == b"transfer-encoding" for name, _ in self.headers)

    def _is_owed_a_body(self) -> bool:
        """Whether more is to come than is worth reading, for an answer that is given already."""
        if self.conn.their_state is not h11.SEND_BODY:
            return False
        lengths = [int(value) for name, value in self.headers if name == b"content-length"]
        return self._is_chunked() or lengths > [SMALL_BODY_BYTES]

    def _let_go(self) -> None:
        """Nothing is looked at any more. The connection ends when the client has seen the answer, or soon."""
        self._intake.close()
        self._dropped_bytes = 0
        self._wait_no_longer()
        self._due = self.loop.call_later(LINGER_S, self.hang_up)
        if not self.transport.is_closing():
            if self.transport.can_write_eof():  # TLS has no such thing
                self.transport.write_eof()
            self.transport.resume_reading()

    # time and places --------------------------------------------------------------------------------------------

    def _watch_request(self) -> None:
        """A request that has begun to come has to come to its end."""
        state = self.conn.their_state
        if state is h11.SEND_BODY or (state is h11.IDLE and (self.conn.trailing_data[0] or self._intake.held)):
            if self._due is None:
                self._due = self.loop.call_later(self.limits.request_s, self.hang_up)
        else:
            self._wait_no_longer()

    def _wait_no_longer(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _leave(self) -> None:
        self._wait_no_longer()
        self.limits.leave(self)


def limited(**limits: float) -> type[Connection]:
    """A class for one server, with places of its own."""
    return type("Limited", (Connection,), {"limits": ConnectionLimits(**limits)})


def recognise(scope: MutableMapping[str, Any], credential: Credential | None = None) -> None:
    """The request has passed with credentials: its connection is that of somebody who is known."""
    connection = scope.get("state", {}).get(KEY)
    if isinstance(connection, Connection):
        connection.recognise(credential)


def share_of(scope: MutableMapping[str, Any]) -> Share | None:
    """Of whoever asks; None when nothing has to be paid."""
    connection = scope.get("state", {}).get(KEY)
    return connection.share if isinstance(connection, Connection) else None
