"""Grants: every route and every message says what it needs; a token for some sessions sees nothing of the others."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.routing import APIWebSocketRoute, iter_route_contexts
from starlette.requests import HTTPConnection

from hitchpost.hub.core import Hub
from hitchpost.hub.http.app import build
from hitchpost.hub.http.grants import Grant, Need
from hitchpost.hub.http.permissions import NEEDS, check_needs
from hitchpost.hub.http.tokens import Tokens, create_bearer
from hitchpost.hub.http.ws_connection import MESSAGES
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.repos import Repo
from tests.security.attacks import JSON, SIGN_IN, ask, sign_in, until_running, walk, ways
from tests.support import Hitch, eventually

MINE, THEIRS = "mine-canary", "theirs-canary"
WITHOUT_SESSION = [("GET", "/api/catalog"), ("GET", "/api/folders")]
WITHOUT_SESSION += [("GET", "/api/notifications"), ("GET", "/api/notifications/log")]
WITHOUT_SESSION += [("GET", "/api/users"), ("GET", "/api/tokens")]


@pytest.mark.ids("S1")
def test_every_route_and_every_message_declares_what_it_needs(ground: Ground) -> None:
    home = os.environ["HITCHPOST_HOME"]
    app, _ = build(Hub(home), Tokens(home))
    found: set[tuple[str, str]] = set()
    for route in iter_route_contexts(app.routes):
        is_socket = isinstance(route.original_route, APIWebSocketRoute)
        assert route.path
        found |= {(method, route.path) for method in (["WS"] if is_socket else route.methods or [])}
    assert found == set(NEEDS)
    assert {way for way, need in NEEDS.items() if need is Need.NOTHING and "/api/" in way[1]} == set(SIGN_IN)
    for method, path in found:
        # what concerns others, too
        beyond = (method, path.rpartition("/")[2]) in (("POST", "fork"), ("POST", "finish"), ("POST", "drain"))
        about_one = ("{session}" in path or "{agent}" in path) and not beyond
        assert (NEEDS[method, path] in (Need.LOOK, Need.CHANGE)) == about_one, path
        if method not in ("GET", "WS") and "sign-" not in path and path not in ("/api/ws-ticket", "/api/launch-code"):
            assert NEEDS[method, path] in (Need.CHANGE, Need.CREATE, Need.CHANGE_ALL), path
    assert {kind: need for kind, (_, need, _) in MESSAGES.items() if need is not Need.LOOK} == {
        "terminal.input": Need.CHANGE,
        "session.resume": Need.CHANGE,
        "session.seen": Need.CHANGE,
    }


def limited(hub: HubProcess, role: str, *sessions: str) -> list[tuple[str, str]]:
    token = create_bearer(hub.home, "shared", role, frozenset(sessions))
    return [("Authorization", f"Bearer {token}")]


@pytest.mark.ids("S1")
@pytest.mark.parametrize("role", ["owner", "viewer"])
def test_a_token_for_one_session_sees_nothing_of_the_others_on_any_route(
    ground: Ground, repo: Repo, hub: HubProcess, role: str
) -> None:
    wish = {"command": ["sleep", "1000"], "folder": str(repo.path)}
    mine, theirs = (
        hub.ask("POST", "/api/sessions", {**wish, "name": name, "branch": name})["session"] for name in (MINE, THEIRS)
    )
    signed = limited(hub, role, mine["id"])
    secrets = (THEIRS, theirs["id"], theirs["workspace"]["id"])
    for way in ways(mine["id"]):
        if way[0] == "GET":
            answer = walk(hub, way, signed)
            missing = 404 if "/images/" in way[1] else 200  # there is none
            of_all = way in WITHOUT_SESSION or way[1].startswith("/api/fleet")
            assert (way, answer.status) == (way, 403 if of_all else missing)
            assert not [secret for secret in secrets if secret in answer.text], way
    assert [row["id"] for row in ask(hub, "GET", "/api/sessions?all=true", signed).json()] == [mine["id"]]
    status = ask(hub, "GET", "/api/status", signed).json()
    assert (status["hub"]["sessions"], status["hub"]["live"], sum(status["counts"].values())) == (1, 1, 1)
    assert 'hitchpost_sessions{status="running"} 1.0' in ask(hub, "GET", "/metrics", signed).text
    assert "hitchpost_runs_ended" not in ask(hub, "GET", "/metrics", signed).text
    spaces = ask(hub, "GET", "/api/workspaces", signed).json()
    assert [one["id"] for one in spaces] == [mine["workspace"]["id"]]
    assert ask(hub, "GET", "/api/me", signed).json()["sessions"] == [mine["id"]]
    for wanted in (theirs["id"], theirs["id"][:6], THEIRS, str(theirs["index"])):
        if mine["id"].startswith(wanted):
            continue  # then it names the session that the token is for
        for way in ways(wanted):
            if wanted not in way[1] or "workspaces" in way[1] or "subscriptions" in way[1]:
                continue
            answer = walk(hub, way, signed)
            assert answer.status in (403, 404, 422), (way, answer)
            assert theirs["id"] not in answer.text.replace(wanted, "")
    body = json.dumps({**wish, "name": "new"}).encode()
    assert ask(hub, "POST", "/api/sessions", [*signed, JSON], body).status == 403
    assert ask(hub, "DELETE", f"/api/workspaces/{theirs['workspace']['id']}?force=true", signed).status == 403
    expected = 200 if role == "owner" else 403
    assert ask(hub, "POST", f"/api/sessions/{mine['id']}/stop", [*signed, JSON], b"{}").status == expected
    rows = {row["name"]: row["state"] for row in hub.ask("GET", "/api/sessions?all=true")}
    assert rows == {MINE: "stopped" if role == "owner" else "running", THEIRS: "running"}
    for one in (mine, theirs):
        hub.ask("POST", f"/api/sessions/{one['id']}/cancel")


@pytest.mark.ids("S1")
def test_a_token_for_one_session_hears_and_types_nothing_of_the_others(ground: Ground, hub: HubProcess) -> None:
    mine, theirs = ground.begin_sh("exec cat", name="mine"), ground.begin_sh("exec cat", name="theirs")
    for one in (mine, theirs):
        until_running(hub, one.id)
    hub._tokens["limited"] = create_bearer(hub.home, "shared", "owner", frozenset([mine.id]))

    async def scene() -> None:
        async with hub.ws("limited") as client:
            attached = await client.attach(mine.id)
            for kind in MESSAGES:
                for wanted in (theirs.id, "theirs", theirs.id[:6]):
                    await client.say(kind, sessionId=wanted, data="evil", cols=33, rows=11)
                    told = await client.until("error", wanted)
                    assert (kind, told["code"], told["message"]) == (
                        kind, "not_found", f"no session {wanted!r}; hitch ps --all lists them",
                    )  # fmt: skip
            hub.ask("PATCH", f"/api/sessions/{theirs.id}", {"description": "told"})
            hub.ask("POST", f"/api/sessions/{theirs.id}/stop")
            hub.ask("PATCH", f"/api/sessions/{mine.id}", {"description": "told"})
            await client.until("session.updated", mine.id)
            await client.say("terminal.input", sessionId="mine", data="good\r")
            await client.until_shown(attached["channel"], b"good")
            assert {event.get("sessionId") for event in client.events} <= {mine.id}

    asyncio.run(scene())
    assert b"evil" not in theirs.output()
    ground.end(mine)


class Sessions:
    """The part of a registry that names are looked up in."""

    def __init__(self, **names: str) -> None:
        rows = [
            {"id": key, "name": name, "index": place, "record": "active"}
            for place, (key, name) in enumerate(names.items(), 1)
        ]
        self.by_id = {str(row["id"]): SimpleNamespace(id=row["id"], line="a line", index_row=row) for row in rows}

    async def load(self, name: str) -> None:
        """All of them are loaded."""


def admitted(sessions: Sessions, wanted: str, *, role: str = "owner", mine: str) -> str:
    """What the route is told to work on."""
    grant = Grant(role, frozenset([mine]))
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "route": SimpleNamespace(path="/api/sessions/{session}"),
        "path_params": {"session": wanted},
        "state": {"grant": grant, "local": False},
        "app": SimpleNamespace(state=SimpleNamespace(hub=SimpleNamespace(registry=sessions))),
    }

    async def check() -> None:
        await check_needs(HTTPConnection(scope))

    asyncio.run(check())
    return str(scope["path_params"]["session"])


@pytest.mark.ids("S1")
def test_the_route_works_on_the_session_that_was_admitted_whatever_has_its_name_by_then() -> None:
    sessions = Sessions(aaaamine="qbjx", qbjxtheirs="theirs")
    for wanted in ("qbjx", "aaaamine", "aaaa", "1"):
        assert admitted(sessions, wanted, mine="aaaamine") == "aaaamine"


@pytest.mark.ids("S1")
def test_sessions_of_others_change_nothing_about_what_a_limited_token_finds() -> None:
    """Not even whether the beginning of an id, or a name, is anybody else's too."""
    alone, beside = Sessions(aabbmine="dev"), Sessions(aacctheirs="dev", aabbmine="dev", aatheirs="aabb")
    for wanted in ("a", "aa", "aabb", "dev", "aabbmine"):
        assert admitted(alone, wanted, mine="aabbmine") == admitted(beside, wanted, mine="aabbmine") == "aabbmine"


