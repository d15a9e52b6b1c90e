"""People: a member sees and drives nothing of another's sessions, on any route and in any message."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from hitchpost.hub.http.ws_connection import MESSAGES
from tests.ground import Ground
from tests.hubs import HubProcess, hub_of
from tests.people import LOCAL_TOO, People, closed_with
from tests.repos import Repo
from tests.security.attacks import JSON, SIGN_IN, ask, sign_in, until_running, walk, ways
from tests.support import Hitch, eventually

MINE, THEIRS = "mine-canary", "theirs-canary"
OWNERS = ("/api/folders", "/api/users", "/api/tokens", "/api/notifications", "/api/notifications/log")
"""What is no session's, and only an owner may see."""
SOON_S = 2.0


@pytest.fixture
def people(ground: Ground) -> Iterator[People]:
    ground.configure(LOCAL_TOO)
    with hub_of(ground) as hub:
        yield People(hub)


@pytest.mark.ids("S1")
def test_a_member_sees_and_drives_nothing_of_anothers_session_on_any_route(people: People, repo: Repo) -> None:
    hub = people.hub
    for name in ("anna", "bert"):
        people.add(name)
    wish: dict[str, Any] = {"folder": str(repo.path), "description": "words-canary"}
    mine = people.start("anna", name=MINE, branch=MINE, folder=str(repo.path))
    theirs = people.start("bert", name=THEIRS, branch=THEIRS, **wish)
    signed = people.signed("anna")
    secrets = (THEIRS, theirs["id"], theirs["workspace"]["id"], "words-canary", "bert")
    for way in ways(mine["id"]):
        if way[0] == "GET":
            answer = walk(hub, way, signed)
            missing = 404 if "/images/" in way[1] else 200  # there is none
            assert (way, answer.status) == (
                way,
                403 if way[1] in OWNERS or way[1].startswith("/api/fleet") else missing,
            )
            assert not [secret for secret in secrets if secret in answer.text], way
    for path in ("/api/sessions?all=true", "/api/sessions?record=active", "/api/agents"):
        assert [row["id"] for row in ask(hub, "GET", path, signed).json()] == [mine["id"]]
    assert [row["sessionId"] for row in ask(hub, "GET", "/api/sessions/export", signed).json()["sessions"]] == [
        mine["id"]
    ]
    status = ask(hub, "GET", "/api/status", signed).json()
    assert (status["hub"]["sessions"], status["hub"]["live"], sum(status["counts"].values())) == (1, 1, 1)
    assert status["hub"]["problems"] == []
    scraped = ask(hub, "GET", "/metrics", signed).text
    assert 'hitchpost_sessions{status="running"} 1.0' in scraped
    assert "hitchpost_runs_ended" not in scraped
    assert "OWNER" not in ask(hub, "GET", "/api/sessions/table", signed).text
    spaces = ask(hub, "GET", "/api/workspaces", signed).json()
    assert [one["id"] for one in spaces] == [mine["workspace"]["id"]]
    before = hub.ask("GET", f"/api/sessions/{theirs['id']}/story")
    for wanted in (theirs["id"], theirs["id"][:6], THEIRS, str(theirs["index"])):
        if mine["id"].startswith(wanted):
            continue  # then it names their own session
        for way in ways(wanted):
            if way in SIGN_IN or way[0] == "WS" or wanted not in way[1]:
                continue
            answer = walk(hub, way, signed)
            assert answer.status in (403, 404, 422), (way, answer)
            assert not [secret for secret in secrets if secret in answer.text.replace(wanted, "")], way
        for deed in ("stop", "restart", "resume", "cancel", "archive", "interrupt", "fork", "restore"):
            assert people.ask("anna", "POST", f"/api/sessions/{wanted}/{deed}", {}).status == 404, deed
        assert people.ask("anna", "PATCH", f"/api/sessions/{wanted}", {"name": "evil"}).status == 404
        assert people.ask("anna", "POST", f"/api/sessions/{wanted}/prompt", {"text": "evil"}).status == 404
        assert people.ask("anna", "DELETE", f"/api/sessions/{wanted}?force=true").status == 404
    assert people.ask("anna", "DELETE", f"/api/workspaces/{theirs['workspace']['id']}?force=true").status == 403
    assert people.ask("anna", "POST", f"/api/sessions/{mine['id']}/finish", {"commit": True}).status == 403
    assert hub.ask("GET", f"/api/sessions/{theirs['id']}/story") == before
    for name in (MINE, THEIRS):
        hub.ask("POST", f"/api/sessions/{name}/cancel")


@pytest.mark.ids("S1")
def test_errors_tell_a_member_no_name_of_anothers_session(people: People, repo: Repo) -> None:
    for name in ("anna", "bert"):
        people.add(name)
    theirs = people.start("bert", name=THEIRS, branch=THEIRS, folder=str(repo.path))
    wish = {"command": ["true"], "folder": str(repo.path)}
    for wrong in ({"name": THEIRS}, {"branch": THEIRS}, {"workspace": theirs["workspace"]["path"], "exclusive": True}):
        answer = people.ask("anna", "POST", "/api/sessions", {**wish, **wrong})
        assert answer.status == 409, answer
        told = answer.text.replace(theirs["workspace"]["path"], "")
        assert not [secret for secret in (THEIRS, theirs["id"], "bert") if secret in told], answer
    people.hub.ask("POST", f"/api/sessions/{theirs['id']}/cancel")


