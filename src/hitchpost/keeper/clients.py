"""The control socket: who is connected, what they may do, and what they are told.

A client costs a few hundred bytes and can slow nobody: output is not sent but read from the log, a follower is told
once how far it reaches and asks again, and a client that leaves its own messages unread is disconnected.
"""

from __future__ import annotations

import errno
import os
import select
import time
from _socket import AF_UNIX, SOCK_STREAM, socket

from hitchpost import lightjson, wire
from hitchpost.store import files
from hitchpost.system.peer import why_refused
from hitchpost.system.shortpath import ShortPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MOST_CLIENTS = 256
PLACES_FOR_REQUESTS = 16
"""Beyond the most there may be: whoever asks something and leaves is heard, however many are attached."""
BRIEF_S = 1.0
"""So long one of them keeps its place, whoever else comes. The others wait in the queue of the kernel."""
MOST_WAITING = 1024
"""In that queue. Whoever comes then is told to try again, and does."""
MOST_UNREAD_BYTES = 256 * 1024
READ_BYTES = 65536


class Client:
    """One connection. ``follow`` is the offset beyond which it wants to be told, None when it was told.

    The one whose ``typed`` is greatest typed last. A ``brief`` one has come when there was no place left: it may ask,
    and may not stay to look.
    """

    def __init__(self, fd: int, brief: bool = False) -> None:
        self.fd, self.brief = fd, brief
        self.since = time.monotonic()
        self.greeted = False
        self.attached = False
        self.read_only = False
        self.cols = self.rows = 0
        self.typed = 0
        self.follow: int | None = None
        self.inbox = bytearray()
        self.outbox = bytearray()
        self.stuck = False
        self.most_unread_bytes = MOST_UNREAD_BYTES


class Clients:
    """Accepts, reads and tells clients. ``on_close`` is called for each that goes, whoever closed it.

    ``hears`` is false while whoever comes must wait for a place: until somebody goes, or ``check`` is called.
    """

    def __init__(self, run_folder: str, poll: select.epoll, on_close: Callable[[Client], None]) -> None:
        self.on_close = on_close
        self.path = os.path.join(run_folder, wire.SOCKET)
        self.poll = poll
        self.by_fd: dict[int, Client] = {}
        self.fd = self._spare = -1
        self.hears = True
        self._run_folder = run_folder

    def open(self) -> None:
        """Listen, from now on. Raises ``OSError``."""
        self._listen()
        self._spare = _spare()

    def _listen(self) -> None:
        listening = socket(AF_UNIX, SOCK_STREAM, 0)
        try:
            with ShortPath(self._run_folder, wire.SOCKET) as path:
                files.discard(self.path)
                listening.bind(path)
            os.chmod(self.path, 0o600)
            self._place = _place(self.path)
            listening.listen(MOST_WAITING)
            listening.setblocking(False)
            self.poll.register(listening.fileno(), select.EPOLLIN)
        except BaseException:
            listening.close()
            raise
        self._socket, self.fd, self.hears = listening, listening.fileno(), True

    def check(self) -> None:
        """A socket that somebody removed or replaced is made again. Raises ``OSError``; those who are here stay.

        Whoever waits for a place is heard again.
        """
        self._hear(True)
        if _place(self.path) != self._place:
            old = self._socket
            self._listen()
            self.poll.unregister(old.fileno())
            old.close()

    def accept(self) -> None:
        """Take the connections that wait. A process of another user or in a container is turned away."""
        while self._has_place():
            try:
                fd, _ = self._socket._accept()  # type: ignore[attr-defined]
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    self._turn_away()
                return
            if why_refused(fd):
                os.close(fd)
                continue
            if len(self.by_fd) >= MOST_CLIENTS + PLACES_FOR_REQUESTS:
                self.close(self._first_brief())
            os.set_blocking(fd, False)
            self.by_fd[fd] = Client(fd, brief=len(self.by_fd) >= MOST_CLIENTS)
            self.poll.register(fd, select.EPOLLIN)

    def _has_place(self) -> bool:
        """Whether one more may come now. If not, nobody is heard until somebody goes, or a second has passed."""
        is_full = len(self.by_fd) >= MOST_CLIENTS + PLACES_FOR_REQUESTS
        if is_full and time.monotonic() - self._first_brief().since < BRIEF_S:
            self._hear(False)
            return False
        return True

    def _first_brief(self) -> Client:
        return next(client for client in self.by_fd.values() if client.brief)

    def _hear(self, hears: bool) -> None:
        if hears != self.hears:
            self.hears = hears
            self.poll.modify(self.fd, select.EPOLLIN if hears else 0)

    def _turn_away(self) -> None:
        """No descriptor is left. A connection that nobody takes would wake the keeper for ever: take it and hang up."""
        if self._spare >= 0:
            os.close(self._spare)
        try:
            os.close(self._socket._accept()[0])  # type: ignore[attr-defined]
        except BlockingIOError:
            pass
        self._spare = _spare()

    def read(self, client: Client) -> list[tuple[bytes, bytes]]:
        """The frames that came. The client is closed when it is gone or does not speak our language."""
        try:
            data = os.read(client.fd, READ_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.close(client)
            return []
        client.inbox += data
        try:
            return wire.take_frames(client.inbox)
        except wire.BadFrame:
            self.close(client)
            return []

    def send(self, client: Client, kind: bytes, payload: bytes) -> None:
        """Send now what fits, keep the rest; a client that does not read is closed."""
        if client.fd < 0:
            return
        client.outbox += wire.frame(kind, payload)
        self.flush(client)
        if len(client.outbox) > client.most_unread_bytes:
            self.close(client)

    def send_json(self, client: Client, kind: bytes, value: dict[str, object]) -> None:
        self.send(client, kind, lightjson.dumps(value).encode())

    def tell_all(self, event: dict[str, object]) -> None:
        for client in list(self.by_fd.values()):
            if client.greeted:
                self.send_json(client, wire.EVENT, event)

    def poke(self, end: int) -> None:
        """Tell followers that wait for more than they have."""
        for client in list(self.by_fd.values()):
            if client.follow is not None and client.follow < end:
                client.follow = None
                self.send(client, wire.POKE, end.to_bytes(8, "big"))

    def flush(self, client: Client) -> None:
        try:
            while client.outbox:
                del client.outbox[: os.write(client.fd, client.outbox)]
        except BlockingIOError:
            pass
        except OSError:
            client.outbox.clear()  # it has left, and is closed when all that it said before has been read
        if client.stuck != bool(client.outbox):
            client.stuck = not client.stuck
            self.poll.modify(client.fd, select.EPOLLIN | (select.EPOLLOUT if client.stuck else 0))

    def close(self, client: Client) -> None:
        if client.fd >= 0:
            del self.by_fd[client.fd]
            os.close(client.fd)
            client.fd = -1
            self._hear(True)
            self.on_close(client)

    def unread(self) -> bool:
        return any(client.outbox for client in self.by_fd.values())

    def close_all(self) -> None:
        files.discard(self.path)
        self.hears = True  # for nobody: there is nothing to hear on
        self._socket.close()
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        for client in list(self.by_fd.values()):
            self.close(client)


def _spare() -> int:
    """A descriptor to give up when there is no other; -1 when there is not even this one."""
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _place(path: str) -> tuple[int, int] | None:
    """What names a file for ever; None when there is none."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
