"""One end of a link: TLS on a socket, and frames in it. Hubs and pods use the same one.

TLS is done here and not by the event loop: that would keep 256 KiB for each connection, and not say why a handshake
has failed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

from hitchpost.fleet import frames
from hitchpost.fleet.tls import NotTrusted, refusal
from hitchpost.wire import BadFrame

READ_BYTES = 64 * 1024
MOST_UNTAKEN_BYTES = 1 << 20
"""More of what came is not read from the socket until somebody takes it."""
HANDSHAKE_S = 5.0
CONFIRM_S = 0.1
"""A loop that was busy for long hears first what has come meanwhile."""
DRAINED_BYTES = 256 * 1024
FAREWELL_S = 1.0


class Pipe(asyncio.Protocol):
    """``server_name`` is who must be at the other end; None: this is a pod, and its server looks who it is.

    It says that it is here when it has said nothing for ``beat_s``, and is over when it heard nothing for ``cut_s``.
    ``error`` is why it is over, where that is known.
    """

    _transport: asyncio.Transport

    def __init__(self, context: ssl.SSLContext, server_name: str | None, *, beat_s: float, cut_s: float) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        is_pod = server_name is None
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_pod, server_hostname=server_name)
        self.is_pod, self.beat_s, self.cut_s = is_pod, beat_s, cut_s
        self._loop = asyncio.get_running_loop()
        self.is_ready = self.over = False
        self.error: Exception | None = None
        self._inbox = bytearray()
        self._frames: list[tuple[bytes, bytes]] = []
        self._untaken = 0
        self._is_paused = False
        self._has_room = True
        self._moved: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.heard_at = self._said_at = self._loop.time()

    # the socket ---------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=DRAINED_BYTES)
        self._timer = self._loop.call_later(HANDSHAKE_S, self._too_late)
        self._pump()

    def data_received(self, data: bytes) -> None:
        self.heard_at = self._loop.time()
        self._incoming.write(data)
        self._pump()

    def eof_received(self) -> None:
        self._incoming.write_eof()
        self._pump()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error)

    def pause_writing(self) -> None:
        self._has_room = False

    def resume_writing(self) -> None:
        self._has_room = True
        _wake(self._room)

    def _pump(self) -> None:
        try:
            if not self.is_ready:
                self.tls.do_handshake()
                self.is_ready = True
                self._look_again(self._loop.time())
            while data := self.tls.read(READ_BYTES):
                self._inbox += data
            self._take()
            self.close()  # the other side has closed
        except ssl.SSLWantReadError:
            self._take()
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self._take()
            self.abort()
        except ssl.SSLError as error:
            self._flush()  # with it goes what tells the other side
            self.close(NotTrusted(refusal(error, is_pod=self.is_pod)))
        self._flush()
        _wake(self._moved)

    def _take(self) -> None:
        try:
            found = frames.take_frames(self._inbox)
        except BadFrame as error:
            self.close(error)
            return
        new = [(kind, payload) for kind, payload in found if kind != frames.BEAT]
        self._frames += new
        self._untaken += sum(len(payload) for _, payload in new)
        if self._untaken > MOST_UNTAKEN_BYTES and not self._is_paused and not self.over:
            self._is_paused = True
            self._transport.pause_reading()

    # what came, what goes -----------------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Until both sides have shown who they are. Raises ``NotTrusted``, or ``OSError`` when it has ended first."""
        while not self.is_ready and not self.over:
            await self._wait()
        if not self.is_ready:
            raise self.error or ConnectionResetError("the other side has closed the connection")

    async def frames(self) -> list[tuple[bytes, bytes]]:
        """The frames that came, once there are any; none when the pipe is over."""
        while not self._frames and not self.over:
            await self._wait()
        found, self._frames, self._untaken = self._frames, [], 0
        if self._is_paused and not self.over:
            self._is_paused = False
            self.heard_at = self._loop.time()
            self._transport.resume_reading()
        return found

    async def _wait(self) -> None:
        self._moved = self._loop.create_future()
        try:
            await self._moved
        finally:
            self._moved = None

    def send(self, frame: bytes) -> None:
        """Never waits. Who has much to send calls ``drain`` in between."""
        if self.over or not self.is_ready:
            return
        self.tls.write(frame)
        self._flush()

    def _flush(self) -> None:
        if data := self._outgoing.read():
            self._said_at = self._loop.time()
            if not self._transport.is_closing():
                self._transport.write(data)

    @property
    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    async def drain(self) -> None:
        """Until little waits to be sent, or the pipe is over."""
        while not self._has_room and not self.over:
            self._room = self._loop.create_future()
            try:
                await self._room
            finally:
                self._room = None

    # life ---------------------------------------------------------------------------------------------------------

    def _set_timer(self, delay_s: float, call: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay_s, call)

    def _too_late(self) -> None:
        self.abort(NotTrusted(f"the other side has not shown who it is within {HANDSHAKE_S:g} s"))

    def _look(self) -> None:
        """Say that we are here where that is due, and look whether the other side is."""
        now = self._loop.time()
        if now - self._said_at >= self.beat_s:
            self.send(frames.frame(frames.BEAT))
        if self._is_silent(now):
            self._set_timer(CONFIRM_S, self._confirm)
        else:
            self._look_again(now)

    def _confirm(self) -> None:
        now = self._loop.time()
        if self._is_silent(now):
            self.abort(TimeoutError(f"nothing was heard for {self.cut_s:g} s"))
        else:
            self._look_again(now)

    def _is_silent(self, now: float) -> bool:
        return now - self.heard_at >= self.cut_s and not self._is_paused

    def _look_again(self, now: float) -> None:
        cut_at = now + self.cut_s if self._is_paused else self.heard_at + self.cut_s
        self._set_timer(max(0.01, min(self._said_at + self.beat_s, cut_at) - now), self._look)

    def close(self, error: Exception | None = None) -> None:
        """After all that was said has gone out, if the other side takes it soon."""
        self.error = self.error or error
        self._transport.close()
        self._end(None)
        self._loop.call_later(FAREWELL_S, self._transport.abort)

    def abort(self, error: Exception | None = None) -> None:
        """At once."""
        self.error = self.error or error
        self._transport.abort()
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        self.error = self.error or error
        self.over = True
        if self._timer is not None:
            self._timer.cancel()
        _wake(self._moved)
        _wake(self._room)


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
