"""The caller's own terminal: raw mode and back, writing without waiting for it, and the signals that concern it."""

from __future__ import annotations

import os
import select
import signal
import termios
import time
import tty
from types import FrameType

from hitchpost.cli.answers import Fence
from hitchpost.cli.common import terminal_size
from hitchpost.errors import HitchpostError
from hitchpost.text import visible

READ_BYTES = 65536
BLOCKING_WRITE_BYTES = 256
FAREWELL_S = 1.0

WATCHED_SIGNALS = (
    signal.SIGWINCH,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTSTP,
    signal.SIGCONT,
)
MOUSE = (9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016)
MODES_OFF = (1, 4, 5, 6, 45, 69, *MOUSE, 1045, 2004, 2026, 2031, 2033, 2048, 5522)
MODES_ON = (7, 25)
POP_KEYBOARD = b"\x1b[=0u\x1b[<64u"
LEAVE_ALTERNATE = b"\x1b[?1049l" + POP_KEYBOARD + b"\x1b[?7h\x1b[0m\x1b(B\x0f"
"""The cursor comes back with the style and the letters that it had: an agent may have made it write nothing visible."""
KEEP_TITLE, GIVE_TITLE_BACK = b"\x1b[22;0t", b"\x1b[23;0t"
RESET = b"".join(
    (
        b"\x1b\\",  # ends whatever sequence the stream was cut in
        b"\x1b<\x1b[4i\x1b[?4i",  # no VT52, and nothing more to a printer
        b"\x1b]8;;\x1b\\",
        *(b"\x1b[?%dl" % mode for mode in MODES_OFF),
        *(b"\x1b[?%dh" % mode for mode in MODES_ON),
        b"\x1b[2l\x1b[12h",  # the keyboard is not locked, and the terminal does not show by itself what is typed
        b"\x1b[4l\x1b[20l\x1b[r\x1b>\x1b(B\x0f\x1b[0 q",
        b"\x1b[>4;0m",
        POP_KEYBOARD,
        b"\x1b[0m",
    )
)
"""Every mode that a program may have set, back to what a shell expects. Moves the cursor; leaves the screen alone."""


class TerminalGone(HitchpostError):
    """Raised when the terminal was closed."""


class Terminal:
    """Standard input and output. ``put`` queues without bound: put only when ``waiting`` is small."""

    def __init__(self) -> None:
        self.input = 0
        self._before = termios.tcgetattr(self.input)
        self._queue = bytearray()
        self._most = READ_BYTES
        try:
            # an open file of our own: the flag must not reach those who share the terminal with us
            self.output = os.open(os.ttyname(1), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            self.output = os.dup(1)
            self._most = BLOCKING_WRITE_BYTES

    def close(self) -> None:
        os.close(self.output)

    def waiting(self) -> int:
        """How many bytes the terminal has not taken yet."""
        return len(self._queue)

    def size(self) -> tuple[int, int]:
        return terminal_size()

    def raw(self) -> None:
        tty.setraw(self.input, termios.TCSANOW)

    def restore(self) -> None:
        """Give the terminal's settings back. Answers that are still on their way must not reach the shell."""
        try:
            termios.tcflush(self.input, termios.TCIFLUSH)
            termios.tcsetattr(self.input, termios.TCSANOW, self._before)
        except termios.error:
            return

    def read(self) -> bytes:
        """What was typed. Raises ``TerminalGone`` at its end."""
        try:
            data = os.read(self.input, READ_BYTES)
        except OSError:
            raise TerminalGone from None
        if not data:
            raise TerminalGone
        return data

    def put(self, data: bytes) -> None:
        self._queue += data

    def forget(self) -> None:
        """Drop what was not written."""
        self._queue.clear()

    def flush(self) -> None:
        """Write what the terminal takes now. Raises ``TerminalGone``."""
        try:
            while self._queue:
                del self._queue[: os.write(self.output, self._queue[: self._most])]
                if self._most == BLOCKING_WRITE_BYTES:
                    return
        except BlockingIOError:
            return
        except OSError:
            raise TerminalGone from None

    def finish(self, data: bytes, *, answers_outstanding: bool = False) -> None:
        """Write the last bytes, to a terminal that takes them in time; then take the answers that it still owes."""
        fence = Fence(*self.size()) if answers_outstanding else None
        self.put(data + (fence.question if fence else b""))
        deadline = time.monotonic() + FAREWELL_S
        try:
            while self._queue and (left_s := deadline - time.monotonic()) > 0:
                if select.select([], [self.output], [], left_s)[1]:
                    self.flush()
            if fence is not None and not self._queue:
                fence.swallow(self.input, self.read)
        except TerminalGone:
            return
        finally:
            self.forget()


def say(line: str) -> None:
    """Print a line of our own, unless the terminal is too slow to take it."""
    terminal = Terminal()
    terminal.finish(f"{visible(line)}\r\n".encode())
    terminal.close()


class Signals:
    """Turns signals into bytes on a pipe, one each, for as long as it is entered."""

    def __enter__(self) -> Signals:
        self.fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._handlers = {number: signal.signal(number, _only_wake) for number in WATCHED_SIGNALS}
        self._wakeup = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self.fd)
        os.close(self._write_fd)

    def read(self) -> set[int]:
        try:
            return set(os.read(self.fd, 512))
        except BlockingIOError:
            return set()


def _only_wake(number: int, frame: FrameType | None) -> None:
    """The byte in the pipe says which signal came."""
