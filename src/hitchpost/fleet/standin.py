"""In the place of a keeper that is in a pod: the keeper's lock and socket in a hub's copy of the session's folder.

Clients of a keeper find what they expect. How far the log reaches they hear from the copy; all else goes through the
link to the keeper, in a channel for each client. While the link is down they hear nothing, as from a keeper that does
not answer. The lock is held until the end of the run is known: no pod is taken for dead because nobody reaches it.
"""

from __future__ import annotations

import asyncio
import os
from _socket import AF_UNIX, SOCK_STREAM
from base64 import b64encode
from socket import socket
from typing import cast

from hitchpost import lightjson, wire
from hitchpost.errors import FAILURES, MALFORMED
from hitchpost.fleet.frames import WINDOW_BYTES
from hitchpost.fleet.link import PodLink
from hitchpost.runtimes.kept import take_lock
from hitchpost.store import files, images
from hitchpost.store.home import make_run_folder
from hitchpost.system import process
from hitchpost.system.peer import why_refused
from hitchpost.system.shortpath import ShortPath

MOST_CLIENTS = 272
"""As many as a keeper has, with those that only ask. Whoever comes then is turned away, and comes again."""
MOST_WAITING = 1024
MOST_UNREAD_BYTES = 256 * 1024
PICTURE_S = 30.0
SIGN_EVERY_S = 10.0
CHECK_EVERY_S = 1.0


class StandIn:
    """Of one run. ``hold`` first, in any thread; then ``listen``, in the event loop."""

    def __init__(self, link: PodLink, run: int) -> None:
        self.link, self.run = link, run
        self.run_folder = os.path.join(link.session_folder, "runs", str(run))
        self.path = os.path.join(self.run_folder, wire.SOCKET)
        self.clients: list[LocalClient] = []
        self.is_over = False
        self._lock = -1
        self._server: asyncio.Server | None = None
        self._place: tuple[int, int] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._checks = 0

    def hold(self, lock_fd: int | None = None) -> None:
        """Take the keeper's lock and name this process in it; with ``lock_fd``, who starts the run has it already.

        Raises ``Refused`` when another process has it.
        """
        make_run_folder(self.link.session_folder, self.run)
        self._lock = take_lock(self.run_folder, self.link.session) if lock_fd is None else os.dup(lock_fd)
        pid = os.getpid()
        name = f"{pid} {process.start_time(pid)} {process.boot_id()} {process.pid_namespace()}\n"
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, name.encode(), 0)

    async def listen(self) -> None:
        """Serve clients, from now on. Raises ``OSError``."""
        loop = asyncio.get_running_loop()
        listening = await loop.run_in_executor(None, self._bind)
        self._server = await loop.create_unix_server(lambda: LocalClient(self), sock=listening, backlog=MOST_WAITING)
        self.link.follow(self.run, self._on_end, self.end)
        self._timer = loop.call_later(CHECK_EVERY_S, self._check)
        if self.run in self.link.over:
            self.end()

    def _bind(self) -> socket:
        listening = socket(AF_UNIX, SOCK_STREAM)
        try:
            with ShortPath(self.run_folder, wire.SOCKET) as path:
                files.discard(self.path)
                listening.bind(path)
            os.chmod(self.path, 0o600)
            self._place = _place(self.path)
            listening.setblocking(False)
        except BaseException:
            listening.close()
            raise
        return listening

    def _check(self) -> None:
        """A socket that somebody removed is made again; the lock is touched while the keeper is known to live."""
        self._timer = asyncio.get_running_loop().call_later(CHECK_EVERY_S, self._check)
        self._checks += 1
        if self._checks * CHECK_EVERY_S >= SIGN_EVERY_S and self.link.kept == self.run:
            self._checks = 0
            os.utime(self._lock)
        if _place(self.path) != self._place and not self.is_over:
            if self._server is not None:
                self._server.close()
            self._timer.cancel()
            self.link.start(self._listen_again())

    async def _listen_again(self) -> None:
        try:
            await self.listen()
        except FAILURES:
            self._timer = asyncio.get_running_loop().call_later(CHECK_EVERY_S, self._check)

    @property
    def end_of_log(self) -> int:
        return self.link.copy.ends.get(self.run, 0)

    def _on_end(self, end: int) -> None:
        for client in self.clients:
            client.poke(end)

    def end(self) -> None:
        """The end of the run is known: nobody listens here any more, and the lock is free."""
        if self.is_over:
            return
        self.is_over = True
        self.link.unfollow(self.run)
        if self._timer is not None:
            self._timer.cancel()
        if self._server is not None:
            self._server.close()
        files.discard(self.path)
        for client in list(self.clients):
            client.close()
        self.let_go()

    def let_go(self) -> None:
        """Of the lock. This process does not speak for the keeper any more."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def forsake(self) -> None:
        """This hub ends, the run does not: clients are turned away, and another hub takes the keeper's place."""
        self.end()