@pytest.mark.ids("S1")
def test_a_member_hears_and_types_nothing_of_anothers_session(people: People, ground: Ground) -> None:
    hub = people.hub
    for name in ("anna", "bert"):
        hub._tokens[name] = people.add(name)
    cat: dict[str, Any] = {"command": ["sh", "-c", "stty -echo; exec cat"], "folder": str(ground.place)}
    mine, theirs = people.start("anna", name="mine", **cat), people.start("bert", name="theirs", **cat)

    async def scene() -> None:
        async with hub.ws("anna") as client, hub.ws("bert") as other:
            attached = await client.attach(mine["id"])
            for kind in MESSAGES:
                for wanted in (theirs["id"], "theirs", theirs["id"][:6]):
                    await client.say(kind, sessionId=wanted, data="evil", cols=33, rows=11)
                    told = await client.until("error", wanted)
                    assert (kind, told["code"], told["message"]) == (
                        kind, "not_found", f"no session {wanted!r}; hitch ps --all lists them",
                    )  # fmt: skip
            await asyncio.to_thread(
                people.ask, "bert", "PATCH", f"/api/sessions/{theirs['id']}", {"description": "told"}
            )
            await other.until("session.updated", theirs["id"])
            await asyncio.to_thread(people.ask, "bert", "POST", f"/api/sessions/{theirs['id']}/cancel", {})
            await asyncio.to_thread(people.ask, "bert", "DELETE", f"/api/sessions/{theirs['id']}")
            await other.until("session.removed", theirs["id"])
            again = await asyncio.to_thread(people.start, "bert", name="again", **cat)
            await other.until("session.created", again["id"])
            await client.say("terminal.input", sessionId="mine", data="good\r")
            await client.until_shown(attached["channel"], b"good")
            assert {event.get("sessionId") for event in client.events} <= {mine["id"]}
            assert mine["id"] not in {event.get("sessionId") for event in other.events}

    asyncio.run(scene())
    for name in ("mine", "again"):
        hub.ask("POST", f"/api/sessions/{name}/cancel")


@pytest.mark.ids("S1", "S4")
def test_each_role_may_do_its_part_and_the_story_says_who_did_it(people: People, ground: Ground) -> None:
    for name, role in (("olga", "owner"), ("anna", "member"), ("vera", "viewer")):
        people.add(name, role)
    hub, folder = people.hub, str(ground.place)
    made = people.start("anna", name="dev", folder=folder)
    assert made["owner"] == "anna"
    path = f"/api/sessions/{made['id']}"
    assert people.ask("vera", "GET", path).status == 200
    for wish in ("stop", "cancel", "fork"):
        assert people.ask("vera", "POST", f"{path}/{wish}", {}).status == 403
    assert people.ask("vera", "POST", "/api/sessions", {"command": ["true"], "folder": folder}).status == 403
    assert people.ask("olga", "PATCH", path, {"description": "of olga"}).status == 200
    assert people.ask("anna", "POST", f"{path}/stop", {}).status == 200
    story = people.ask("anna", "GET", f"{path}/story").json()
    assert {line["actor"] for line in story} >= {"anna", "olga"}
    assert next(line["actor"] for line in story if line["event"] == "created") == "anna"
    may = {name: people.ask(name, "GET", "/api/me").json() for name in ("olga", "anna", "vera")}
    assert {name: (me["user"], me["role"], me["may"]) for name, me in may.items()} == {
        "olga": ("olga", "owner", ["change", "create", "manage"]),
        "anna": ("anna", "member", ["change", "create"]),
        "vera": ("vera", "viewer", []),
    }
    table = hub.ask
    assert table("GET", "/api/sessions")[0]["owner"] == "anna"
    users = {row["name"]: row for row in people.ask("olga", "GET", "/api/users").json()}
    assert sorted(users) == ["anna", "olga", "vera"]
    assert users["anna"]["used"]["sessions"] == 0
    for method, way in (("GET", "/api/users"), ("POST", "/api/users"), ("DELETE", "/api/users/olga")):
        for name in ("anna", "vera"):
            body = {"name": "evil", "role": "owner"} if method == "POST" else None
            assert people.ask(name, method, way, body).status == 403
    assert people.ask("anna", "POST", "/api/tokens", {"user": "olga"}).status == 403


