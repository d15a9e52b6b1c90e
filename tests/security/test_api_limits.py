"""S14: guessing is slowed down, and nothing that a client sends is without a bound."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import websockets

from hitchpost.hub.client import HubRefused
from hitchpost.hub.http.connection_limits import ConnectionLimits
from hitchpost.hub.http.gate import MOST_BODY_BYTES
from hitchpost.hub.http.tokens import GUESS_S, MOST_GUESSES, Tokens, create_bearer
from hitchpost.hub.http.ws import KEPT_FOR_OWNERS, MOST_CLIENTS, MOST_OF_ONE
from tests.ground import Ground
from tests.hubs import HubProcess, hub_of
from tests.security.attacks import (
    JSON,
    ask,
    bearer,
    connected,
    host_of,
    knock,
    raw,
    sign_in,
    until_running,
)
from tests.signing import challenged, proved

LONG_BEFORE_TIME_IS_UP_S = ConnectionLimits.unknown_s / 2
MOST_HEARD_BYTES = 64 << 10
FEW_DESCRIPTORS = 256


@pytest.mark.ids("S14")
def test_S14_too_many_wrong_secrets_are_slowed_down_and_right_ones_are_not(hub: HubProcess) -> None:
    page = sign_in(hub)
    for number in range(MOST_GUESSES):
        assert ask(hub, "GET", "/api/me", [("Authorization", f"Bearer wrong{number}")]).status == 401
    for answer in (
        ask(hub, "GET", "/api/me", [("Authorization", "Bearer another")]),
        knock(hub, "/ws?ticket=another", [("Origin", hub.url)]),
    ):
        assert (answer.status, answer.code, answer.header("Retry-After")) == (429, "too_many_guesses", "60")
    late = challenged(hub.url, page.name, bytes(32))
    assert proved(late)[0] == 429
    assert ask(hub, "GET", "/api/me", [("Authorization", "Bearer wrong1")]).status == 401
    assert ask(hub, "GET", "/api/me").status == 401
    assert ask(hub, "GET", "/api/me", [bearer(hub)]).status == 200
    assert ask(hub, "GET", "/api/me", page.signed).status == 200
    assert page.again() is not None
    assert sign_in(hub).again() is not None


@pytest.mark.ids("S14")
def test_S14_guesses_are_forgotten_after_a_minute_and_take_no_memory(home: Path) -> None:
    now = 1000.0
    tokens = Tokens(str(home), clock=lambda: now)
    assert [tokens.guessed(str(number)) for number in range(1000)] == [False] * MOST_GUESSES + [True] * (
        1000 - MOST_GUESSES
    )
    now += GUESS_S + 1
    assert not tokens.guessed("another")


@pytest.mark.ids("S14")
def test_S14_a_body_that_is_too_large_is_not_taken(ground: Ground, hub: HubProcess) -> None:
    size = ("Content-Length", str(MOST_BODY_BYTES + 1))
    for path in ("/api/sign-in", "/api/sessions"):
        answer = ask(hub, "POST", path, [bearer(hub), JSON, size])
        assert (answer.status, answer.code) == (413, "too_large")
    endless = ask(hub, "POST", "/api/sign-in", [JSON, ("Content-Length", "9" * 100)])
    assert endless.status in (400, 413)
    head = f"POST /api/sign-in HTTP/1.1\r\nHost: {hub.url[7:]}\r\nContent-Type: application/json\r\n"
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    pieces = piece * (MOST_BODY_BYTES // 0x10000) + b"1\r\n \r\n"
    answer = raw(hub, f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + pieces, "POST")
    assert (answer.status, answer.code) == (413, "too_large")
    assert hub.ask("GET", "/api/health")["ok"]


@pytest.mark.ids("S14")
def test_S14_a_head_that_never_ends_is_cut_off(hub: HubProcess) -> None:
    host = f"HTTP/1.1\r\nHost: {host_of(hub)}\r\n"
    known = f"GET /api/me {host}Authorization: {bearer(hub)[1]}\r\n\r\n".encode()
    for before in (b"", known):
        for start in (f"GET /api/health {host}X: ".encode(), b"GET /"):
            with connected(hub) as sock:
                sock.sendall(before)
                assert not before or sock.recv(1 << 16).startswith(b"HTTP/1.1 200")
                sock.settimeout(LONG_BEFORE_TIME_IS_UP_S)
                with suppress(ConnectionError):
                    sock.sendall(start + b"x" * MOST_HEARD_BYTES)
                    while sock.recv(1 << 16):
                        pass


@pytest.mark.ids("S14")
def test_S14_bodies_of_nonsense_are_refused_in_the_one_shape(ground: Ground, hub: HubProcess) -> None:
    for body in (
        b"{",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"null",
        b"[]",
        b'"x"',
        b"\xff\xfe",
        b"9" * 10_000,
        b'{"command": ["true"], "folder": "\\ud800"}',
        b'{"command": ["\\ud800"], "folder": "/"}',
        b'{"command": ["true\\u0000"], "folder": "/"}',
        b'{"command": ["true"], "folder": "/", "name": "\\udfff"}',
        b'{"command": ["true"], "folder": "/", "description": "\\u0000"}',
        b'{"command": ["true"], "folder": "/", "cols": 1e400}',
        b'{"command": ["true"], "folder": "/", "cols": NaN}',
        b'{"command": ["true"], "folder": "/", "cols": 10000, "rows": 10000}',
        b'{"command": ["true"], "folder": "/", "env": {"A": "\\u0000"}}',
        b'{"command": ["true"], "folder": "/", "env": {"A=B": "x"}}',
    ):
        answer = ask(hub, "POST", "/api/sessions", [bearer(hub), JSON], body)
        assert (body[:60], answer.status) in [(body[:60], status) for status in (400, 422)], answer
        assert set(answer.json()["error"]) - {"field"} == {"code", "message", "hint"}
    assert hub.ask("GET", "/api/sessions?all=true") == []
    assert "Traceback" not in hub.log()


@pytest.mark.ids("S14")
def test_S14_nonsense_on_a_websocket_ends_nobody_elses_view(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("stty -echo; exec cat", name="dev")
    until_running(hub, dev.id)

    async def scene() -> None:
        async with hub.ws() as victim, hub.ws() as client:
            attached = await victim.attach(dev.id)
            texts = [
                "",
                "{",
                "null",
                "[]",
                "7",
                "[" * 100_000,
                '{"type": []}',
                '{"type": {}}',
                '{"type": "unknown"}',
                '{"type": "session.attach"}',
                '{"type": "session.attach", "sessionId": 7}',
                '{"type": "session.attach", "sessionId": "..", "cols": 1}',
                '{"type": "session.attach", "sessionId": "\\ud800"}',
                '{"type": "session.attach", "sessionId": "%s"}' % ("9" * 5000),
                '{"type": "session.attach", "sessionId": "dev", "cols": 10000, "rows": 10000}',
                '{"type": "session.attach", "sessionId": "dev", "cols": 0}',
                '{"type": "session.attach", "sessionId": "dev", "from": -1}',
                '{"type": "terminal.input", "sessionId": "dev", "data": 7}',
                '{"type": "terminal.input", "sessionId": "dev", "data": "%s"}' % ("x" * (1 << 20) + "x"),
                '{"type": "terminal.resize", "sessionId": "dev", "cols": 1e400, "rows": NaN}',
            ]
            for text in texts:
                await client.connection.send(text)
                told = await client.until("error")
                assert (text[:80], told["code"] in ("bad_input", "not_found")) == (text[:80], True)
            await client.connection.send(b"\x00" * 1000)
            await victim.say("terminal.input", sessionId=dev.id, data="alive\r")
            await victim.until_shown(attached["channel"], b"alive")
        async with hub.ws() as client:

            async def say_too_much() -> None:
                await client.connection.send("x" * (5 << 20))
                await client.read()

            with pytest.raises(websockets.ConnectionClosed) as closed:
                await say_too_much()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1009

    asyncio.run(scene())
    ground.end(dev)
    assert "Traceback" not in hub.log()


@pytest.mark.ids("S14")
def test_S14_no_viewer_and_not_all_of_them_together_keep_the_owner_out(hub: HubProcess) -> None:
    address = hub.url.replace("http", "ws") + "/ws"
    viewers = [
        create_bearer(hub.home, f"viewer {number}", "viewer") for number in range(MOST_CLIENTS // MOST_OF_ONE + 1)
    ]

    async def opened(token: str) -> websockets.ClientConnection:
        signed = {"Authorization": f"Bearer {token}"}
        return await websockets.connect(address, additional_headers=signed, compression=None, open_timeout=60)

    async def refused(token: str) -> str:
        with pytest.raises(websockets.InvalidStatus) as told:
            await opened(token)
        assert told.value.response.status_code == 503
        error = json.loads(told.value.response.body or b"")["error"]
        assert error["code"] == "too_many_clients"
        return str(error["message"])

    async def scene() -> None:
        clients: list[websockets.ClientConnection] = []
        most = MOST_CLIENTS - KEPT_FOR_OWNERS
        try:
            for token in viewers:
                wanted = min(MOST_OF_ONE, most - len(clients))
                clients += await asyncio.gather(*(opened(token) for _ in range(wanted)))
                if wanted == MOST_OF_ONE:
                    assert (
                        await refused(token)
                        == f"{MOST_OF_ONE} clients are connected with this sign-in; try again later"
                    )
            assert await refused(viewers[-1]) == f"{most} clients are connected; try again later"
            clients += await asyncio.gather(*(opened(hub.token()) for _ in range(MOST_OF_ONE)))
            async with hub.ws() as own:
                await own.say("nonsense")
                assert (await own.until("error"))["code"] == "bad_input"
            assert hub.ask("GET", "/api/health")["ok"]
        finally:
            await asyncio.gather(*(client.close() for client in clients))
        last = await opened(viewers[0])
        await last.close()

    asyncio.run(scene())


@pytest.mark.ids("S14")
def test_S14_connections_that_say_nothing_keep_nobody_out(ground: Ground) -> None:
    with hub_of(ground, "prlimit", f"--nofile={FEW_DESCRIPTORS}") as hub, ExitStack() as stack:
        for _ in range(2 * FEW_DESCRIPTORS):
            silent = stack.enter_context(connected(hub))
            with suppress(ConnectionError):
                silent.sendall(b"GET /api/health HTTP/1.1\r\nHost: ")
        began = time.monotonic()
        assert ask(hub, "GET", "/api/health", [bearer(hub)]).status == 200
        assert time.monotonic() - began < 5


@pytest.mark.ids("S14")
def test_S14_only_so_many_sessions_run_at_once(ground: Ground) -> None:
    ground.configure("sessions_max = 1")
    with hub_of(ground) as hub:
        wanted = {"command": ["sleep", "1000"], "folder": str(ground.place)}
        first = hub.ask("POST", "/api/sessions", wanted)["session"]
        with pytest.raises(HubRefused, match="the setting sessions_max allows 1"):
            hub.ask("POST", "/api/sessions", wanted)
        hub.ask("POST", f"/api/sessions/{first['id']}/stop")