class LocalClient(asyncio.Protocol):
    """A client of the keeper, on the socket in the copy. What it leaves unread, beyond a bound, disconnects it."""

    _transport: asyncio.Transport

    def __init__(self, standin: StandIn) -> None:
        self.standin, self.link = standin, standin.link
        self.channel = 0
        self._inbox = bytearray()
        self._hello: bytes | None = None
        self._welcomed = False
        self._size: tuple[int, int] | None = None
        self._follow: int | None = None
        self._unsaid: list[bytes] = []
        self._sending: asyncio.Task[None] | None = None
        self._sent: set[str] = set()
        self._under_way = 0
        self._is_paused = False

    # the client ---------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("socket")
        is_late = self.standin.is_over  # it came just before the socket was closed: nobody would close this one
        if is_late or len(self.standin.clients) >= MOST_CLIENTS or why_refused(peer.fileno()):
            self._transport.abort()
            return
        self.standin.clients.append(self)

    def connection_lost(self, error: Exception | None) -> None:
        if self in self.standin.clients:
            self.standin.clients.remove(self)
        self.link.leave(self)

    def data_received(self, data: bytes) -> None:
        self._inbox += data
        try:
            found = wire.take_frames(self._inbox)
        except wire.BadFrame:
            self._transport.abort()
            return
        for kind, payload in found:
            self._on_said(kind, payload)
        self._hold()

    def _on_said(self, kind: bytes, payload: bytes) -> None:
        if self._hello is None:
            if kind != wire.HELLO:
                self._transport.abort()
                return
            self._hello = payload
            self.link.join(self)
        elif kind == wire.FOLLOW:
            self._follow = int.from_bytes(payload[:8], "big")
            self.link.looked_at()
            self.poke(self.standin.end_of_log)
        else:
            self._unsaid.append(wire.frame(kind, payload))
            self._say_on()

    def _say_on(self) -> None:
        """Say what waits, in order. Pictures that go with a prompt go first: the agent looks for them in its pod."""
        while self._unsaid and self.channel and self._sending is None:
            frame = self._unsaid[0]
            if names := _images_of(frame) - self._sent:
                self._sending = self.link.start(self._send_images(names))
                return
            self._say(self._unsaid.pop(0))

    async def _send_images(self, names: set[str]) -> None:
        loop, folder = asyncio.get_running_loop(), self.link.session_folder
        try:
            for name in names:
                try:
                    data, _ = await loop.run_in_executor(None, images.read, folder, name)
                    told = b64encode(data).decode()
                    await self.link.ask({"op": "put_image", "data": told}, PICTURE_S)
                except FAILURES:
                    pass  # the agent says that there is no such picture
                self._sent.add(name)
        finally:
            self._sending = None
        self._say_on()
        self._hold()

    def _say(self, frame: bytes) -> None:
        self._under_way += len(frame)
        self.link.say(self, frame)

    def _hold(self) -> None:
        """Read no more while the link is down, or the keeper does not take what was said."""
        waits = (self._hello is not None and not self.channel) or self._sending is not None
        hold = waits or self._under_way > WINDOW_BYTES
        if hold != self._is_paused and not self._transport.is_closing():
            self._is_paused = hold
            (self._transport.pause_reading if hold else self._transport.resume_reading)()

    def poke(self, end: int) -> None:
        if self._follow is not None and self._follow < end and self._welcomed:
            self._follow = None
            self._send(wire.frame(wire.POKE, end.to_bytes(8, "big")))

    def _send(self, frame: bytes) -> None:
        self._transport.write(frame)
        if self._transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            self._transport.abort()

    def close(self) -> None:
        self._transport.close()

    # the link -----------------------------------------------------------------------------------------------------

    def on_link(self) -> None:
        assert self._hello is not None
        self._under_way = 0
        self.link.open_channel(self, self._hello)
        self._say_on()
        self._hold()

    def on_cut(self) -> None:
        self.channel = 0
        self._hold()

    def on_taken(self, size: int) -> None:
        self._under_way = max(0, self._under_way - size)
        self._hold()

    def on_closed(self) -> None:
        """The keeper has hung up; or has ended, and then the end of the run is known in a moment."""
        self.channel = 0
        self._transport.close()

    def on_frame(self, frame: bytes) -> None:
        kind, payload = frame[4:5], frame[wire.HEADER_BYTES :]
        if kind == wire.POKE:
            return
        if kind == wire.WELCOME:
            self._on_welcome(payload)
            return
        self._send(frame)

    def _on_welcome(self, payload: bytes) -> None:
        """The first is for the client; after a cut it is told only what has changed."""
        try:
            told = lightjson.loads(payload)
            assert isinstance(told, dict)
            size = int(told["cols"]), int(told["rows"])
        except (*MALFORMED, AssertionError):
            raise wire.BadFrame(f"expected the welcome of a keeper, but got {payload[:40]!r}") from None
        end = self.standin.end_of_log
        if not self._welcomed:
            self._welcomed = True
            told |= {"first": self.link.copy.first(self.standin.run), "end": end}
            self._send(wire.frame(wire.WELCOME, lightjson.dumps(told).encode()))
        elif size != self._size:
            event = {"event": "resize", "cols": size[0], "rows": size[1], "offset": end}
            self._send(wire.frame(wire.EVENT, lightjson.dumps(event).encode()))
        self._size = size
        self.poke(end)


def _images_of(frame: bytes) -> set[str]:
    """The names of the pictures that go with a prompt."""
    if frame[4:5] != wire.REQUEST or b'"images"' not in frame:
        return set()
    try:
        asked = lightjson.loads(frame[wire.HEADER_BYTES :])
    except ValueError:
        return set()
    names = asked.get("images") if isinstance(asked, dict) else None
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _place(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
