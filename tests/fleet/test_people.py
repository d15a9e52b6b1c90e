"""People of a fleet: every hub knows them, and all hubs together count what each uses."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hitchpost.fleet.profiles import FleetOptions
from hitchpost.hub.http.ws_connection import MESSAGES
from hitchpost.model import run as runs
from hitchpost.model.people import NO_QUOTA, Amounts, QuotaReached
from hitchpost.store.home import new_id
from hitchpost.values import replace
from tests.fleet.hubs import Fleet, fleet_of
from tests.fleet.replicas import Replica, record_of, replica, write_new
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.people import LOCAL_TOO, People, closed_with
from tests.security.attacks import SIGN_IN, Reply, ask, walk, ways
from tests.support import eventually

SOON_S = 2.0
ROUNDS = 4
GI = 2**30


@pytest.fixture
def fleet(ground: Ground, database: str) -> Iterator[Fleet]:
    ground.configure(LOCAL_TOO)
    with fleet_of(ground, database) as made:
        yield made


def test_people_and_tokens_are_known_to_every_hub_and_end_at_every_hub(fleet: Fleet) -> None:
    people = People(fleet.first)
    people.add("anna")
    people.add("bert")
    eventually(lambda: people.ask("anna", "GET", "/api/me", hub=fleet.second).status == 200, what="the token there")
    with people.socket("anna", fleet.second) as client, people.socket("anna", fleet.first) as other:
        began = time.monotonic()
        fleet.first.ask("DELETE", "/api/users/anna")
        assert closed_with(client) == closed_with(other) == 1008
        assert time.monotonic() - began < SOON_S
    assert people.ask("anna", "GET", "/api/me", hub=fleet.second).status == 401
    with people.socket("bert", fleet.first) as client:
        began = time.monotonic()
        fleet.second.ask("PATCH", "/api/users/bert", {"role": "viewer"})
        assert closed_with(client) == 1008
        assert time.monotonic() - began < SOON_S
    assert people.ask("bert", "GET", "/api/me", hub=fleet.first).json()["role"] == "viewer"


def test_people_are_changed_at_several_hubs_at_once_and_nobody_is_lost(fleet: Fleet) -> None:
    names = [f"p{number}" for number in range(12)]
    with ThreadPoolExecutor(4) as threads:
        adding = zip(names, fleet.hubs * 6, strict=True)
        list(threads.map(lambda each: each[1].ask("POST", "/api/users", {"name": each[0]}), adding))
    for hub in fleet.hubs:
        eventually(lambda: [row["name"] for row in hub.ask("GET", "/api/users")] == sorted(names), what="all of them")  # noqa: B023


def test_a_member_sees_and_drives_nothing_of_what_another_has_started_at_another_hub(fleet: Fleet) -> None:
    people = People(fleet.first)
    fleet.second._tokens["anna"] = people.add("anna")
    people.add("bert")
    folder = str(fleet.ground.place)
    theirs = people.start("bert", name="theirs-canary", folder=folder)
    mine = people.start("anna", name="mine", folder=folder)
    fleet.both(theirs["id"], state="running")
    path = f"/api/sessions/{mine['id']}"
    eventually(lambda: people.ask("anna", "GET", path, hub=fleet.second).status == 200, what="the token there")
    signed = people.signed("anna")
    for way in ways(theirs["id"]):
        if way in SIGN_IN or way[0] == "WS":
            continue
        answer = walk(fleet.second, way, signed)
        assert "theirs-canary" not in answer.text, way
        if theirs["id"] in way[1]:
            assert answer.status in (403, 404, 422), way
    assert [row["id"] for row in ask(fleet.second, "GET", "/api/sessions?all=true", signed).json()] == [mine["id"]]

    async def scene() -> None:
        async with fleet.second.ws("anna") as client:
            for kind in MESSAGES:
                await client.say(kind, sessionId=theirs["id"], data="evil", cols=33, rows=11)
                assert (await client.until("error", theirs["id"]))["code"] == "not_found"
            people.ask("bert", "PATCH", f"/api/sessions/{theirs['id']}", {"description": "told"})
            people.ask("anna", "PATCH", path, {"description": "told"})
            await client.until("session.updated", mine["id"])
            assert {event.get("sessionId") for event in client.events} <= {mine["id"]}

    asyncio.run(scene())
    edited = people.ask("anna", "PATCH", path, {"description": "from there"}, fleet.second)  # their own, from any hub
    assert edited.status == 200, edited
    story = people.ask("anna", "GET", f"{path}/story", hub=fleet.second).json()
    assert {line["actor"] for line in story if line["event"] in ("created", "edited")} == {"anna"}
    for session in (mine, theirs):
        fleet.first.ask("POST", f"/api/sessions/{session['id']}/cancel")


def at_once(fleet: Fleet, deed: Callable[[HubProcess], Reply]) -> list[Reply]:
    """What each hub answers, when both are asked at the same moment."""
    together = threading.Barrier(2)

    def act(hub: HubProcess) -> Reply:
        together.wait()
        return deed(hub)

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(act, fleet.hubs))


def test_two_starts_at_once_at_two_hubs_do_not_both_have_the_last_place(fleet: Fleet) -> None:
    people = People(fleet.first)
    people.add("anna", sessions=1)
    eventually(lambda: people.ask("anna", "GET", "/api/me", hub=fleet.second).status == 200, what="the token there")
    wish = {"command": ["sleep", "1000"], "folder": str(fleet.ground.place)}
    for _ in range(ROUNDS):
        answers = at_once(fleet, lambda hub: people.ask("anna", "POST", "/api/sessions", wish, hub))
        assert sorted(answer.status for answer in answers) == [201, 409], answers
        (refused,) = (answer.json()["error"] for answer in answers if answer.status == 409)
        assert refused["code"] == "quota"
        assert refused["message"].endswith("sessions: 1 used of 1, 1 more wanted")
        for hub, answer in zip(fleet.hubs, answers, strict=True):
            if answer.status == 201:
                made = answer.json()["session"]["id"]
                hub.ask("POST", f"/api/sessions/{made}/stop", {})
    fleet.both(made, state="stopped")
    assert len(fleet.first.ask("GET", "/api/sessions?all=true")) == ROUNDS


def test_two_restarts_at_once_at_two_hubs_do_not_both_have_the_last_place(fleet: Fleet) -> None:
    people = People(fleet.first)
    people.add("anna", sessions=1)
    eventually(lambda: people.ask("anna", "GET", "/api/me", hub=fleet.second).status == 200, what="the token there")
    made = {}
    for hub in fleet.hubs:
        made[hub.home] = people.start("anna", hub, folder=str(fleet.ground.place))["id"]
        hub.ask("POST", f"/api/sessions/{made[hub.home]}/stop", {})
    answers = at_once(fleet, lambda hub: people.ask("anna", "POST", f"/api/sessions/{made[hub.home]}/restart", {}, hub))
    assert sorted(answer.status for answer in answers) == [200, 409], answers
    begun, refused = fleet.hubs if answers[0].status == 200 else fleet.hubs[::-1]
    fleet.both(made[begun.home], state="running", run=2)
    fleet.both(made[refused.home], state="stopped", run=1)  # nothing is left of the try
    begun.ask("POST", f"/api/sessions/{made[begun.home]}/stop", {})
    again = people.ask("anna", "POST", f"/api/sessions/{made[refused.home]}/restart", {}, refused)
    assert again.status == 200, again
    refused.ask("POST", f"/api/sessions/{made[refused.home]}/cancel", {})


def pods_of(made: Replica, owner: str, profile: str = "") -> str:
    """A new session of theirs, in a pod that nobody has started."""
    session = new_id()
    with made.mirror.making(session) as claim:
        name, number = claim([session])
        write_new(made.home, replace(record_of(session, name, number), runtime="pod", profile=profile, owner=owner))
    return session


def test_what_pods_ask_for_is_counted_and_a_volume_until_its_session_is_removed(database: str) -> None:
    profiles = FleetOptions(profiles={"large": {"cpu": "1500m", "memory": "6Gi", "storage": "20Gi"}})
    limits = {"sessions": 3, "cpu": "2", "memory": "8Gi", "storage": "30Gi"}
    with replica(database) as one, replica(database) as two:
        for each in (one, two):
            each.mirror.quotas.options = lambda: profiles
            each.mirror.quotas.quota_of = lambda name: NO_QUOTA.changed(limits) if name == "anna" else NO_QUOTA
        large = pods_of(one, "anna", "large")
        pods_of(one, "bert", "large")
        with pytest.raises(QuotaReached, match=r"cpu: 1\.5 used of 2, 1 more wanted"):
            pods_of(two, "anna")
        session = one.session(large)
        for state in (runs.STARTING, runs.RUNNING):
            session.transition(state, run=1, reason="")
        with one.database.connections.connection() as asking:
            used = one.mirror.quotas.used(asking, ["anna", "bert", "nobody"])
        assert used["anna"] == used["bert"] == Amounts(1, 1.5, 6 * GI, 20 * GI)
        assert "nobody" not in used
        session.transition(runs.STOPPING, run=1, reason="")
        session.transition(runs.STOPPED, run=1, reason="")
        with two.database.connections.connection() as asking:
            assert two.mirror.quotas.used(asking, ["anna"])["anna"] == Amounts(storage=20 * GI)
        with pytest.raises(QuotaReached, match="storage: 20Gi used of 30Gi, 20Gi more wanted"):
            pods_of(two, "anna", "large")
        assert pods_of(two, "anna")


def test_who_counts_waits_until_another_has_told_what_it_begins(database: str) -> None:
    with replica(database) as one, replica(database) as two, ThreadPoolExecutor(2) as threads:
        counted, told = threading.Event(), threading.Event()
        calls: list[int] = []

        def slowly() -> FleetOptions:
            """The second time, it has counted and has not told yet."""
            calls.append(1)
            if len(calls) == 2:
                counted.set()
                told.wait(60)
            return FleetOptions()

        for each in (one, two):
            each.mirror.quotas.quota_of = lambda name: NO_QUOTA.changed({"sessions": 1})
        one.mirror.quotas.options = slowly
        first = threads.submit(pods_of, one, "anna")
        assert counted.wait(60)
        second = threads.submit(pods_of, two, "anna")

        def is_waiting() -> bool:
            with one.database.connections.connection() as asking:
                row = asking.execute("select count(*) from pg_locks where not granted").fetchone()
            return second.done() or (row is not None and row[0] > 0)

        try:
            eventually(is_waiting, what="the second to wait for the first")
        finally:
            told.set()
        assert first.result(60)
        with pytest.raises(QuotaReached):
            second.result(60)


def test_commands_in_a_hubs_copy_ask_the_hub_and_mcp_is_refused_there(fleet: Fleet) -> None:
    home = {"HITCHPOST_HOME": fleet.first.home}
    hitch = fleet.ground.hitch
    assert hitch("user", "add", "anna", "--sessions", "2", env=home).out == "anna: member, sessions 2\n"
    token = hitch("token", "create", "--user", "anna", env=home).out.strip()
    signed = [("Authorization", f"Bearer {token}")]
    eventually(lambda: ask(fleet.second, "GET", "/api/me", signed).status == 200, what="the token at the other hub")
    assert [row["user"] for row in hitch("token", "ls", "--json", env=home).json()] == ["anna"]
    assert hitch("user", "ls", env=home).out.splitlines()[1].split()[:3] == ["anna", "member", "0/2"]
    assert "hub's copy of the fleet" in hitch("mcp", env=home, check=4).err
    assert hitch("user", "rm", "anna", env=home).out == "anna: removed, with 1 tokens and sign-ins\n"
    eventually(lambda: ask(fleet.second, "GET", "/api/me", signed).status == 401, what="its end there")
