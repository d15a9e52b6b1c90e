"""S1: within two seconds, who is not known any more has nothing left: no token, ticket, WebSocket or download."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import websockets
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from hitchpost.hub.http.grants import Grant
from hitchpost.hub.http.in_progress import Held, Live
from hitchpost.hub.http.tokenfile import BROWSER_S, Credential, TokenFile
from hitchpost.hub.http.tokens import Tokens, create_bearer
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.security.attacks import ask, connected, host_of, knock, sign_in, until_running
from tests.security.test_api_signins import closed_with, signed_in, socket_of
from tests.support import Hitch, eventually

SOON_S = 2.0


def signed(token: str) -> list[tuple[str, str]]:
    return [("Authorization", f"Bearer {token}")]


def closed_in_the_end(client: ClientConnection) -> int | None:
    """The code of the end, after whatever came before it."""
    try:
        while True:
            client.recv(timeout=20)
    except websockets.ConnectionClosed as closed:
        return None if closed.rcvd is None else closed.rcvd.code


@pytest.mark.ids("S1")
def test_a_revoked_token_types_nothing_more(ground: Ground, hub: HubProcess, hitch: Hitch) -> None:
    dev = ground.begin_sh("stty -echo; exec cat", name="dev")
    until_running(hub, dev.id)
    token = create_bearer(hub.home, "lost", "owner")
    address = hub.url.replace("http", "ws") + "/ws"
    with connect(address, additional_headers=signed(token)) as client:
        client.send(json.dumps({"type": "session.attach", "sessionId": dev.id}))
        client.send(json.dumps({"type": "terminal.input", "sessionId": dev.id, "data": "before\r"}))
        eventually(lambda: b"before" in dev.output())
        ticket = ask(hub, "POST", "/api/ws-ticket", signed(token)).json()["ticket"]
        (known,) = hitch("token", "ls", "--json").json()
        hitch("token", "rm", known["id"])
        began = time.monotonic()
        assert closed_in_the_end(client) == 1008
        assert time.monotonic() - began < SOON_S
    assert knock(hub, f"/ws?ticket={ticket}", [("Origin", hub.url)]).status == 401
    assert ask(hub, "GET", "/api/me", signed(token)).status == 401
    ground.end(dev)


@pytest.mark.ids("S1")
def test_a_client_that_does_not_hear_that_it_is_closed_types_nothing_either(ground: Ground, hub: HubProcess) -> None:
    """It never reads, and goes on sending."""
    dev = ground.begin_sh("stty -echo; exec cat", name="dev")
    until_running(hub, dev.id)
    token = create_bearer(hub.home, "deaf", "owner")

    async def scene() -> None:
        address = hub.url.replace("http", "ws") + "/ws"
        client = await websockets.connect(address, additional_headers=dict(signed(token)), compression=None)
        await client.send(json.dumps({"type": "session.attach", "sessionId": dev.id}))
        await client.send(json.dumps({"type": "terminal.input", "sessionId": dev.id, "data": "before\r"}))
        await asyncio.to_thread(eventually, lambda: b"before" in dev.output())
        client.transport.pause_reading()
        kept = TokenFile(hub.home)
        kept.remove(*(one.key for one in kept.all()))
        began = time.monotonic()
        while (after_s := time.monotonic() - began) < SOON_S + 1 and not client.transport.is_closing():
            # masked with zeros, so that the bytes on the wire are the text itself
            data = "too late\r" if after_s > SOON_S else "soon\r"
            text = json.dumps({"type": "terminal.input", "sessionId": dev.id, "data": data}).encode()
            client.transport.write(b"\x81" + bytes([0x80 | 126]) + len(text).to_bytes(2, "big") + bytes(4) + text)
            await asyncio.sleep(0.2)
        client.transport.abort()

    asyncio.run(scene())
    hub.ask("POST", f"/api/sessions/{dev.id}/prompt", {"text": "the last line"})
    eventually(lambda: b"the last line" in dev.output())
    assert b"too late" not in dev.output()
    ground.end(dev)


@pytest.mark.ids("S1")
def test_a_ticket_made_before_the_sign_out_is_worth_nothing_after_it(hub: HubProcess) -> None:
    page = sign_in(hub)
    tickets = [page.ticket() for _ in range(3)]
    assert ask(hub, "POST", "/api/sign-out", page.ours).status == 204
    for ticket in tickets:
        assert knock(hub, f"/ws?ticket={ticket}", [("Origin", hub.url)]).status == 401


def rest_of(sock: socket.socket) -> bytes:
    """What comes until the end, whichever way it ends."""
    found = b""
    try:
        while part := sock.recv(1 << 16):
            found += part
    except ConnectionResetError:
        pass
    return found


@pytest.mark.ids("S1")
def test_a_running_download_is_cut_off(ground: Ground, hub: HubProcess, hitch: Hitch) -> None:
    dev = ground.begin_sh("head -c 40000000 /dev/zero | tr '\\0' x; echo; echo the end; exec cat", name="dev")
    eventually(lambda: b"the end" in dev.output()[-4000:], 60)
    until_running(hub, dev.id)
    token = create_bearer(hub.home, "slow", "viewer")
    head = f"GET /api/sessions/{dev.id}/recording HTTP/1.1\r\nHost: {host_of(hub)}\r\n"
    with connected(hub) as sock:
        sock.sendall(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
        assert sock.recv(15) == b"HTTP/1.1 200 OK"
        (known,) = hitch("token", "ls", "--json").json()
        hitch("token", "rm", known["id"])
        time.sleep(SOON_S)  # whatever was on its way is on its way
        rest = rest_of(sock)
    assert b"the end" not in rest
    assert len(rest) < 30_000_000
    assert not rest.endswith(b"0\r\n\r\n"), "it is cut, and does not pass for whole"
    ground.end(dev)


@pytest.mark.ids("S1")
def test_a_token_that_expires_while_it_is_connected_is_cut_off(hub: HubProcess) -> None:
    lasts_s = 6  # so long that a busy machine connects in time
    token = create_bearer(hub.home, "short", "viewer", None, datetime.now(UTC) + timedelta(seconds=lasts_s))
    with connect(hub.url.replace("http", "ws") + "/ws", additional_headers=signed(token)) as client:
        assert ask(hub, "GET", "/api/me", signed(token)).status == 200
        began = time.monotonic()
        assert closed_with(client) == 1008
        assert time.monotonic() - began < lasts_s + SOON_S
    assert ask(hub, "GET", "/api/me", signed(token)).status == 401


@pytest.mark.ids("S1")
def test_every_way_of_taking_a_token_back_is_heard(hub: HubProcess) -> None:
    """By the command's own write, by hand in place, and by deleting the file."""
    kept = Path(hub.home) / "tokens.json"

    def by_hand() -> None:
        kept.write_text('{"schema": 1, "tokens": {}}')

    ways: list[Callable[[], object]] = [by_hand, kept.unlink]
    for take_back in ways:
        token = create_bearer(hub.home, "x", "viewer")
        with connect(hub.url.replace("http", "ws") + "/ws", additional_headers=signed(token)) as client:
            eventually(lambda: '"used_at"' in kept.read_text(), what="the first use")
            began = time.monotonic()
            take_back()
            assert closed_with(client) == 1008
            assert time.monotonic() - began < SOON_S


