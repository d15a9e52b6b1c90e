"""The client side of a keeper's control socket, blocking. Whoever talks to a keeper talks through this."""

from __future__ import annotations

import time
from _socket import AF_UNIX, SOCK_STREAM, socket

from hitchpost import lightjson, wire
from hitchpost.errors import HitchpostError
from hitchpost.runtimes.kept import is_kept as is_kept
from hitchpost.runtimes.kept import lock_path as lock_path
from hitchpost.system.shortpath import ShortPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TIMEOUT_S = 5.0
CONNECT_AGAIN_S = 0.01


class NotReached(HitchpostError):
    """The base of what talking to a keeper may fail with."""


class NoKeeper(NotReached):
    """Raised when nobody listens: the run has ended, or has not begun."""

    exit_code = 4
    http_status = 409
    code = "wrong_state"


class Silent(NotReached):
    """Raised when the keeper is there, and does not answer in time or does not read what it is sent."""

    http_status = 503
    code = "busy"


class Link:
    """One connection. Frames that nobody asked for are kept in order until ``frames`` is called."""

    def __init__(self, sock: socket, welcome: dict[str, Any], rest: bytearray) -> None:
        self.socket, self.welcome = sock, welcome
        self.closed = False
        self._inbox = rest
        self._frames: list[tuple[bytes, bytes]] = []
        self._next_id = 1

    @classmethod
    def connect(
        cls,
        run_folder: str,
        *,
        role: str = "control",
        cols: int = 0,
        rows: int = 0,
        read_only: bool = False,
        timeout_s: float = TIMEOUT_S,
    ) -> Link:
        sock = socket(AF_UNIX, SOCK_STREAM)
        sock.settimeout(timeout_s)
        try:
            with ShortPath(run_folder, wire.SOCKET) as path:
                _connect(sock, path, timeout_s)
            sock.sendall(wire.hello(role, cols, rows, read_only=read_only))
            link = cls(sock, {}, bytearray())
            _, payload = link._wait_for((wire.WELCOME,), timeout_s)
            link.welcome = _object(payload)
            return link
        except TimeoutError:
            sock.close()
            raise Silent("the keeper does not answer in time") from None
        except OSError as error:
            sock.close()
            raise NoKeeper(str(error)) from None
        except BaseException:
            sock.close()
            raise

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        self.send_frame(wire.frame(kind, payload))

    def send_frame(self, frame: bytes) -> None:
        """Raises ``NoKeeper`` when the other side is gone, ``Silent`` when it does not read."""
        self.socket.settimeout(TIMEOUT_S)
        try:
            self.socket.sendall(frame)
        except TimeoutError:
            raise Silent("the keeper does not answer in time") from None
        except OSError as error:
            raise NoKeeper(str(error)) from None

    def follow(self, offset: int) -> None:
        """Ask to be poked once the log reaches further than ``offset``."""
        self.send_frame(wire.follow(offset))

    def resize(self, cols: int, rows: int) -> None:
        self.send_frame(wire.resize(cols, rows))

    def request(self, op: str, *, timeout_s: float = TIMEOUT_S, **fields: object) -> dict[str, Any]:
        """Ask and wait for the reply. Raises ``NoKeeper`` when the keeper ends first, ``Silent`` when time is up."""
        number = self._next_id
        self._next_id += 1
        self.send_frame(wire.request(number, op, **fields))
        while True:
            _, payload = self._wait_for((wire.REPLY,), timeout_s)
            reply: dict[str, Any] = _object(payload)
            if reply.get("id") == number:
                return reply

    def frames(self, timeout_s: float | None) -> list[tuple[bytes, bytes]]:
        """The frames that came; waits for at least one. Empty when time is up; ``closed`` tells the end."""
        if not self._frames and not self.closed:
            self._read(timeout_s)
        frames, self._frames = self._frames, []
        return frames

    def _read(self, timeout_s: float | None) -> None:
        self.socket.settimeout(timeout_s)
        try:
            data = self.socket.recv(65536)
        except (TimeoutError, BlockingIOError):
            return
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return
        self._inbox += data
        self._frames += wire.take_frames(self._inbox)

    def _wait_for(self, kinds: tuple[bytes, ...], timeout_s: float) -> tuple[bytes, bytes]:
        deadline = time.monotonic() + timeout_s
        looked = 0
        while True:
            for position in range(looked, len(self._frames)):
                if self._frames[position][0] in kinds:
                    return self._frames.pop(position)
            looked = len(self._frames)
            if self.closed:
                raise NoKeeper("the keeper closed the connection")
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise Silent("the keeper does not answer in time")
            self._read(left_s)


def _connect(sock: socket, path: str, timeout_s: float) -> None:
    """A keeper that has not heard all who wait is there. Raises ``OSError``; ``TimeoutError`` when time is up."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return sock.connect(path)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError from None
            time.sleep(CONNECT_AGAIN_S)


def exit_event(frames: list[tuple[bytes, bytes]]) -> dict[str, Any] | None:
    """The event that tells of the run's end, when it is among ``frames``."""
    for kind, payload in frames:
        if kind == wire.EVENT:
            event: dict[str, Any] = _object(payload)
            if event.get("event") == "exit":
                return event
    return None


def _object(payload: bytes) -> dict[str, Any]:
    value = lightjson.loads(payload)
    if not isinstance(value, dict):
        raise wire.BadFrame(f"expected an object, but got {payload[:40]!r}")
    return value
