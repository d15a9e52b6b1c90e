"""A network between a machine and the hub that can be cut, and that can stop to carry anything without a word."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Network:
    """Passes connections on from ``port`` to the hub's, at the same address."""

    def __init__(self, host: str, port: int, hub_port: int) -> None:
        self.host, self.port, self.hub_port = host, port, hub_port
        self.is_cut = self.is_silent = False
        self.carried = 0
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._lock = threading.Lock()
        self._listening = socket.create_server((host, port))
        self._woken, self._wake = socket.socketpair()
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Whoever is connected loses the connection, and nobody gets another one."""
        self.is_cut = True
        with self._lock:
            for sock in self._pairs:
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        self._wake.send(b"x")

    def mend(self) -> None:
        self.is_cut = self.is_silent = False
        self._wake.send(b"x")

    def close(self) -> None:
        self._wake.close()
        self._thread.join(10)
        self._listening.close()
        self._woken.close()

    def _carry(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listening, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    sock = key.fileobj
                    assert isinstance(sock, socket.socket)
                    if sock is self._woken:
                        if not sock.recv(1):
                            for one in list(self._pairs):
                                one.close()
                            return
                    elif sock is self._listening:
                        self._take(selector)
                    elif sock in self._pairs:
                        self._pass_on(selector, sock)

    def _take(self, selector: selectors.BaseSelector) -> None:
        near, _ = self._listening.accept()
        if self.is_cut:
            near.close()
            return
        away = socket.create_connection((self.host, self.hub_port))
        with self._lock:
            self._pairs |= {near: away, away: near}
        for sock in (near, away):
            selector.register(sock, selectors.EVENT_READ)

    def _pass_on(self, selector: selectors.BaseSelector, sock: socket.socket) -> None:
        other = self._pairs[sock]
        try:
            data = sock.recv(65536)
            if data and not self.is_silent:
                self.carried += len(data)
                other.sendall(data)
        except OSError:
            data = b""
        if not data:
            with self._lock:
                for one in (sock, other):
                    selector.unregister(one)
                    del self._pairs[one]
                    one.close()


@contextmanager
def network(host: str, port: int, hub_port: int) -> Iterator[Network]:
    made = Network(host, port, hub_port)
    try:
        yield made
    finally:
        made.close()
