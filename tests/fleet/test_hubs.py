"""Hubs over one database: they show the same, any of them can be asked, and none of them matters."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hitchpost.errors import HitchpostError
from hitchpost.fleet import stored
from hitchpost.fleet.changing import about, changes
from hitchpost.fleet.copied import Copy
from hitchpost.hub.client import HubRefused
from hitchpost.model import run as runs
from hitchpost.store.home import new_id
from tests.fleet.hubs import Fleet, fleet_of, metric
from tests.fleet.replicas import Replica, kept, record_of, replica, write_new
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.postgres import SUPERUSER, Server
from tests.support import eventually

ECHO = 'stty -echo; while read line; do echo "<$line>"; done'
TAKEN_OVER_S = 3.0
LONG = "LONG" in os.environ
KILLS = 50 if LONG else 4
SESSIONS, LIVE = (1000, 100) if LONG else (200, 20)
IDLE_S = 6.0
OWN = ("last_activity_at", "output_bytes")
"""What each hub says of the output that it has."""


@pytest.fixture
def fleet(ground: Ground, database: str) -> Iterator[Fleet]:
    with fleet_of(ground, database) as made:
        yield made


def words(shape: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in shape.items() if key not in OWN}


# the same everywhere --------------------------------------------------------------------------------------------------


def test_both_hubs_show_the_same_sessions_with_the_same_words(fleet: Fleet):
    done = fleet.run(fleet.first, "echo hello; sleep 0.2; exit 3", name="broken")
    fine = fleet.run(fleet.second, "sleep 0.2; exit 0", name="fine")
    for session, label in ((done, "failed: command exited with code 3"), (fine, "completed")):
        first, second = fleet.both(session, label=label)
        assert words(first) == words(second)
    for path in ("/api/sessions", "/api/sessions?all=true"):
        assert [each["name"] for each in fleet.first.ask("GET", path)] == ["broken", "fine"]
        assert [each["id"] for each in fleet.first.ask("GET", path)] == [
            each["id"] for each in fleet.second.ask("GET", path)
        ]
    stories = [hub.ask("GET", f"/api/sessions/{done.id}/story") for hub in fleet.hubs]
    assert stories[0] == stories[1]
    explained = [hub.ask("GET", f"/api/sessions/{fine.id}/explain")["rule"] for hub in fleet.hubs]
    assert explained[0] == explained[1]


def test_a_change_at_one_hub_reaches_the_clients_of_the_other(fleet: Fleet):
    async def scene() -> None:
        async with fleet.second.ws() as client:
            session = await asyncio.to_thread(fleet.run, fleet.first, "sleep 0.3; exit 4", name="dev")
            await client.until("session.created", session.id)
            told = await client.until("terminal.exit", session.id)
            assert (told["exitCode"], told["run"]) == (4, 1)
            await asyncio.to_thread(
                fleet.first.ask, "PATCH", f"/api/sessions/{session.id}", {"name": "other", "description": "new"}
            )
            while (await client.until("session.updated", session.id))["session"]["name"] != "other":
                continue
            await asyncio.to_thread(fleet.second.ask, "DELETE", f"/api/sessions/{session.id}")
            await client.until("session.removed", session.id)
            eventually(lambda: fleet.first.ask("GET", "/api/sessions?all=true") == [])

    asyncio.run(scene())


def test_any_hub_does_what_is_asked_of_it(fleet: Fleet):
    """Each operation goes to the other hub than the one before."""
    session = fleet.run(fleet.first, "sleep 0.2; exit 1", name="dev")
    fleet.both(session, state="failed")
    fleet.second.ask("PATCH", f"/api/sessions/{session.id}", {"name": "fix", "pinned": True})
    assert fleet.first.ask("POST", f"/api/sessions/{session.id}/archive")["name"] == "fix"
    assert fleet.second.ask("POST", f"/api/sessions/{session.id}/unarchive")["record"] == "suspended"
    found = fleet.both(session, record="suspended", name="fix", pinned=True)
    assert words(found[0]) == words(found[1])
    actors = [line["event"] for line in fleet.first.ask("GET", f"/api/sessions/{session.id}/story")]
    assert actors.count("record") == 2
    assert actors.count("edited") == 1
    fleet.second.ask("DELETE", f"/api/sessions/{session.id}")
    with pytest.raises(HubRefused, match="no session"):
        fleet.first.ask("POST", f"/api/sessions/{session.id}/archive")


def test_names_and_numbers_are_the_fleets(fleet: Fleet):
    one = fleet.run(fleet.first, "exit 0", name="dev")
    with pytest.raises(HubRefused, match=f"session {one.id} is already named 'dev'") as refused:
        fleet.run(fleet.second, "exit 0", name="dev")
    assert refused.value.status == 409
    two, three = fleet.run(fleet.second, "exit 0"), fleet.run(fleet.first, "exit 0")
    shapes = [fleet.both(each)[0] for each in (one, two, three)]
    assert [each["name"] for each in shapes] == ["dev", "sh-place", "sh-place-2"]
    assert [each["index"] for each in shapes] == sorted({each["index"] for each in shapes})
    with pytest.raises(HubRefused, match="already named"):
        fleet.second.ask("PATCH", f"/api/sessions/{two.id}", {"name": "dev"})
    assert fleet.both(two, name="sh-place")


def test_what_runs_on_another_machine_is_not_known_and_never_failed(fleet: Fleet):
    session = fleet.run(fleet.first, ECHO, name="dev")
    assert fleet.first.ask("GET", "/api/sessions/dev")["status"] == "running"
    found = fleet.both(session, state="running")[1]
    assert found["status"] == "unknown"
    assert "another hub has it" in found["label"]
    assert fleet.first.ask("POST", "/api/sessions/dev/prompt", {"text": "hi"})["delivered"]
    assert fleet.first.ask("POST", "/api/sessions/dev/stop")["state"] == "stopped"
    first, second = fleet.both(session, state="stopped")
    assert words(first) == words(second)
    assert session.states() == ["starting", "running", "stopping", "stopped"]


def test_output_that_was_shipped_is_shown_by_every_hub(fleet: Fleet):
    session = fleet.run(fleet.first, "echo hello; sleep 0.2", name="dev")
    fleet.both(session, state="completed")
    folder = session.run() / "output"
    with replica(fleet.address) as other:
        for path in folder.iterdir():
            other.mirror.ship(session.id, 1, path.name, 0, path.read_bytes())
    assert "hello" in fleet.second.ask("GET", f"/api/sessions/{session.id}/screen")["text"]
    outlines = [hub.ask("GET", f"/api/sessions/{session.id}/replay") for hub in fleet.hubs]
    assert outlines[0] == outlines[1]

    async def scene() -> bytes:
        async with fleet.second.ws() as client:
            attached = await client.attach(session.id)
            return await client.until_shown(attached["channel"], b"hello")

    asyncio.run(scene())


# who does what --------------------------------------------------------------------------------------------------------


def test_a_hub_that_is_killed_is_replaced(fleet: Fleet):
    """One leads and watches. When it is killed, the other one has everything within three seconds."""
    assert {metric(hub, "hitchpost_fleet_leads") for hub in fleet.hubs} == {0.0, 1.0}
    leader, other = sorted(fleet.hubs, key=lambda hub: -metric(hub, "hitchpost_fleet_leads"))
    with replica(fleet.address) as third, ExitStack() as held:
        sessions = [third.make(f"s{number}") for number in range(5)]
        for session in sessions:
            for hub in fleet.hubs:
                folder = hub.ground.home / "sessions" / session
                eventually(folder.exists)
                held.enter_context(kept(folder))
            third.session(session).transition(runs.STARTING, run=1)
        eventually(lambda: sum(metric(hub, "hitchpost_fleet_watched") for hub in fleet.hubs) == 5)
        leader.kill()
        killed_s = time.monotonic()
        eventually(lambda: metric(other, "hitchpost_fleet_watched") == 5)
        eventually(lambda: metric(other, "hitchpost_fleet_leads") == 1)
        assert time.monotonic() - killed_s < TAKEN_OVER_S
        fleet.start(leader)
        assert metric(leader, "hitchpost_fleet_leads") == 0
        assert [each["state"] for each in leader.ask("GET", "/api/sessions")] == ["starting"] * 5
        with third.session(sessions[0]).lock():
            pass


def problems(hub: HubProcess) -> str:
    return "; ".join(hub.ask("GET", "/api/health")["problems"])


# PostgreSQL is away ---------------------------------------------------------------------------------------------------


def test_while_postgresql_is_away_sessions_go_on_and_nothing_is_changed(ground: Ground, postgres: Server):
    with postgres.fresh() as name, fleet_of(ground, postgres.address(name)) as fleet:
        session = fleet.run(fleet.first, ECHO, name="dev")
        ends = fleet.run(fleet.first, "while [ ! -e go ]; do sleep 0.05; done; exit 7", name="ends")
        fleet.both(session, state="running")
        postgres.stop()
        for hub in fleet.hubs:
            eventually(partial(problems, hub))
            assert "PostgreSQL" in problems(hub)
            assert "nothing can be changed" in hub.ask("GET", "/api/status")["hub"]["problems"][0]
            assert [each["name"] for each in hub.ask("GET", "/api/sessions")] == ["dev", "ends"]
        for method, path, body in (
            ("POST", "/api/sessions", {"command": ["true"], "folder": str(ground.place)}),
            ("POST", "/api/sessions/dev/prompt", {"text": "hi"}),
            ("POST", "/api/sessions/dev/stop", None),
            ("PATCH", "/api/sessions/dev", {"name": "other"}),
            ("DELETE", "/api/sessions/dev", None),
        ):
            with pytest.raises(HubRefused, match="PostgreSQL") as refused:
                fleet.first.ask(method, path, body)
            assert refused.value.status == 503
            assert "try again when it is back" in refused.value.hint
        (ground.place / "go").touch()
        label = "failed: command exited with code 7"
        eventually(lambda: fleet.first.ask("GET", "/api/sessions/ends")["label"] == label)
        assert fleet.second.ask("GET", "/api/sessions/ends")["state"] == "running"
        postgres.start()
        first, second = fleet.both(ends, label=label)
        assert words(first) == words(second)
        for hub in fleet.hubs:
            eventually(lambda: not problems(hub))  # noqa: B023
        assert fleet.first.ask("POST", "/api/sessions/dev/prompt", {"text": "hi"})["delivered"]
        fleet.first.ask("POST", "/api/sessions/dev/stop")
        fleet.both(session, state="stopped")
        eventually(lambda: {metric(hub, "hitchpost_fleet_leads") for hub in fleet.hubs} == {0.0, 1.0})


def test_a_hub_that_starts_while_postgresql_is_away_shows_its_copy(ground: Ground, postgres: Server):
    with postgres.fresh() as name, fleet_of(ground, postgres.address(name)) as fleet:
        session = fleet.run(fleet.first, "exit 0", name="dev")
        fleet.both(session, state="completed")
        fleet.second.kill()
        postgres.stop()
        fleet.start(fleet.second)
        assert fleet.second.ask("GET", "/api/sessions/dev")["state"] == "completed"
        with pytest.raises(HubRefused, match="PostgreSQL"):
            fleet.second.ask("PATCH", "/api/sessions/dev", {"name": "other"})
        postgres.start()
        eventually(lambda: fleet.second.ask("GET", "/api/health")["problems"] == [])
        fleet.second.ask("PATCH", "/api/sessions/dev", {"name": "other"})
        fleet.both(session, name="other")


# what hubs share ------------------------------------------------------------------------------------------------------


def test_what_is_chosen_at_one_hub_counts_at_the_other(fleet: Fleet):
    fleet.first.ask("PUT", "/api/notifications", {"kinds": ["failed"]})
    eventually(lambda: fleet.second.ask("GET", "/api/notifications")["kinds"] == ["failed"])
    fleet.second.ask("PUT", "/api/notifications", {"kinds": ["failed", "finished"]})
    eventually(lambda: fleet.first.ask("GET", "/api/notifications")["kinds"] == ["failed", "finished"])


# one machine ----------------------------------------------------------------------------------------------------------


def test_where_sessions_run_in_pods_only_nothing_is_started_beside_a_hub(fleet: Fleet):
    """Not even what was begun where that was allowed."""
    session = fleet.run(fleet.first, "true", name="before")
    fleet.both(session, label="completed")
    fleet.ground.configure("[fleet]\nonly_pods = true\n")
    why = "this hub starts sessions in pods only, and the runtime local is its own machine"
    for path, body in (
        ("/api/sessions", {"command": ["true"], "folder": str(fleet.ground.place)}),
        (f"/api/sessions/{session.id}/restart", None),
        (f"/api/sessions/{session.id}/fork", {}),
        (f"/api/sessions/{session.id}/prompt", {"text": "x", "resume": True}),
    ):
        for hub in fleet.hubs:
            with pytest.raises(HubRefused, match=why) as refused:
                hub.ask("POST", path, body)
            assert (refused.value.http_status, refused.value.code) == (409, "wrong_state")
    assert len(fleet.first.ask("GET", "/api/sessions")) == 1


def test_a_hub_of_one_machine_loads_nothing_of_a_fleet(ground: Ground):
    hub = HubProcess(ground)
    hub.start(warm=False)
    try:
        assert hub.process is not None
        maps = Path(f"/proc/{hub.process.pid}/maps").read_text()
        assert "psycopg" not in maps
        assert "libpq" not in maps
        assert not (ground.home / "fleet.json").exists()
    finally:
        hub.stop()


def test_a_fleets_hub_loads_it(ground: Ground, database: str):
    hub = HubProcess(ground)
    hub.start(warm=False, HITCHPOST_FLEET=database)
    try:
        assert hub.process is not None
        assert "psycopg" in Path(f"/proc/{hub.process.pid}/maps").read_text()
    finally:
        hub.stop()


# under load -----------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_hubs_that_are_killed_under_load_lose_nothing_and_double_nothing(fleet: Fleet):
    session = fleet.run(fleet.first, "exit 0", name="dev")
    fleet.both(session, state="completed")
    acknowledged: list[str] = []
    tried: list[str] = []
    is_over = threading.Event()

    def edit(hub: HubProcess, which: str) -> None:
        for number in itertools.count():
            if is_over.is_set():
                return
            tried.append(text := f"{which}-{number}")
            try:
                hub.ask("PATCH", f"/api/sessions/{session.id}", {"description": text}, timeout_s=20)
                acknowledged.append(text)
            except HitchpostError:
                continue

    editors = [threading.Thread(target=edit, args=(hub, str(number))) for number, hub in enumerate(fleet.hubs)]
    for editor in editors:
        editor.start()
    for number in range(KILLS):
        hub = fleet.hubs[number % 2]
        count = len(acknowledged)
        eventually(lambda count=count: len(acknowledged) > count + 5, what="hubs that answer")  # type: ignore[misc]
        hub.kill()
        fleet.start(hub)
    is_over.set()
    for editor in editors:
        editor.join()
    fleet.run(fleet.second, "exit 0", name="last")
    fleet.both("last", state="completed")
    stories = [hub.ask("GET", f"/api/sessions/{session.id}/story") for hub in fleet.hubs]
    assert stories[0] == stories[1]
    told = Counter(line["description"] for line in stories[0] if line["event"] == "edited")
    assert max(told.values()) == 1
    assert set(acknowledged) <= set(told) <= set(tried)
    last = [line["description"] for line in stories[0] if line["event"] == "edited"][-1]
    assert [shape["description"] for shape in fleet.both(session)] == [last, last]


@pytest.mark.long
def test_idle_hubs_ask_postgresql_for_little(ground: Ground, postgres: Server):
    """Many sessions, of which a tenth live, under two hubs."""
    with postgres.fresh() as name, ExitStack() as held:
        address = postgres.address(name)
        with replica(address) as made:
            sessions = many(made, SESSIONS)
        fleet = held.enter_context(fleet_of(ground, address))
        for hub in fleet.hubs:
            for session in sessions[:LIVE]:
                held.enter_context(kept(hub.ground.home / "sessions" / session))
        with replica(address) as made:
            for session in sessions[:LIVE]:
                made.session(session).transition(runs.STARTING, run=1)
        eventually(lambda: sum(metric(hub, "hitchpost_fleet_watched") for hub in fleet.hubs) == LIVE)
        for hub in fleet.hubs:
            eventually(lambda hub=hub: len(hub.ask("GET", "/api/sessions")) == SESSIONS)  # type: ignore[misc]
        with postgres.connect(SUPERUSER) as asking:
            asking.execute("alter system set log_statement = 'all'")
            asking.execute("select pg_reload_conf()")
            began_s = time.monotonic()
            before = statements(postgres)
            eventually(lambda: time.monotonic() - began_s > IDLE_S)
            count = statements(postgres) - before
        assert 0 < count / IDLE_S <= 50, f"{count} statements in {IDLE_S} s"


def many(made: Replica, count: int) -> list[str]:
    """Sessions that nobody has started, all at once."""
    sessions = [new_id() for _ in range(count)]
    with made.database.transaction() as held:
        for number, session in enumerate(sessions):
            name, index = stored.claim(held, session, [f"s{number}"])
            write_new(made.home, record_of(session, name, index))
            copy = Copy(session, made.folder(session))
            stored.write(held, session, 0, changes(copy), about(copy))
    return sessions


def statements(server: Server) -> int:
    lines = (server.folder / "log").read_text(errors="replace").splitlines()
    return sum("LOG:  statement:" in line or "LOG:  execute" in line for line in lines)