@pytest.mark.ids("S1")
def test_signing_out_closes_the_browsers_sockets_and_nobody_elses(hub: HubProcess) -> None:
    page, other = sign_in(hub), sign_in(hub)
    with socket_of(page) as mine, socket_of(other) as theirs:
        closed: list[int] = []
        waits = threading.Thread(target=lambda: closed.append(closed_with(mine)))
        waits.start()
        began = time.monotonic()
        assert ask(hub, "POST", "/api/sign-out", page.ours).status == 204
        waits.join(20)
        assert closed == [1008]
        assert time.monotonic() - began < SOON_S
        theirs.send("{}")
        assert json.loads(theirs.recv(timeout=20))["type"] == "error"
    assert knock(hub, f"/ws?ticket={other.ticket()}", [("Origin", Origin(hub.url))]).status == 101


async def until(event: asyncio.Event) -> None:
    await event.wait()


@pytest.mark.ids("S1")
def test_what_is_held_ends_when_the_clock_is_set_or_the_machine_has_slept() -> None:
    """The timer that was meant for the end would fire an hour late."""
    now = 1.8e9
    ends = datetime.fromtimestamp(now + 600, UTC)
    known = Credential("key", "script", Grant("viewer", None, ends))

    async def scene() -> None:
        nonlocal now

        def find(key: str) -> Credential | None:
            return known if known.grant.holds(datetime.fromtimestamp(now, UTC)) else None

        async def nothing() -> None:
            """There is no file to read."""

        live = Live(find, nothing, lambda: True, lambda: now)
        ended = asyncio.Event()
        held = Held(known, ended.set)
        stream = asyncio.create_task(live.serve(held, until(ended)))
        await asyncio.sleep(0)
        now += 3600
        async with asyncio.timeout(SOON_S + 3):
            await stream
        assert held.gone
        await asyncio.sleep(1.5)
        assert live._timer is None, "nothing is held, and nobody looks"
        await live.close()

    asyncio.run(scene())


@pytest.mark.ids("S1")
def test_a_browser_that_could_not_be_written_down_expires_and_can_be_taken_back(home: Path) -> None:
    now = 1.8e9
    tokens = Tokens(str(home), clock=lambda: now, wall=lambda: now)
    kept = home / "tokens.json"
    kept.write_text("{")
    known = signed_in(tokens)
    assert tokens.is_use_due(known)
    tokens.note_use(known.key)
    assert tokens.find(known.key) is not None, "it still cannot be written down"
    kept.unlink()
    now += 60
    assert tokens.is_use_due(known)
    tokens.note_use(known.key)
    assert [listed.key for listed in TokenFile(str(home), lambda: now).all()] == [known.key]
    TokenFile(str(home), lambda: now).remove(known.key)
    assert tokens.find(known.key) is None

    kept.write_text("{")
    another = signed_in(tokens)
    now += BROWSER_S + 1
    assert tokens.find(another.key) is None
