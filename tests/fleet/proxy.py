"""A network between a hub and a pod that can fail: it forwards bytes, swallows them, or cuts."""

from __future__ import annotations

import select
import socket
import threading


class Proxy:
    """On loopback, to one port. ``swallow``: nothing gets through and nobody is told, as with a cable that is out."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.swallow = False
        self.bytes_per_s = 0
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self._wake, self._woken = socket.socketpair()
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._cut = threading.Event()
        self.cuts = 0
        self._thread = threading.Thread(target=self._run)
        self._over = False
        self._thread.start()

    def address(self, port: int) -> tuple[str, int]:
        return "127.0.0.1", self.port

    def cut(self) -> None:
        """Reset every connection."""
        self._cut.set()
        self._wake.send(b"!")

    def close(self) -> None:
        self._over = True
        self._wake.send(b"!")
        self._thread.join()
        for each in (self._door, self._wake, self._woken):
            each.close()

    def _run(self) -> None:
        while not self._over:
            ready, _, _ = select.select([self._door, self._woken, *self._pairs], [], [])
            if self._woken in ready:
                self._woken.recv(100)
            if self._cut.is_set():
                self._cut.clear()
                self.cuts += 1
                self._drop_all()
                continue
            for each in ready:
                if each is self._door:
                    self._join()
                elif each in self._pairs:
                    self._pass_on(each)
        self._drop_all()

    def _join(self) -> None:
        ours, _ = self._door.accept()
        try:
            theirs = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            ours.close()
            return
        for each in (ours, theirs):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pairs[ours], self._pairs[theirs] = theirs, ours

    def _pass_on(self, each: socket.socket) -> None:
        other = self._pairs[each]
        try:
            data = each.recv(65536)
            if data and not self.swallow:
                other.sendall(data)
        except OSError:
            data = b""
        if not data:
            for gone in (each, other):
                self._pairs.pop(gone, None)
                gone.close()

    def _drop_all(self) -> None:
        for each in list(self._pairs):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            each.close()
        self._pairs.clear()
