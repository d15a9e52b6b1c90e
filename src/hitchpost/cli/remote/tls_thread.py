"""TLS of a connection in one thread of its own, so that others may read and write the connection at the same time.

The WebSocket library reads in one thread and writes in another. Python 3.11 does not keep the two apart in one TLS
object: now and then OpenSSL fails with an "internal error" then, or never answers.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
from contextlib import suppress

MOST_BYTES = 1 << 16
WAITS = (ssl.SSLWantReadError, BlockingIOError)


class ThreadedTls:
    """What the WebSocket library uses as an SSL context: its ``wrap_socket`` gives a plain socket."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context

    def wrap_socket(self, sock: socket.socket, *, server_hostname: str) -> socket.socket:
        """Raises what the handshake raises. Closing the socket that is returned closes the connection."""
        secured = self.context.wrap_socket(sock, server_hostname=server_hostname)
        ours, theirs = socket.socketpair()
        threading.Thread(target=_carry, args=(secured, theirs), name="tls", daemon=True).start()
        return ours


def _carry(secured: ssl.SSLSocket, plain: socket.socket) -> None:
    """Until one of the two ends. At most one piece is held in each direction: who does not read is waited for."""
    with secured, plain, suppress(OSError):
        secured.setblocking(False)
        plain.setblocking(False)
        inwards, outwards = _Way(secured, plain), _Way(plain, secured)
        while True:
            moved = inwards.move() | outwards.move()
            if inwards.is_over or outwards.is_over:
                return
            if not moved:
                _wait(secured, plain, inwards, outwards)


def _wait(secured: ssl.SSLSocket, plain: socket.socket, inwards: _Way, outwards: _Way) -> None:
    """For what comes, unless there is no room for it, and for room for what is held."""
    reads: list[socket.socket] = [] if inwards.held else [secured]
    reads += [] if outwards.held else [plain]
    writes: list[socket.socket] = [plain] if inwards.held else []
    writes += [secured] if outwards.held or inwards.writes_first else []
    select.select(reads, writes, [])


class _Way:
    """From one socket to the other."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source, self.target = source, target
        self.held = memoryview(b"")
        self.is_over = False
        self.writes_first = False
        """TLS has something to say before it can read on."""

    def move(self) -> bool:
        """Whether something was moved."""
        moved = self.writes_first = False
        try:
            if not self.held:
                self.held = memoryview(self.source.recv(MOST_BYTES))
                self.is_over = not self.held
                moved = True
            if self.held:
                self.held = self.held[self.target.send(self.held) :]
                moved = True
        except WAITS:
            pass
        except ssl.SSLWantWriteError:
            self.writes_first = not self.held
        return moved