@pytest.mark.ids("S1")
def test_a_token_of_somebody_may_do_less_than_they_and_never_more(people: People, ground: Ground) -> None:
    for name, role in (("olga", "owner"), ("anna", "member"), ("vera", "viewer")):
        people.add(name, role)
    dev = people.start("anna", name="dev", folder=str(ground.place))
    other = people.start("olga", name="other", folder=str(ground.place))
    narrow = {}
    for name, role in (("olga", "member"), ("anna", "viewer"), ("anna", "owner"), ("vera", "owner")):
        made = people.hub.ask("POST", "/api/tokens", {"user": name, "role": role})["token"]
        narrow[name, role] = [("Authorization", f"Bearer {made}")]
    seen = {}
    for whose, signed in narrow.items():
        rows = [row["id"] for row in ask(people.hub, "GET", "/api/sessions", signed).json()]
        me = ask(people.hub, "GET", "/api/me", signed).json()
        seen[whose] = (me["role"], me["may"], rows)
    assert seen == {
        ("olga", "member"): ("member", ["change", "create"], [other["id"]]),
        ("anna", "viewer"): ("viewer", [], [dev["id"]]),
        ("anna", "owner"): ("member", ["change", "create"], [dev["id"]]),
        ("vera", "owner"): ("viewer", [], [dev["id"], other["id"]]),
    }
    answer = ask(people.hub, "POST", f"/api/sessions/{dev['id']}/stop", [*narrow["anna", "viewer"], JSON], b"{}")
    assert answer.status == 403
    for session in (dev, other):
        people.hub.ask("POST", f"/api/sessions/{session['id']}/cancel")


@pytest.mark.ids("S1")
@pytest.mark.parametrize("change", ["removed", "viewer now"])
def test_who_is_removed_or_may_do_less_has_nothing_open_within_two_seconds(
    people: People, ground: Ground, hitch: Hitch, change: str
) -> None:
    people.add("anna")
    page = sign_in(people.hub, user="anna")
    dev = people.start("anna", name="dev", folder=str(ground.place), command=["sh", "-c", "stty -echo; exec cat"])
    with people.socket("anna") as client:
        client.send(json.dumps({"type": "session.attach", "sessionId": dev["id"]}))
        client.send(json.dumps({"type": "terminal.input", "sessionId": dev["id"], "data": "before\r"}))
        began = time.monotonic()
        if change == "removed":
            assert hitch("user", "rm", "anna").out == "anna: removed, with 2 tokens and sign-ins\n"
        else:
            hitch("user", "set", "anna", "--role", "viewer")
        assert closed_with(client) == 1008
        assert time.monotonic() - began < SOON_S + 2.0  # the command itself takes its time
    expected = 401 if change == "removed" else 403
    assert people.ask("anna", "POST", f"/api/sessions/{dev['id']}/stop", {}).status == expected
    assert ask(people.hub, "POST", f"/api/sessions/{dev['id']}/stop", page.ours, b"{}").status == expected
    assert (page.again() is None) == (change == "removed")
    until_running(people.hub, dev["id"])
    people.hub.ask("POST", f"/api/sessions/{dev['id']}/cancel")


@pytest.mark.ids("S1")
def test_members_start_sessions_only_where_the_settings_let_them(ground: Ground, hub: HubProcess) -> None:
    people = People(hub)
    people.add("anna")
    for runtime in ("local", "tmux", "docker", "acp"):
        wish = {"command": ["true"], "folder": str(ground.place), "runtime": runtime}
        answer = people.ask("anna", "POST", "/api/sessions", wish)
        assert (runtime, answer.status) == (runtime, 403)
        assert answer.json()["error"]["message"].endswith("allowed are: pod")
    offered = {one["name"]: one for one in people.ask("anna", "GET", "/api/catalog").json()["runtimes"]}
    assert not offered["local"]["available"]
    assert "members" in offered["local"]["missing"]
    assert hub.ask("GET", "/api/catalog")["runtimes"][0]["available"]


def test_who_uses_all_that_is_allowed_is_told_so_and_starts_again_when_something_has_ended(
    people: People, ground: Ground
) -> None:
    people.add("anna", sessions=2)
    folder = str(ground.place)
    one, two = (people.start("anna", name=name, folder=folder) for name in ("one", "two"))
    wish = {"command": ["sleep", "1000"], "folder": folder, "name": "three"}
    answer = people.ask("anna", "POST", "/api/sessions", wish)
    assert (answer.status, answer.code) == (409, "quota")
    assert answer.json()["error"]["message"] == (
        "anna would use more than is allowed: sessions: 2 used of 2, 1 more wanted"
    )
    assert people.hub.ask("GET", "/api/users")[0]["used"]["sessions"] == 2
    assert people.ask("anna", "POST", f"/api/sessions/{one['id']}/restart", {}).status == 200  # its own place
    people.ask("anna", "POST", f"/api/sessions/{one['id']}/stop", {})
    three = people.start("anna", name="three", folder=folder)
    for deed in ("restart", "resume"):
        assert people.ask("anna", "POST", f"/api/sessions/{one['id']}/{deed}", {}).code == "quota"
    people.hub.ask("PATCH", "/api/users/anna", {"quota": {"sessions": "none"}})
    assert people.ask("anna", "POST", f"/api/sessions/{one['id']}/restart", {}).status == 200
    for session in (one, two, three):
        people.hub.ask("POST", f"/api/sessions/{session['id']}/cancel")
    eventually(lambda: people.hub.ask("GET", "/api/users")[0]["used"]["sessions"] == 0)
