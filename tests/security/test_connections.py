"""Nobody without credentials can use up the hub's descriptors, memory or disk."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn

from hitchpost.hub.http import connection_limits, connections
from hitchpost.hub.http.grants import OWNER, VIEWER, Grant
from hitchpost.hub.http.tokenfile import Credential
from hitchpost.hub.http.tokens import create_bearer
from hitchpost.hub.logfile import STDERR, LogFile
from hitchpost.settings import Settings
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.security.attacks import JSON, ask, bearer, knock, until_running
from tests.support import eventually

LONG_BEFORE_TIME_IS_UP_S = connection_limits.ConnectionLimits.unknown_s / 2


def descriptors(hub: HubProcess) -> int:
    assert hub.process is not None
    return len(os.listdir(f"/proc/{hub.process.pid}/fd"))


@contextmanager
def idle(hub: HubProcess, count: int, first: bytes = b"") -> Iterator[list[socket.socket]]:
    """Connections that say no more than ``first``."""
    url = urlsplit(hub.url)
    assert url.hostname is not None
    with ExitStack() as stack:
        opened = []
        for _ in range(count):
            sock = stack.enter_context(socket.create_connection((url.hostname, url.port or 80), timeout=20))
            sock.send(first.replace(b"%s", url.netloc.encode()))
            opened.append(sock)
        yield opened


def is_closed(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return sock.recv(1000) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "first", [b"", b"GET / HTTP/1.1\r\nHost: ", b"POST /api/sign-in HTTP/1.1\r\nContent-Length: 99\r\n\r\n"]
)
def test_connections_without_credentials_do_not_use_up_the_descriptors(hub: HubProcess, first: bytes) -> None:
    before = descriptors(hub)
    with idle(hub, 400, first) as opened:
        most = before + connection_limits.ConnectionLimits.most_unknown + 8
        eventually(lambda: descriptors(hub) <= most, LONG_BEFORE_TIME_IS_UP_S, what="few places")
        assert ask(hub, "GET", "/api/sessions", [bearer(hub)]).status == 200
        eventually(lambda: is_closed(opened[0]), what="the oldest to be closed")
    assert "Traceback" not in hub.log()


@asynccontextmanager
async def served(app: Any, **limits: float) -> AsyncIterator[int]:
    """A server of our own, with shorter limits."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen(100)
    config = uvicorn.Config(app, http=connections.limited(**limits), lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        yield sock.getsockname()[1]
    finally:
        server.should_exit = True
        await serving


async def hello(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/known":
        connections.recognise(scope)
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


ASK = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"
HALF = {
    "head": b"GET /known HTTP/1.1\r\nHost",
    "body": b"POST /known HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
}


async def until_closed(reader: asyncio.StreamReader) -> float:
    began = time.monotonic()
    try:
        async with asyncio.timeout(20):
            while await reader.read(1000):
                pass
    except ConnectionResetError:
        pass
    return time.monotonic() - began


def test_who_does_not_become_known_is_cut_off_whatever_it_does() -> None:
    async def scene() -> None:
        async with served(hello, unknown_s=0.5) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ASK % b"unknown")
            assert (await reader.readuntil(b"ok")).endswith(b"ok")
            writer.write(b"GET ")
            assert await until_closed(reader) < 10
            writer.close()

    asyncio.run(scene())


@pytest.mark.parametrize("half", HALF)
def test_a_request_of_somebody_known_has_to_come_to_its_end(half: str) -> None:
    async def scene() -> None:
        async with served(hello, request_s=0.5) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ASK % b"known")
            assert (await reader.readuntil(b"ok")).endswith(b"ok")
            writer.write(HALF[half])
            assert await until_closed(reader) < 10
            writer.close()

    asyncio.run(scene())


def test_who_is_known_stays_when_many_come_who_are_not() -> None:
    async def scene() -> None:
        async with served(hello, most_unknown=3) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ASK % b"known")
            assert (await reader.readuntil(b"ok")).endswith(b"ok")
            others = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
            writer.write(ASK % b"known")
            assert (await reader.readuntil(b"ok")).endswith(b"ok")
            for other, _ in others[:17]:
                await until_closed(other)
            assert not others[-1][0].at_eof()
            for _, opened in (*others, (reader, writer)):
                opened.close()

    asyncio.run(scene())


def known_as(key: str, role: str) -> Credential:
    return Credential(key, "script", Grant(role))


WHO = {
    "/ann": known_as("ann", OWNER),
    "/bob": known_as("bob", OWNER),
    "/eve": known_as("eve", VIEWER),
    "/vic": known_as("vic", VIEWER),
}


class Signed:
    """An app that knows who asks by the path, and answers slowly when it is told to."""

    def __init__(self) -> None:
        self.waits: list[asyncio.Event] = []
        self.asked = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path, _, slowly = scope["path"].partition("-")
        connections.recognise(scope, WHO[path])
        if slowly:
            self.waits.append(asyncio.Event())
            self.asked.set()
            await self.waits[-1].wait()
        await hello({**scope, "state": {}}, receive, send)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def of(cls, port: int, who: str, *, slow: bool = False) -> Client:
        """Connected, and known: it has been answered, unless its request is a slow one."""
        made = cls(*await asyncio.open_connection("127.0.0.1", port))
        made.writer.write(ASK % f"{who}{'-slow' if slow else ''}".encode())
        if not slow:
            assert (await made.reader.readuntil(b"ok")).endswith(b"ok")
        return made

    async def is_answered(self) -> bool:
        try:
            async with asyncio.timeout(20):
                return (await self.reader.readuntil(b"ok")).endswith(b"ok")
        except (ConnectionResetError, asyncio.IncompleteReadError):
            return False

    async def is_open(self) -> bool:
        self.writer.write(ASK % b"ann")
        return await self.is_answered()


