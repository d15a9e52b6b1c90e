from __future__ import annotations

import os
import time
import tty
from collections.abc import Iterator

import pytest

from hitchpost.keeper.sources.pty import unread_bytes
from hitchpost.keeper.typing_queue import MOST_WAITING_BYTES, TypingQueue
from tests.support import eventually


class Terminal:
    """A PTY in raw mode, with the queue on its master side."""

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        for fd in (self.master, self.slave):
            os.set_blocking(fd, False)
        self.queue = TypingQueue(self.master)

    def read(self) -> bytes:
        try:
            return os.read(self.slave, 65536)
        except BlockingIOError:
            return b""

    def read_all(self) -> bytes:
        """What arrives while the queue is flushed until it is empty."""
        arrived = b""
        while True:
            self.queue.flush()
            part = self.read()
            arrived += part
            if not part and not self.queue.blocked:
                return arrived


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    for fd in (made.master, made.slave):
        os.close(fd)


def test_bytes_arrive_in_order_however_slowly_they_are_read(terminal: Terminal):
    text = bytes(range(256)) * 400
    assert terminal.queue.put(text[:5], text[5:])
    terminal.queue.flush()
    assert terminal.queue.blocked
    assert terminal.read_all() == text
    assert (terminal.queue.waiting_bytes, terminal.queue.blocked) == (0, False)


def test_a_receipt_comes_after_the_last_byte_was_typed(terminal: Terminal):
    receipts: list[str] = []
    terminal.queue.put(b"x" * 50_000, lambda: receipts.append("one"), b"y", lambda: receipts.append("two"))
    terminal.queue.flush()
    assert receipts == []
    terminal.read_all()
    assert receipts == ["one", "two"]


def test_a_pause_holds_back_what_follows_and_nothing_else(terminal: Terminal):
    began = time.monotonic()
    terminal.queue.put(b"text", 0.1, b"\r")
    terminal.queue.flush()
    assert terminal.read() == b"text"
    assert terminal.queue.resume_at is not None
    assert not terminal.queue.blocked, "nobody is waited for"

    def entered() -> bytes:
        terminal.queue.flush()
        return terminal.read()

    assert eventually(entered) == b"\r"
    assert time.monotonic() - began >= 0.1
    assert terminal.queue.resume_at is None


def test_what_finds_no_room_is_refused_whole(terminal: Terminal):
    receipts: list[str] = []
    assert terminal.queue.put(b"x" * (MOST_WAITING_BYTES - 10))
    assert not terminal.queue.put(b"12345678901", lambda: receipts.append("never"))
    assert terminal.queue.put(b"1234567890")
    assert terminal.queue.waiting_bytes == MOST_WAITING_BYTES
    assert not terminal.queue.put(b"1")
    assert terminal.queue.put(), "nothing always fits"
    assert receipts == []


def test_room_comes_back_as_the_agent_reads(terminal: Terminal):
    terminal.queue.put(b"x" * MOST_WAITING_BYTES)
    terminal.queue.flush()
    assert terminal.queue.waiting_bytes < MOST_WAITING_BYTES
    assert terminal.queue.put(b"y")


def test_a_terminal_that_is_gone_is_told():
    master, slave = os.openpty()
    os.close(slave)
    os.set_blocking(master, False)
    queue = TypingQueue(master)
    queue.put(b"x")
    os.close(master)
    with pytest.raises(OSError):
        queue.flush()


@pytest.mark.parametrize("text", [b"hello", b"x" * 3000])
def test_what_was_typed_is_unread_until_it_is_read(terminal: Terminal, text: bytes):
    for _ in range(500):
        terminal.queue.put(text)
        terminal.queue.flush()
        left = len(text)
        while left:
            assert unread_bytes(terminal.slave) > 0
            left -= len(terminal.read())
        assert unread_bytes(terminal.slave) == 0
