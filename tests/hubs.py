"""A real hub in a process of its own, and clients for it: HTTP over both sockets, and WebSockets."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import websockets

from hitchpost.hub import client as hub_client
from hitchpost.hub.http.tokens import create_bearer
from hitchpost.store.home import is_copy
from hitchpost.system.shortpath import ShortPath
from tests.ground import Ground
from tests.support import Answer, Hitch, eventually
from tests.warm import Process, call, spawn

SNAPSHOT, OUTPUT, GAP = 0, 1, 2


@dataclass(slots=True)
class HubProcess:
    """The hub of a test's home. ``url`` is its TCP address, without a slash at its end."""

    ground: Ground
    process: Process | None = None
    url: str = ""
    _tokens: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> str:
        return str(self.ground.home)

    def start(
        self,
        *wrapper: str,
        host: str = "127.0.0.1",
        port: int = 0,
        reach: tuple[str, ...] = (),
        warm: bool = True,
        **env: str,
    ) -> None:
        """Start the hub and wait until it answers. A page that is open finds it again at the same ``port``.

        ``reach`` are a certificate and its key, or two empty texts, and public URLs.

        ``wrapper`` is a command that becomes the one behind it. With one, or when it is not to be ``warm``, the hub
        starts from nothing.
        """
        with open(os.path.join(self.home, "hub.log"), "ab") as log, open(os.devnull) as nothing:
            self.process = spawn(
                "hitchpost.hub",
                [host, str(port), *reach],
                {**Hitch.environment(), **env},
                (nothing.fileno(), log.fileno(), log.fileno()),
                session=True,
                wrapper=wrapper,
                warm=warm,
            )
        self.wait()

    def wait(self) -> None:
        """Until it answers."""
        eventually(self._answers, 60, what="the hub to answer")
        with open(os.path.join(self.home, "hub.json")) as file:
            self.url = json.load(file)["url"].rstrip("/")

    def _answers(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"the hub has ended: {self.log()}")
        try:
            return self.ask("GET", "/api/health")["pid"] == self.process.pid
        except hub_client.NoHub:
            return False

    def log(self) -> str:
        with open(os.path.join(self.home, "hub.log")) as file:
            return file.read()

    def ask(self, method: str, path: str, body: object = None, timeout_s: float = 60) -> Any:
        """Over the Unix socket, as the command line does."""
        return hub_client.ask(self.home, method, path, body, timeout_s=timeout_s)

    def kill(self) -> None:
        """``kill -9``."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def token(self, role: str = "owner") -> str:
        if role not in self._tokens:
            if is_copy(self.home):  # what is written there by anybody but the hub is lost
                self._tokens[role] = self.ask("POST", "/api/tokens", {"name": "test", "role": role})["token"]
            else:
                self._tokens[role] = create_bearer(self.home, "test", role)
        return self._tokens[role]

    def http(self, role: str | None = "owner", **headers: str) -> httpx2.Client:
        """A client over TCP, with a bearer token unless ``role`` is None."""
        signed = {"Authorization": f"Bearer {self.token(role)}"} if role else {}
        return httpx2.Client(base_url=self.url, headers={**signed, **headers}, timeout=60)

    @asynccontextmanager
    async def ws(self, role: str = "owner") -> AsyncIterator[Socket]:
        """A WebSocket over the Unix socket for the owner, over TCP with a token for others."""
        if role == "owner":
            with ShortPath(self.home, hub_client.SOCKET) as path:
                made = await websockets.unix_connect(path, "ws://hub/ws", max_size=None, compression=None)
        else:
            headers = {"Authorization": f"Bearer {self.token(role)}"}
            address = self.url.replace("http", "ws") + "/ws"
            made = await websockets.connect(address, additional_headers=headers, max_size=None, compression=None)
        try:
            yield Socket(made)
        finally:
            await made.close()


@dataclass(slots=True)
class Frame:
    kind: int
    channel: int
    offset: int
    data: bytes


class Socket:
    """A WebSocket client. Messages that nobody waited for stay in ``events`` and ``frames``, in order."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.events: list[dict[str, Any]] = []
        self.frames: list[Frame] = []

    async def say(self, kind: str, **fields: Any) -> None:
        await self.connection.send(json.dumps({"type": kind, **fields}))

    async def read(self, timeout_s: float = 60) -> dict[str, Any] | Frame:
        message = await asyncio.wait_for(self.connection.recv(), timeout_s)
        if isinstance(message, str):
            event: dict[str, Any] = json.loads(message)
            self.events.append(event)
            return event
        frame = Frame(
            message[0], int.from_bytes(message[1:5], "big"), int.from_bytes(message[5:13], "big"), message[13:]
        )
        self.frames.append(frame)
        return frame

    async def until(self, kind: str, session: str = "", timeout_s: float = 60, **fields: Any) -> dict[str, Any]:
        """The next event of that type, session and fields; those that came already count."""
        looked = 0
        while True:
            for event in self.events[looked:]:
                looked += 1
                fits = event["type"] == kind and session in ("", event.get("sessionId"))
                if fits and all(event.get(key) == value for key, value in fields.items()):
                    self.events.remove(event)
                    return event
            await self.read(timeout_s)

    async def attach(self, session: str, **fields: Any) -> dict[str, Any]:
        await self.say("session.attach", sessionId=session, **fields)
        return await self.until("session.attached", session)

    def shown(self, channel: int) -> bytes:
        """Everything that came on a channel, snapshot and output, one behind the other."""
        return b"".join(frame.data for frame in self.frames if frame.channel == channel and frame.kind != GAP)

    async def until_shown(self, channel: int, text: bytes, timeout_s: float = 60) -> bytes:
        while text not in self.shown(channel):
            await self.read(timeout_s)
        return self.shown(channel)


def refused(host: str = "127.0.0.1", port: str = "0") -> Answer:
    """What the hub's process says and ends with where it must not serve."""
    code, out, err = call([host, port], b"", Hitch.environment(), os.curdir, 30, module="hitchpost.hub")
    return Answer((host, port), code, out.decode(), err.decode())


@contextmanager
def hub_of(ground: Ground, *wrapper: str) -> Iterator[HubProcess]:
    made = HubProcess(ground)
    made.start(*wrapper)
    try:
        yield made
    finally:
        if made.process is not None and made.process.poll() is None:
            made.process.send_signal(signal.SIGCONT)
            made.stop()
