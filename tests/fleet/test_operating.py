"""Operating a fleet: nodes are drained, what is idle costs no pod, regular jobs are done once, figures are told."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hitchpost.fleet.database import Database
from hitchpost.fleet.mirror import Mirror
from hitchpost.fleet.roster import members
from hitchpost.fleet.stored import lock
from hitchpost.hub.registry import Registry
from hitchpost.hub.replica import Replica
from hitchpost.model.record import SUSPENDED
from hitchpost.store import files
from hitchpost.store.home import new_id
from hitchpost.system import process
from hitchpost.values import replace
from tests.cli.advice import proposed
from tests.cli.remote.far import Far
from tests.fleet.cluster_hubs import ECHO, Hubs, hubs_over, output, shown, two_of
from tests.fleet.hubs import Fleet, fleet_of, metric
from tests.fleet.replicas import opened, record_of, replica, write_new
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.kube.cluster import Cluster
from tests.reaching import certificate, free_port
from tests.support import eventually

LIVES = f'n=$(($(cat "$HOME/lives" 2>/dev/null) + 1)); echo $n > "$HOME/lives"; echo "life $n"; {ECHO}'
"""It says how often it was begun on its volume."""
Two = tuple[HubProcess, HubProcess]


@pytest.fixture
def fleet(ground: Ground, database: str) -> Iterator[Fleet]:
    with fleet_of(ground, database) as made:
        yield made


def logged(*hubs: HubProcess, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for hub in hubs for line in hub.log().splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("event") == event]


# nodes ----------------------------------------------------------------------------------------------------------------


def far_from(hubs: Hubs, hub: HubProcess) -> Far:
    """``hitch`` on another machine, whose context is the hub."""
    cert, key = certificate(hubs.ground.place.parent, "far")
    hub.stop()
    hubs.start(hub, host="127.0.0.2", port=free_port(), reach=(cert, key))
    far = Far(hubs.ground, hub, hubs.ground.place.parent / "far-home", cert, key)
    far.add("team", hub.token())
    return far


def test_a_node_is_drained_from_afar_and_its_sessions_go_on_elsewhere(
    ground: Ground, whole_cluster: Cluster, cluster_database: str
) -> None:
    first_node, second_node = whole_cluster.nodes
    with hubs_over(ground, whole_cluster, cluster_database) as hubs, two_of(hubs) as (first, second):
        far = far_from(hubs, second)
        whole_cluster.cordon(second_node)
        dev, other = (hubs.run(first, LIVES, name=name) for name in ("dev", "other"))
        whole_cluster.uncordon(second_node)
        eventually(lambda: b"ready" in output(second, other), what="both")
        nodes = {node["name"]: node for node in far("fleet", "status", "--json").json()["nodes"]}
        assert (nodes[first_node]["live"], nodes[second_node]["live"]) == (2, 0)

        plan = far("fleet", "drain", first_node, "--dry-run")
        goes = "its run is ended; the next prompt starts it on another node"
        assert plan.out == f"dev (running): {goes}\nother (running): {goes}\n"
        assert "--cordon keeps new ones away" in plan.err
        refused = far("fleet", "drain", first_node, "--how", "move", "--yes", check=1)
        assert f"node {first_node} takes new pods" in refused.err
        assert far("fleet", "drain", first_node, stdin="n\n", check=1).err.endswith("Aborted!\n")
        assert shown(first, dev)["state"] == "running"

        done = far("fleet", "drain", first_node, "--cordon", "--yes", "--json", timeout_s=120).json()
        assert [(each["name"], each["became"]) for each in done["sessions"]] == [("dev", "ended"), ("other", "ended")]
        assert whole_cluster.get("node", first_node)["spec"]["unschedulable"] is True
        for session in (dev, other):
            assert not whole_cluster.exists("pod", f"hitch-{session}", hubs.namespace)
            assert whole_cluster.exists("pvc", f"hitch-{session}", hubs.namespace)
        assert far("fleet", "drain", first_node, "--yes").out == f"no session is on node {first_node}\n"

        first.ask("POST", f"/api/sessions/{dev}/prompt", {"text": "hello"})
        eventually(lambda: b"<hello>" in output(first, dev, 2), what="the answer")
        assert (shown(first, dev)["node"], shown(first, dev)["run"]) == (second_node, 2)
        assert b"life 2" in output(first, dev, 2)

        said = far("fleet", "undrain", first_node).out
        assert said == f"node {first_node}: uncordoned\nother: ended by the drain; hitch resume {other}\n"
        far(*proposed(said, "hitch resume {}", 3)[1:], timeout_s=120)
        assert shown(first, other)["state"] == "running"

        said = far("fleet", "drain", second_node, "--how", "move", "--cordon", "--yes", timeout_s=180).out
        assert f"dev: moved to {first_node} (running)" in said
        assert b"life 3" in eventually(lambda: output(second, dev, 3), what="its output")
        assert {shown(second, each)["node"] for each in (dev, other)} == {first_node}
        assert "uncordoned" in far(*proposed(said, "hitch fleet undrain {} undoes it", 4)[1:]).out

        far("fleet", "drain", first_node, "--how", "suspend", "--cordon", "--yes", timeout_s=120)
        assert [shown(second, each)["record"] for each in (dev, other)] == ["suspended", "suspended"]
        said = far("fleet", "undrain", first_node, "--resume", timeout_s=120).out
        assert sorted(line.split(" on ")[0] for line in said.splitlines()[1:]) == ["dev: resumed", "other: resumed"]
        assert [shown(first, each)["state"] for each in (dev, other)] == ["running", "running"]

        said = far("fleet", "drain", "nowhere", check=3).err.replace("hitch --context team ", "hitch ")
        assert first_node in far(*proposed(said, "hitch fleet status lists them", 3)[1:]).out


def test_a_hub_of_one_machine_has_no_nodes(ground: Ground, hub: HubProcess) -> None:
    said = ground.hitch("fleet", "status", check=4)
    assert said.err == "hitch: this hub serves one machine, so it has no nodes; ask the hub of a fleet\n"


# hubs -----------------------------------------------------------------------------------------------------------------


def test_every_hub_is_told_with_what_it_does(fleet: Fleet) -> None:
    session = fleet.run(fleet.first, "exec sleep 1000", name="dev")
    fleet.both(session)

    def told() -> list[dict[str, Any]]:
        return fleet.second.ask("GET", "/api/fleet")["replicas"]

    assert len(told()) == 2
    assert [each["leads"] for each in told()].count(True) == 1
    names = {each["name"] for each in told()}
    assert names == {line["replica"] for line in logged(*fleet.hubs, event="hub is up")}
    fleet.first.kill()
    left = eventually(lambda: found if len(found := told()) == 1 else [], what="the end of the first")
    eventually(lambda: told()[0]["leads"], what="another one to lead")
    assert left[0]["name"] == fleet.second.ask("GET", "/api/fleet")["replica"]
    fleet.start(fleet.first)


@contextmanager
def stored_lock(database: Database, session: str) -> Iterator[None]:
    with database.transaction() as held:
        lock(held, session, 1)
        yield


def test_a_session_that_is_changed_is_not_counted_as_watched(ground: Ground, database: str) -> None:
    with replica(database) as made, opened(database, name="me") as asking:
        watched, changed = made.make("watched"), made.make("changed")
        mirror = Mirror(made.home, asking)
        assert mirror.watch(watched)
        with stored_lock(asking, changed):
            assert [(each.name, each.watched, each.leads) for each in members(asking)] == [("me", 1, False)]
            assert mirror.lead()
            assert [(each.name, each.watched, each.leads) for each in members(asking)] == [("me", 1, True)]
        mirror.claims.close()


def test_a_session_that_is_being_started_stays_watched_although_nobody_has_looked_at_it_yet(
    ground: Ground, database: str
) -> None:
    starting = new_id()
    os.makedirs(ground.home / "sessions", mode=0o700)

    async def scene() -> list[bool]:
        hub = Replica(str(ground.home), database)
        registry = Registry(str(ground.home))
        hub.attach(registry)
        await hub.open()
        await registry.open()
        try:
            hub.is_starting = lambda session: bool(starting)
            await hub.watch(starting)
            found = [hub.watches(starting)]
            for is_starting in (True, True, True, False, False):
                hub.is_starting = lambda session, is_starting=is_starting: is_starting  # type: ignore[misc]
                await hub._turn()
                found.append(hub.watches(starting))
            return found
        finally:
            await registry.close()
            await hub.close()

    assert asyncio.run(scene()) == [True, True, True, True, True, False]


# regular jobs ---------------------------------------------------------------------------------------------------------


def test_what_is_idle_costs_no_pod_is_ended_once_and_goes_on_with_the_next_prompt(
    ground: Ground, cluster: Cluster, cluster_database: str
) -> None:
    often = "reap_idle_minutes = 0.05\nreap_every_minutes = 0.01"
    with hubs_over(ground, cluster, cluster_database, often) as hubs, two_of(hubs) as two:
        session = hubs.run(two[0], LIVES, name="dev")
        for hub in two:
            eventually(lambda hub=hub: shown(hub, session)["state"] == "stopped", what="its end")  # type: ignore[misc]
        eventually(lambda: not cluster.exists("pod", f"hitch-{session}", hubs.namespace), what="the end of its pod")
        assert cluster.exists("pvc", f"hitch-{session}", hubs.namespace)
        assert len(eventually(lambda: logged(*two, event="reaped"))) == 1
        story = two[0].ask("GET", f"/api/sessions/{session}/story")
        assert [line["to"] for line in story if line["event"] == "state"].count("stopped") == 1
        assert two[1].ask("GET", f"/api/sessions/{session}")["takes_prompt"]
        two[1].ask("POST", f"/api/sessions/{session}/prompt", {"text": "hello"})
        eventually(lambda: b"<hello>" in output(two[1], session, 2), what="the answer")
        assert b"life 2" in output(two[1], session, 2)


def test_old_records_are_deleted_by_one_hub(ground: Ground, database: str) -> None:
    old = "2020-01-01T00:00:00Z"
    with replica(database) as made:
        sessions = [new_id() for _ in range(3)]
        for session in sessions:
            with made.mirror.making(session) as claim:
                name, number = claim([session])
                record = replace(record_of(session, name, number), record=SUSPENDED, created_at=old)
                write_new(made.home, replace(record, record_changed_at=old, last_active_at=old))
        seen = {
            "schema": files.SCHEMA,
            "boot_id": process.boot_id(),
            "at_s": time.clock_gettime(time.CLOCK_BOOTTIME) - 1,
            "due_s": dict.fromkeys(sessions, 200000.0),
            "deleted_s": [],
        }
        files.write_object(os.path.join(made.home, "retention.json"), seen)
        made.mirror.commit("home")
    with fleet_of(ground, database) as fleet:
        for hub in fleet.hubs:
            eventually(lambda hub=hub: hub.ask("GET", "/api/sessions?all=true") == [], what="their end")  # type: ignore[misc]
        pruned = eventually(lambda: found if len(found := logged(*fleet.hubs, event="pruned")) == 3 else [])
        assert sorted(line["session_id"] for line in pruned) == sorted(sessions)
        assert len({line["replica"] for line in pruned}) == 1


# figures --------------------------------------------------------------------------------------------------------------


def test_figures_tell_of_links_statements_and_output_that_waits(hubs: Hubs, two: Two) -> None:
    session = hubs.run(two[0], ECHO, name="dev")
    for hub in two:
        eventually(lambda hub=hub: metric(hub, 'hitchpost_fleet_links{state="up"}') == 1, what="its link")  # type: ignore[misc]
        assert metric(hub, "hitchpost_fleet_cluster_up") == 1
        assert metric(hub, 'hitchpost_fleet_nodes{state="ready"}') == 2
        assert metric(hub, 'hitchpost_sessions{status="running"}') == 1
        assert metric(hub, "hitchpost_fleet_link_reconnects_total") == 0
    watching = next(hub for hub in two if metric(hub, "hitchpost_fleet_watched") == 1)
    before = metric(watching, "hitchpost_fleet_statements_total")
    two[1].ask("POST", f"/api/sessions/{session}/prompt", {"text": "hello"})
    eventually(lambda: metric(watching, "hitchpost_fleet_shipped_bytes_total") >= len(b"ready\r\n<hello>\r\n"))
    assert metric(watching, "hitchpost_fleet_statements_total") > before
    eventually(lambda: metric(watching, "hitchpost_fleet_output_lag_seconds") == 0, what="all of it in PostgreSQL")
    revisions = [lambda hub=hub: metric(hub, "hitchpost_fleet_revision") for hub in two]
    eventually(lambda: revisions[0]() == revisions[1]() > 0, what="the same revision at both")
    lines = [line for line in logged(*two, event="hub is up") if "replica" in line]
    assert len(lines) == 2
