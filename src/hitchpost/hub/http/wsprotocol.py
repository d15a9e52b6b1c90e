"""A WebSocket's connection. Frames are taken apart in turns; pongs and pieces of messages take no memory."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.protocol import OPEN

from hitchpost.hub.http.connections import KEY, Connection
from hitchpost.hub.http.intake import Intake

MESSAGE_S = 0.0003
"""What a message costs of its sender's share, whatever becomes of it."""
MOST_OF_SOME_BYTES = 2 << 20
"""Of an owner of some sessions: what is typed at once has half of that."""
MOST_OF_VIEWER_BYTES = 64 << 10
"""A viewer types nothing: its messages are short."""


class WebSocketProtocol(WebSocketsSansIOProtocol):
    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._intake = Intake(super().data_received, self._may_take)
        self._pong = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._intake.transport = self.transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._intake.close()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.handshake_initiated:
            self._intake.put(data)
        else:
            super().data_received(data)

    def _may_take(self) -> bool:
        """One message is with the hub at a time; until it is decided who this is, nothing is looked at."""
        return self.handshake_complete and not self.read_paused

    async def receive(self) -> Any:
        if not self.queue.empty():
            await asyncio.sleep(0)  # others have their turn before the next of many messages
        message = await super().receive()
        if self._intake.share is not None and message["type"] == "websocket.receive":
            self._intake.share.use(MESSAGE_S)
        if self._intake.held:
            self._intake.soon()
        return message

    async def send(self, message: Any) -> None:
        await super().send(message)
        kind = message["type"]
        if kind == "websocket.accept":
            self._begin()
        elif kind == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True  # it was refused, which is an answer
        elif kind == "websocket.close" and self._intake.held:
            self._intake.soon()

    def _begin(self) -> None:
        connection = self.app_state.get(KEY)
        if isinstance(connection, Connection):
            self._intake.share = connection.share
            grant = None if connection.credential is None else connection.credential.grant
            if grant is not None and not grant.is_whole:
                self.conn.max_message_size = MOST_OF_SOME_BYTES if grant.may_drive else MOST_OF_VIEWER_BYTES
        if self._intake.held:
            self._intake.soon()

    # frames -----------------------------------------------------------------------------------------------------

    def handle_ping(self) -> None:
        """Of many pings the last one is answered, and that when the client takes it."""
        output = self.conn.data_to_send()
        if self.conn.state is not OPEN:
            self.transport.write(b"".join(output))
        elif output:
            self._pong = output[-1]
            if self.writable.is_set():
                self._send_pong()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._send_pong()

    def _send_pong(self) -> None:
        pong, self._pong = self._pong, b""
        if pong and self.conn.state is OPEN and not self.transport.is_closing():
            self.transport.write(pong)

    def handle_cont(self, event: Frame) -> None:
        """In one buffer: there may be millions of pieces, with nothing in them."""
        pieces: list[Any] = self.frames
        if not isinstance(pieces[0], bytearray):
            pieces[0] = bytearray(pieces[0])
        pieces[0] += event.data
        if event.fin:
            self.send_receive_event_to_app()
