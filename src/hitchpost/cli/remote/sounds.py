"""What an attached terminal is told between two pieces of output, while its session is elsewhere."""

from __future__ import annotations

import os
from contextlib import suppress

from hitchpost.notify.message import plain
from hitchpost.text import visible

MOST_BYTES = 4096


class Sounds:
    """That the connection is lost, in the terminal's title; and a bell for what the hub tells of other sessions.

    ``fd`` becomes readable when there is something. What does not fit into its pipe is dropped: the terminal is stuck.
    """

    def __init__(self, context: str, session: str) -> None:
        self.context, self.session = context, session
        self.title = ""
        """Of the terminal when the connection is back."""
        self.fd, self._into = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._is_lost = False

    def read(self) -> bytes:
        """What to write to the terminal."""
        try:
            return os.read(self.fd, MOST_BYTES)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        os.close(self.fd)
        os.close(self._into)

    def lost(self) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._put(_title(f"{self.context} cannot be reached; trying again") + b"\a")

    def back(self) -> None:
        if self._is_lost:
            self._is_lost = False
            self._put(_title(self.title))

    def told(self, notification: dict[str, str]) -> None:
        if notification.get("to") == "terminal" and notification.get("sessionId") != self.session:
            words = plain(f"hitch: {notification['title']} {notification['body']}", 200)
            self._put(f"\x1b]9;{words}\a\a".encode())

    def _put(self, data: bytes) -> None:
        with suppress(BlockingIOError):
            os.write(self._into, data)


def _title(text: str) -> bytes:
    return f"\x1b]2;{visible(text)}\x1b\\".encode()
