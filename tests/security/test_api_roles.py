"""Roles: a viewer reads everything and changes nothing, on every route and in the path of every key."""

from __future__ import annotations

import asyncio

import pytest

from tests.ground import Ground
from tests.hubs import HubProcess
from tests.security.attacks import JSON, SIGN_IN, ask, bearer, knock, until_running, walk, ways
from tests.support import eventually

TICKET = ("POST", "/api/ws-ticket")
LOCAL_ONLY = [("POST", "/api/launch-code")]
ITS_OWN = {TICKET: 200, ("POST", "/api/sign-out"): 204, ("POST", "/api/sign-in/proxy"): 401}
"""What a viewer may do, or at least ask: all of it is about itself alone."""
OWNERS = ("/api/folders", "/api/users", "/api/tokens")
"""Which folders there are, and who else is there, is the owner's."""
NOT_FOR_THIS_SESSION = (404, 409)  # nothing to compare, nothing to show


@pytest.mark.ids("S1", "S4")
def test_a_viewer_reads_every_route_and_changes_nothing_through_any(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("exec sleep 1000", name="dev")
    until_running(hub, dev.id)
    before = (dev.state_file(), (dev.folder / "session.json").read_bytes(), dev.story())
    for way in ways(dev.id):
        if way in SIGN_IN:
            continue
        answer = walk(hub, way, [bearer(hub, "viewer")])
        if way in LOCAL_ONLY:
            assert (way, answer.status) == (way, 403)
        elif way[0] == "GET" and way[1] in OWNERS:
            assert answer.status == 403
        elif way[0] in ("GET", "HEAD"):
            refused = (
                way[1].partition("?")[0].endswith(("/diff", "/diff/text", "/finish"))
                and answer.status in NOT_FOR_THIS_SESSION
            )
            refused = refused or (way[1].startswith("/api/fleet") and answer.code == "not_found")  # it is none
            missing = "/images/" in way[1] and answer.status == 404
            assert answer.status == 200 or refused or missing, way
        elif way[0] == "WS":
            assert answer.status == 101
        else:
            assert (way, answer.status) == (way, ITS_OWN.get(way, 403))
    assert (dev.state_file(), (dev.folder / "session.json").read_bytes(), dev.story()) == before
    assert [row["id"] for row in hub.ask("GET", "/api/sessions?all=true")] == [dev.id]
    ground.end(dev)


@pytest.mark.ids("S3")
def test_a_viewers_ticket_is_a_viewers(ground: Ground, hub: HubProcess) -> None:
    ticket = ask(hub, "POST", "/api/ws-ticket", [bearer(hub, "viewer"), JSON]).json()["ticket"]
    assert ask(hub, "GET", "/api/me", [bearer(hub, "viewer")]).json()["role"] == "viewer"
    assert knock(hub, f"/ws?ticket={ticket}", [("Origin", hub.url)]).status == 101
    assert knock(hub, f"/ws?ticket={ticket}", [("Origin", hub.url)]).status == 401


def test_no_byte_and_no_size_of_a_viewer_reaches_the_terminal(ground: Ground, hub: HubProcess) -> None:
    script = "trap 'echo resized' WINCH; stty -echo; while true; do read line && echo \"<$line>\"; done"
    dev = ground.begin_sh(script, name="dev")
    gone = ground.begin_sh("exit 3", name="gone")
    gone.ended()
    until_running(hub, dev.id)
    eventually(lambda: gone.id in [row["id"] for row in hub.ask("GET", "/api/sessions")])

    async def scene() -> None:
        async with hub.ws("viewer") as viewer, hub.ws() as owner:
            for wish in ({}, {"readOnly": False}, {"readOnly": False, "role": "owner", "may_type": True}):
                await viewer.attach(dev.id, cols=33, rows=11, **wish)
                await viewer.say("terminal.input", sessionId=dev.id, data="evil\r")
                assert (await viewer.until("error", dev.id))["message"] == "only the owner may do that"
                await viewer.say("terminal.resize", sessionId=dev.id, cols=44, rows=12)
            await viewer.connection.send(b"\x01evil\r")
            await viewer.say("session.resume", sessionId=gone.id)
            assert (await viewer.until("error", gone.id))["message"] == "only the owner may do that"
            attached = await owner.attach(dev.id, cols=80, rows=24)
            await owner.say("terminal.input", sessionId=dev.id, data="good\r")
            await owner.until_shown(attached["channel"], b"<good>")

    asyncio.run(scene())
    assert b"evil" not in dev.output()
    assert b"resized" not in dev.output()
    assert gone.state_file()["run"] == 1
    ground.end(dev)


def test_an_owner_that_only_looks_types_nothing(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("exec cat", name="dev")
    until_running(hub, dev.id)

    async def scene() -> None:
        async with hub.ws() as client:
            await client.say("terminal.input", sessionId=dev.id, data="evil\r")
            assert (await client.until("error", dev.id))["code"] == "wrong_state"
            await client.attach(dev.id, readOnly=True)
            await client.say("terminal.input", sessionId=dev.id, data="evil\r")
            assert (await client.until("error", dev.id))["message"] == "this client is read-only"

    asyncio.run(scene())
    ground.end(dev)
    assert b"evil" not in dev.output()
