"""What the hub tells an attached terminal: a bell, and words for terminals that show notifications (OSC 9)."""

from __future__ import annotations

import json
import os
import socket
import threading
from contextlib import suppress

from hitchpost.hub.client import SOCKET
from hitchpost.notify.message import plain
from hitchpost.system.shortpath import ShortPath

BEGINS = '{"type": "notification"'
"""Of the many things that a hub tells, the rest is not even parsed."""
MOST_BYTES = 4096
TYPE_CHECKING = False
if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection


class Bells:
    """Listens in a thread while somebody is attached to ``session``. Without a hub there is nothing to hear.

    ``fd`` becomes readable when something was told. What does not fit into its pipe is dropped: the terminal is stuck.
    """

    def __init__(self, home: str, session: str) -> None:
        self.home, self.session = home, session
        self.fd, self._into = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._connection: ClientConnection | None = None
        self._is_closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def read(self) -> bytes:
        """What to write to the terminal."""
        try:
            return os.read(self.fd, MOST_BYTES)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._connection is not None:
                _hang_up(self._connection)
        self._thread.join(2)
        if not self._thread.is_alive():
            os.close(self.fd)
            os.close(self._into)

    def _listen(self) -> None:
        if not os.path.exists(os.path.join(self.home, SOCKET)):
            return
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import unix_connect

        try:
            with ShortPath(self.home, SOCKET) as path:
                connection = unix_connect(
                    path, "ws://hub/ws?hears=terminal", compression=None, max_size=None, open_timeout=2
                )
            with self._lock:
                self._connection = connection
                if self._is_closed:
                    _hang_up(connection)
            for text in connection:
                if isinstance(text, str) and text.startswith(BEGINS):
                    self._ring(json.loads(text))
        except (OSError, WebSocketException, ValueError):
            return

    def _ring(self, told: dict[str, str]) -> None:
        with suppress(BlockingIOError):
            os.write(self._into, self._sound(told))

    def _sound(self, told: dict[str, str]) -> bytes:
        if told.get("to") != "terminal" or told.get("sessionId") == self.session:
            return b""
        words = plain(f"hitch: {told['title']} {told['body']}", 200)
        return f"\x1b]9;{words}\a\a".encode()


def _hang_up(connection: ClientConnection) -> None:
    """The thread that reads notices."""
    try:
        connection.socket.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