@pytest.mark.ids("S1")
def test_an_owner_of_one_session_changes_no_other_by_renaming_its_own(ground: Ground, hub: HubProcess) -> None:
    wish = {"command": ["sleep", "1000"], "folder": str(ground.place)}
    mine, theirs = (hub.ask("POST", "/api/sessions", {**wish, "name": name})["session"] for name in (MINE, THEIRS))
    token = create_bearer(hub.home, "shared", "owner", frozenset([mine["id"]]))
    beginning = theirs["id"][:4]
    ends = time.monotonic() + 5

    def rename() -> None:
        with hub.http(None, Authorization=f"Bearer {token}") as client:
            while time.monotonic() < ends:
                for name in ("zzz", beginning):
                    client.patch(f"/api/sessions/{mine['id']}", json={"name": name})

    def describe() -> None:
        with hub.http(None, Authorization=f"Bearer {token}") as client:
            while time.monotonic() < ends:
                client.patch(f"/api/sessions/{beginning}", json={"description": "evil"})

    threads = [threading.Thread(target=rename), *(threading.Thread(target=describe) for _ in range(3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = {row["id"]: row["description"] for row in hub.ask("GET", "/api/sessions")}
    assert rows == {mine["id"]: "evil", theirs["id"]: ""}
    for session in (mine, theirs):
        hub.ask("POST", f"/api/sessions/{session['id']}/cancel")


@pytest.mark.ids("S1")
def test_a_viewer_reads_the_whole_list_and_a_share_signs_a_browser_in_for_its_session_only(
    ground: Ground, hub: HubProcess
) -> None:
    dev = ground.begin_sh("exec cat", name="dev")
    until_running(hub, dev.id)
    page = sign_in(hub, role="viewer", sessions=["0123456789ab"])
    assert ask(hub, "GET", "/api/sessions", page.signed).json() == []
    assert ask(hub, "GET", f"/api/sessions/{dev.id}", page.signed).status == 404
    again = page.again()
    assert again is not None
    assert ask(hub, "GET", "/api/me", again.signed).json()["sessions"] == ["0123456789ab"]
    ground.end(dev)


@pytest.mark.ids("S1")
def test_the_command_makes_tokens_that_expire_and_are_for_some_sessions(
    ground: Ground, hub: HubProcess, hitch: Hitch
) -> None:
    dev = ground.begin_sh("exec cat", name="dev")
    until_running(hub, dev.id)
    token = hitch(
        "token", "create", "--role", "viewer", "--session", "dev", "--for", "7d", "--name", "mate"
    ).out.strip()
    assert [row["id"] for row in ask(hub, "GET", "/api/sessions", [("Authorization", f"Bearer {token}")]).json()] == [
        dev.id
    ]
    hitch("token", "create")
    hitch("token", "create", "--for", "never")
    found = hitch("token", "ls", "--json").json()
    days = {one["name"] or one["expires_at"][:4]: one["expires_at"] for one in found}
    assert [(one["role"], one["sessions"]) for one in found] == [("viewer", [dev.id]), ("owner", None), ("owner", None)]
    assert found[2]["expires_at"] == ""
    assert found[1]["expires_at"] > days["mate"] > found[0]["created_at"]
    eventually(lambda: hitch("token", "ls", "--json").json()[0]["used_at"] != "", what="the last use")
    rows = hitch("token", "ls").out.splitlines()
    assert rows[0].split() == ["ID", "KIND", "NAME", "ROLE", "SESSIONS", "CREATED", "EXPIRES", "LAST", "USED"]
    assert "never" in rows[3]
    for wrong in ("0s", "soon", "-1d", "99999d", ""):
        assert "--for" in hitch("token", "create", "--for", wrong, check=2).err
    assert hitch("token", "create", "--session", "nobody", check=3).err
    ground.end(dev)
