"""Containers and the hub: stale is told, found, shown and undone; and Podman."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
from typing import Any

import pytest

from hitchpost.hub import containers
from hitchpost.hub.client import HubRefused
from hitchpost.ops.views.observe import observe
from hitchpost.runtimes import engine
from hitchpost.runtimes.container_file import read_box
from hitchpost.values import replace
from tests.boxes import ECHO, STALE, Boxed
from tests.cli.advice import proposed
from tests.cli.live import live
from tests.ground import Truth, alive
from tests.hubs import HubProcess
from tests.support import eventually, halt


def agent_view(hub: HubProcess, session: Truth) -> dict[str, Any]:
    return hub.ask("GET", f"/api/agents/{session.id}")


@pytest.mark.ids("C70-4", "C70-8", "C70-9", "C70-13", "C70-14")
def test_the_hub_tells_of_stale_and_restarts_in_the_container(boxed: Boxed, hub: HubProcess):
    dev = boxed.run("sh", "-c", ECHO)
    container = boxed.container(dev)
    eventually(lambda: agent_view(hub, dev)["state"] == "running", what="the hub to know it")
    with pytest.raises(HubRefused) as refused:
        hub.ask("POST", f"/api/agents/{dev.id}/restart-session")
    assert refused.value.status == 409
    boxed.ground.hitch("send", "dev", "leave")
    eventually(lambda: agent_view(hub, dev)["state"] == "stale", what="stale")
    assert agent_view(hub, dev)["session_alive"] is False
    assert [one["session_alive"] for one in hub.ask("GET", "/api/status")["agents"]] == [False]
    assert "dev is stale (container running, session dead)" in hub.log()
    assert hub.ask("POST", f"/api/agents/{dev.id}/restart-session")["state"] == "running"
    assert agent_view(hub, dev)["session_alive"] is True
    assert boxed.container(dev) == container
    boxed.ground.hitch("send", "dev", "leave")
    eventually(lambda: agent_view(hub, dev)["state"] == "stale", what="stale again")
    assert hub.ask("POST", f"/api/agents/{dev.id}/start")["state"] == "running"
    boxed.ground.hitch("send", "dev", "leave")
    eventually(lambda: agent_view(hub, dev)["state"] == "stale", what="stale a third time")
    assert hub.ask("POST", f"/api/agents/{dev.id}/stop")["state"] == "stopped"
    assert boxed.engine.containers() == []


@pytest.mark.ids("C70-9")
def test_a_restart_in_the_container_whose_agent_ends_at_once_is_answered_so(boxed: Boxed, hub: HubProcess) -> None:
    dev = boxed.run("sh", "-c", f"[ -e broken ] && {{ echo no key; exit 4; }}; {ECHO}")
    boxed.ground.hitch("send", "dev", "leave")
    eventually(lambda: agent_view(hub, dev)["state"] == "stale", what="stale")
    (boxed.ground.place / "broken").touch()
    with pytest.raises(HubRefused) as refused:
        hub.ask("POST", f"/api/agents/{dev.id}/restart-session")
    assert (refused.value.status, refused.value.message) == (422, "dev ended at once: command exited with code 4")
    assert agent_view(hub, dev)["state"] == "stale"
    boxed.ground.hitch("stop", "dev")


@pytest.mark.ids("C70-2", "C70-4", "F60", "F61")
def test_the_hub_hears_what_is_done_to_containers_by_hand(boxed: Boxed, hub: HubProcess):
    dev = boxed.run("sh", "-c", ECHO)
    idle = boxed.run("sh", "-c", ECHO, name="idle")
    boxed.ground.hitch("send", "idle", "leave")

    def label(session: Truth) -> str:
        return hub.ask("GET", f"/api/sessions/{session.id}")["label"]

    eventually(lambda: (label(dev), label(idle)) == ("running", STALE), what="both")
    boxed.engine.pause(boxed.container(dev))
    eventually(lambda: label(dev) == "running (paused)", 60, "paused")
    boxed.engine.docker("unpause", boxed.container(dev))
    eventually(lambda: label(dev) == "running", 60, "running")
    boxed.engine.docker("rm", "-f", boxed.container(idle))
    eventually(lambda: agent_view(hub, idle)["state"] == "stopped", 60, "stopped")
    boxed.engine.docker("rm", "-f", boxed.container(dev))
    eventually(lambda: agent_view(hub, dev)["state"] == "stopped", 60, "stopped")


@pytest.mark.ids("C70-5", "F65")
def test_a_hub_that_starts_finds_live_stale_paused_and_removed_containers(boxed: Boxed, hub: HubProcess):
    live, stale, paused, gone = (boxed.run("sh", "-c", ECHO, name=name) for name in ("live", "stale", "paused", "gone"))
    hub.kill()
    boxed.ground.hitch("send", "stale", "leave")
    stale.ended()
    boxed.engine.pause(boxed.container(paused))
    boxed.engine.docker("rm", "-f", boxed.container(gone))
    gone.ended()
    hub.start()
    states = {row["name"]: row["state"] for row in hub.ask("GET", "/api/agents")}
    assert states == {"live": "running", "stale": "stale", "paused": "running", "gone": "stopped"}
    assert "Discovered stale container for stale (container running, session dead)" in hub.log()
    assert boxed.label(paused) == "running (paused)"
    boxed.engine.docker("unpause", boxed.container(paused))
    assert boxed.label(live) == "running"


@pytest.mark.ids("D-9", "C70-18")
def test_reaping_ends_the_agent_and_keeps_its_container_and_files(boxed: Boxed, hub: HubProcess):
    hub.stop()
    boxed.ground.configure("reap_every_minutes = 0.002")
    dev = boxed.run("sh", "-c", f"echo kept >/tmp/made; {ECHO}")
    container = boxed.container(dev)
    hub.start(AGENT_SESSION_IDLE_TIMEOUT="0.005")
    eventually(lambda: agent_view(hub, dev)["state"] == "stopped", 60, "the reaper")
    row = hub.ask("GET", "/api/sessions/dev")
    assert (row["record"], row["state"], row["status"], row["label"]) == ("active", "stopped", "stopped", "stopped")
    assert (row["exit"]["intent"], row["sandbox_alive"], row["session_alive"]) == ("reaper", True, False)
    assert boxed.engine.containers() == [container]
    noted = "Containers:\n  agent-dev    stopped   (container running, session ended because it was idle)\n"
    assert boxed.ground.hitch("services").out == noted
    hub.stop()
    assert boxed.ground.hitch("services").out == noted
    assert boxed.label(dev) == "stopped"
    boxed.ground.hitch("send", "dev", "hello")
    eventually(lambda: b"<hello>" in dev.output(2), what="the answer")
    assert boxed.container(dev) == container
    assert boxed.engine.docker("exec", container, "cat", "/tmp/made").stdout == "kept\n"
    boxed.ground.hitch("stop", "dev")
    assert boxed.engine.containers() == []


@pytest.mark.ids("C70-10", "C70-11", "C70-12", "C70-17", "C70-18")
def test_services_and_status_have_the_words_of_ps(boxed: Boxed, hub: HubProcess):
    dev = boxed.run("sh", "-c", ECHO)
    keeper = dev.keeper_pid()

    def words() -> set[tuple[str, str]]:
        row = boxed.ground.ps(dev)
        said = row["status"], row["label"].removeprefix(row["status"]).strip(": ")
        lines = [line for command in ("services", "status") for line in boxed.ground.hitch(command).out.splitlines()]
        return {said, *((line.split()[1], " ".join(line.split()[2:])) for line in lines if "agent-dev" in line)}

    assert words() == {("running", "")}
    halt(keeper)
    eventually(lambda: words() == {("running", "(keeper stopped)")}, what="the stopped keeper")
    os.kill(keeper, signal.SIGCONT)
    eventually(lambda: words() == {("running", "")}, what="the keeper that goes on")
    shutil.rmtree(boxed.ground.place)
    eventually(lambda: words() == {("orphaned", "workspace no longer exists")}, what="the orphan")
    assert "(1 orphaned)" in boxed.ground.hitch("status").out
    boxed.ground.place.mkdir()
    boxed.ground.hitch("stop", "dev")


@pytest.mark.ids("C70-10", "C70-11", "C70-12", "C70-17", "C70-18")
def test_services_and_status_show_stale_and_say_what_they_do_not_know(boxed: Boxed, hub: HubProcess):
    dev = boxed.run("sh", "-c", ECHO)
    boxed.ground.hitch("send", "dev", "leave")
    dev.ended()
    stale = "Containers:\n  agent-dev    stale     (container running, session dead)\n"
    eventually(lambda: boxed.ground.hitch("services").out == stale, what="stale")
    assert "(1 stale)" in boxed.ground.hitch("status").out
    hub.stop()
    boxed.ground.hitch("restart", "dev")
    assert boxed.ground.hitch("services").out == "Containers:\n  agent-dev    running\n"
    with open(dev.run(2) / "keeper.lock") as lock:
        dev.kill_keeper(run=2)
        assert boxed.ground.hitch("services").out == "Containers:\n  agent-dev    running   (keeper lost)\n"
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a process does that has inherited it
        assert "agent-dev    running   session state unknown (Hub down)" in boxed.ground.hitch("services").out


@pytest.mark.ids("C70-10", "C70-11", "C70-12", "C70-17")
def test_status_services_and_the_api_know_the_same_containers_and_counts(boxed: Boxed, hub: HubProcess):
    hitch = boxed.ground.hitch
    names = ("live", "stale", "stopped", "archived")
    sessions = [boxed.run("sh", "-c", ECHO, name=name) for name in names]
    for session in sessions[1:]:
        hitch("send", session.id, "leave")
    eventually(lambda: {boxed.label(session) for session in sessions[1:]} == {STALE}, what="stale")
    hitch("stop", "stopped")
    hitch("archive", "archived")

    def told() -> tuple[dict[str, int], list[dict[str, Any]]]:
        """By ``status``, which has to say the same as ``services``."""
        status, services = hitch("status", "--json").json(), hitch("services", "--json").json()
        assert services["containers"] == status["containers"]
        section = hitch("status").out.partition("Containers:\n")[2].partition("Sessions:")[0]
        assert f"Containers:\n{section}" == hitch("services").out
        return status["counts"], status["containers"]

    def agree() -> tuple[dict[str, int], list[dict[str, Any]]]:
        asked = hub.ask("GET", "/api/status")
        assert told() == (asked["counts"], asked["containers"])
        return asked["counts"], asked["containers"]

    eventually(lambda: agree()[0] == {"running": 1, "stale": 1, "stopped": 1}, what="the same everywhere")
    counts, containers = agree()
    rows = hub.ask("GET", "/api/agents")
    assert [(row["name"], row["state"]) for row in containers] == [("agent-live", "running"), ("agent-stale", "stale")]
    assert [row["container"] for row in containers] == [row["container"] for row in rows if row["container"]]
    for command in ("services", "status"):
        with live(command, terminal=(100, 30)) as shown:
            assert shown.code() == 0
            assert b"agent-stale    \x1b[33mstale     \x1b[0m(container running, session dead)" in shown.out()
    hub.stop()
    assert told() == (counts, containers)


@pytest.mark.ids("C70-2", "C70-7", "E-3")
def test_a_crash_whose_container_was_torn_down_is_stopped_everywhere(boxed: Boxed, hub: HubProcess):
    dev = boxed.run("sh", "-c", ECHO)

    def words() -> set[str]:
        row, told = boxed.ground.ps(dev), hub.ask("GET", f"/api/sessions/{dev.id}")
        explained = boxed.ground.hitch("explain", "dev", "--json").json()["session"]
        return {
            agent_view(hub, dev)["state"],
            *(one[key] for one in (row, told, explained) for key in ("status", "label")),
        }

    for tear_down in (lambda: hub.ask("POST", "/api/agents/dev/stop"), lambda: boxed.ground.hitch("stop", "dev")):
        boxed.ground.hitch("send", "dev", "leave")
        eventually(lambda: words() == {"stale", STALE}, what="stale")
        tear_down()
        eventually(lambda: words() == {"stopped"}, what="stopped")
        assert dev.state == "failed"  # how the run ended is another question
        assert "\n  stopped, for " in boxed.ground.hitch("explain", "dev").out
        assert boxed.engine.containers() == []
        boxed.ground.hitch("restart", "dev")
        eventually(lambda: agent_view(hub, dev)["state"] == "running", what="running again")


@pytest.mark.ids("C70-3", "C70-6")
def test_who_detaches_and_comes_back_finds_it_running(boxed: Boxed, hub: HubProcess):
    dev = boxed.run("sh", "-c", ECHO)
    labels = {boxed.label(dev)}
    for number in range(2):
        with live("attach", "dev", terminal=(100, 30)) as visit:
            visit.shows(b"ready")
            visit.press(f"{number}\n".encode())
            visit.shows(f"<{number}>".encode())
            visit.press(b"\x02d")
            visit.shows(b"[detached from dev")
            assert visit.code() == 0
        labels.add(boxed.label(dev))
        labels.add(hub.ask("GET", f"/api/sessions/{dev.id}")["label"])
    assert labels == {"running"}
    box = read_box(str(dev.folder))
    assert box is not None

    def probe() -> bool:
        return engine.ask(boxed.engine.url, lambda docker: engine.session_is_alive(docker, box), 5)

    assert probe()
    boxed.ground.hitch("send", "dev", "leave")
    dev.ended()
    eventually(lambda: not probe(), what="tmux to end")


@pytest.mark.ids("C70-7", "C70-8", "C70-17", "C70-18")
def test_the_menu_of_a_stale_session(boxed: Boxed, hub: HubProcess):
    dev = boxed.run("sh", "-c", ECHO)

    def leave() -> None:
        boxed.ground.hitch("send", "dev", "leave")
        eventually(lambda: boxed.label(dev) == STALE, what="stale")

    leave()
    with live("attach", "dev", terminal=(100, 30)) as cancelled:
        cancelled.shows(b"Choice: ")
        menu = cancelled.out().replace(b"\r\n", b"\n").decode()
        assert menu.startswith(
            "Agent 'dev' is stale (container running, session dead).\n\n"
            "  [R] Restart session - launch sh in a new tmux session\n"
            "  [T] Teardown      - remove the container entirely\n"
            "  [C] Cancel\n\n"
            "Choice:"
        )
        cancelled.press(b"c\n")
        assert cancelled.code() == 0
    assert boxed.label(dev) == STALE
    for _ in range(2):
        with live("attach", "dev", terminal=(100, 30)) as restarted:
            restarted.shows(b"Choice: ")
            restarted.press(b"R\n")
            restarted.shows(b"ready")
            restarted.press(b"leave\n")
            restarted.shows(b"stale (container running, session dead)]")
            assert restarted.code() == 0
        if hub.process is not None and hub.process.poll() is None:
            hub.stop()  # the second time without it
    with live("attach", "dev", terminal=(100, 30)) as torn:
        torn.shows(b"Choice: ")
        torn.press(b"t\n")
        assert torn.code() == 0
    assert boxed.engine.containers() == []
    assert boxed.ground.hitch("services").out == "Containers:\n  none\n"


@pytest.mark.ids("C70-3", "C70-4", "F64")
def test_the_regular_probe_finds_an_end_that_a_sleeping_keeper_does_not_see(boxed: Boxed, hub: HubProcess):
    dev = boxed.run("sleep", "1000")
    eventually(lambda: agent_view(hub, dev)["state"] == "running", what="running")
    halt(dev.keeper_pid())
    try:
        boxed.engine.docker("exec", boxed.container(dev), "tmux", "kill-session", "-t", "agent")
        eventually(lambda: agent_view(hub, dev)["state"] == "stale", 60, "stale, by the probe")
        assert dev.state == "running"  # nobody wrote anything: it is the keeper's to say how the run ended
    finally:
        os.kill(dev.keeper_pid(), signal.SIGCONT)
    assert dev.ended() == "failed"
    assert agent_view(hub, dev)["state"] == "stale"


@pytest.mark.ids("C70-3", "F63")
def test_the_engine_is_not_asked_about_an_agent_whose_keeper_is_awake(boxed: Boxed) -> None:
    """A program that is started inside just when somebody pauses the container hangs, and the engine with it."""
    dev = boxed.run("sh", "-c", ECHO)
    box = read_box(str(dev.folder))
    assert box is not None
    unreachable = replace(box, engine="unix:///nowhere/docker.sock")
    home = str(boxed.ground.home)
    assert containers.is_alive(observe(home, dev.id), unreachable)
    halt(dev.keeper_pid())
    try:
        with pytest.raises(engine.EngineFailed, match="cannot be reached"):
            containers.is_alive(observe(home, dev.id), unreachable)
        assert containers.is_alive(observe(home, dev.id), box)
    finally:
        os.kill(dev.keeper_pid(), signal.SIGCONT)


@pytest.mark.ids("F62")
@pytest.mark.parametrize("who", ["hub", "doctor"])
def test_a_container_that_its_engine_kept_goes_when_the_engine_is_back(boxed: Boxed, hub: HubProcess, who: str):
    if who == "doctor":
        hub.stop()
    dev = boxed.run("sh", "-c", ECHO)
    box = read_box(str(dev.folder))
    assert box is not None
    boxed.engine.kill()
    os.kill(box.pid, signal.SIGKILL)
    dev.ended()
    boxed.ground.hitch("rm", "dev")
    assert f"containers of removed sessions: {dev.id}" in boxed.ground.hitch("doctor", check=False).out
    boxed.engine.start()
    assert boxed.engine.containers() == [box.id]
    if who == "doctor":
        assert f"removed the container of {dev.id}" in boxed.ground.hitch("doctor", "--fix", check=False).out
    eventually(lambda: boxed.engine.containers() == [], 60, "the container's end")
    eventually(lambda: "containers of removed" not in boxed.ground.hitch("doctor", check=False).out, what="all clear")


@pytest.mark.ids("F62")
def test_a_container_that_cannot_be_removed_is_there_for_everybody(boxed: Boxed, hub: HubProcess) -> None:
    """Its engine is away, so nobody can remove it: it was not gone for the hub in between either."""
    dev = boxed.run("sh", "-c", ECHO)
    boxed.ground.hitch("send", "dev", "leave")
    dev.ended()
    eventually(lambda: agent_view(hub, dev)["state"] == "stale")
    boxed.engine.kill()
    try:
        told = boxed.ground.hitch("rm", "dev", check=1).err
        assert "dev is stopped, but its container could not be removed: the container engine cannot be reached" in told
        assert agent_view(hub, dev)["state"] == "stale"
        hub.stop()
        assert boxed.ground.ps(dev)["status"] == "stale"
    finally:
        boxed.engine.start()
    boxed.ground.hitch("rm", "dev")


@pytest.mark.ids("F62")
@pytest.mark.parametrize("is_up", [True, False], ids=["hub", "no hub"])
def test_while_the_engine_is_away_an_agent_is_not_lost_to_a_restart_and_a_stop_is_told_whole(
    boxed: Boxed, hub: HubProcess, is_up: bool
) -> None:
    if not is_up:
        hub.stop()
    dev = boxed.run("sh", "-c", ECHO)
    agent = dev.agent_pid()
    boxed.engine.kill()
    try:
        told = boxed.ground.hitch("restart", "dev", check=False).err
        assert "the container engine cannot be reached" in told
        assert (alive(agent), boxed.label(dev), dev.state_file()["run"]) == (True, "running", 1)
        said = boxed.ground.hitch("stop", "dev", check=1).err
        again = proposed(said, "hitch stop {} removes it once its engine answers", 3)
        assert boxed.label(dev) == "stopped"
        [row] = boxed.ground.hitch.here("services", "--json").json()["containers"]
        assert row["note"] == "(container running, session ended because somebody asked)"
    finally:
        boxed.engine.start()
    boxed.ground.hitch(*again[1:])
    assert boxed.engine.containers() == []
    assert boxed.ground.hitch.here("services", "--json").json()["containers"] == []