def test_nobody_takes_the_places_of_others_and_a_viewer_none_of_an_owner() -> None:
    async def scene() -> None:
        app = Signed()
        async with served(app, most_known=6, most_of_one=4) as port:
            owner = await Client.of(port, "ann", slow=True)
            idle = await Client.of(port, "ann")
            mate = await Client.of(port, "vic")
            await app.asked.wait()
            eves = [await Client.of(port, "eve") for _ in range(20)]
            for client in eves[:17]:
                assert await until_closed(client.reader) < 10
            for wait in app.waits:
                wait.set()
            assert await owner.is_answered()
            assert await idle.is_open()
            assert await mate.is_open()
            for client in (owner, idle, mate, *eves):
                client.writer.close()

    asyncio.run(scene())


def test_a_request_that_is_being_answered_is_the_last_to_be_cut() -> None:
    async def scene() -> None:
        app = Signed()
        async with served(app, most_of_one=3) as port:
            busy = await Client.of(port, "eve", slow=True)
            await app.asked.wait()
            others = [await Client.of(port, "eve") for _ in range(10)]
            app.waits[0].set()
            assert await busy.is_answered()
            for client in (busy, *others):
                client.writer.close()

    asyncio.run(scene())


def test_the_places_of_owners_are_shared_between_them() -> None:
    async def scene() -> None:
        async with served(Signed(), most_known=4) as port:
            ann = await Client.of(port, "ann")
            bobs = [await Client.of(port, "bob") for _ in range(8)]
            assert await until_closed(bobs[0].reader) < 10
            assert await ann.is_open()
            for client in (ann, *bobs):
                client.writer.close()

    asyncio.run(scene())


@pytest.mark.ids("S14")
def test_S14_a_viewer_with_many_connections_cuts_off_no_request_of_the_owner(ground: Ground, hub: HubProcess) -> None:
    patient = Settings(grace_s=600)
    dev = ground.begin_sh("trap '' TERM HUP INT; while :; do sleep 1; done", name="dev", settings=patient)
    until_running(hub, dev.id)
    answers: list[int] = []

    def stop() -> None:
        asking = http.client.HTTPConnection(urlsplit(hub.url).netloc, timeout=300)
        with closing(asking), suppress(OSError, http.client.HTTPException):
            asking.request("POST", f"/api/sessions/{dev.id}/stop", b"{}", dict([bearer(hub), JSON]))
            answers.append(asking.getresponse().status)

    stopping = threading.Thread(target=stop)
    stopping.start()
    eventually(lambda: dev.state == "stopping", what="the request")
    token = create_bearer(hub.home, "shared", "viewer", frozenset([dev.id]))
    first = b"GET /api/me HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer " + token.encode() + b"\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(300):
            (sock,) = stack.enter_context(idle(hub, 1, first))
            with suppress(ConnectionError):
                sock.recv(1000)
                sock.send(b"GET ")  # or it would soon be closed, because it has nothing to ask
        os.kill(dev.agent_pid(), signal.SIGKILL)
        stopping.join()
    assert answers == [200]


# the log --------------------------------------------------------------------------------------------------------


def test_a_websocket_that_is_refused_is_no_mistake_of_ours(hub: HubProcess) -> None:
    assert knock(hub, "/ws?ticket=wrong", [("Origin", hub.url)]).status == 401
    assert ask(hub, "GET", "/api/health", [bearer(hub)]).status == 200
    assert [line for line in hub.log().splitlines() if json.loads(line)["level"] in ("error", "warning")] == []


def test_every_line_of_the_log_is_json_also_for_requests_that_are_none(hub: HubProcess) -> None:
    with idle(hub, 3, b"\x16\x03\x01 no request at all\r\n\r\n") as opened:
        eventually(lambda: all(map(is_closed, opened)), what="the answer")
    lines = [json.loads(line) for line in hub.log().splitlines()]
    assert {"event", "level", "timestamp"} <= set.intersection(*map(set, lines))
    assert any("Invalid HTTP request" in line["event"] for line in lines)


def test_a_hub_that_cannot_start_says_why_in_json(ground: Ground, hub: HubProcess) -> None:
    second = HubProcess(ground)
    with pytest.raises(Exception):  # noqa: B017
        second.start()
    assert "another hub serves this home" in json.loads(hub.log().splitlines()[-1])["event"]


def holds(path: Path, text: str) -> bool:
    return path.exists() and text in path.read_text()


def test_a_log_that_has_grown_is_begun_anew(tmp_path: Path) -> None:
    path, older = tmp_path / "hub.log", tmp_path / "hub.log.1"
    kept = os.dup(STDERR)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(log, STDERR)
        stream = LogFile(str(path), most_bytes=100)
        for begun in range(3):
            for number in range(10):
                stream.write(f"line {begun}{number:03}\n")
            last = f"line {begun}009\n"
            eventually(partial(holds, older, last), what="a new log")
            eventually(lambda: stream._turning is None, what="the new log in the place of the old one")
            assert path.read_text() == ""
        stream.write("the last line\n")
    finally:
        os.dup2(kept, STDERR)
        os.close(kept)
        os.close(log)
    assert sorted(os.listdir(tmp_path)) == ["hub.log", "hub.log.1"]
    assert older.read_text() == "".join(f"line 2{number:03}\n" for number in range(10))
    assert path.read_text() == "the last line\n"
    assert path.stat().st_mode & 0o777 == 0o600
