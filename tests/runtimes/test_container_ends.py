"""How a container ends, and who ends it: one reason each, in every place, whatever of it is noticed first."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hitchpost.runtimes.container_file import read_box
from tests.boxes import ECHO, STALE, Boxed, stopped
from tests.cli.live import live
from tests.ground import NEVER_RAN, Truth
from tests.hubs import HubProcess
from tests.support import eventually

REMOVED, STOPPED = "failed: container removed", "failed: container stopped"
FREEZER = Path("/sys/fs/cgroup/freezer")


def goes_on(boxed: Boxed, session: Truth, how: str) -> None:
    """The next run works, and nothing is left that a doctor would find."""
    boxed.ground.hitch(how, "dev")
    assert boxed.label(session) == "running"
    assert boxed.engine.containers() == [boxed.container(session)]
    found = boxed.ground.hitch.here("doctor", "--json", check=False).json()["checks"]
    assert [one for one in found if one["session"] or one["level"] == "problem"] == []


@pytest.mark.ids("F60", "C70-2")
@pytest.mark.parametrize(
    ("by_hand", "label", "then"),
    [
        (("rm", "-f"), REMOVED, "restart"),
        (("kill",), STOPPED, "resume"),
        (("stop", "-t", "1"), STOPPED, "restart"),
    ],
)
def test_what_is_done_by_hand_to_a_container_is_why_its_run_failed(
    boxed: Boxed, by_hand: tuple[str, ...], label: str, then: str
):
    dev = boxed.run("sh", "-c", ECHO)
    boxed.engine.docker(*by_hand, boxed.container(dev))
    assert dev.ended() == "failed"
    assert boxed.label(dev) == label
    assert dev.exit() == {**NEVER_RAN, "error": label.removeprefix("failed: ")}
    assert boxed.ground.hitch.here("status", "--json").json()["counts"] == {"stopped": 1}
    goes_on(boxed, dev, then)


@pytest.mark.ids("F64", "C70-2")
@pytest.mark.parametrize("then", ["restart", "stop"])
def test_a_container_that_somebody_started_again_is_stale_and_no_agent_is_in_it(boxed: Boxed, then: str):
    dev = boxed.run("sh", "-c", ECHO)
    container = boxed.container(dev)
    boxed.engine.docker("restart", "-t", "1", container)
    assert dev.ended() == "failed"
    assert boxed.label(dev) == STALE
    [row] = boxed.ground.hitch.here("services", "--json").json()["containers"]
    assert (row["state"], row["note"]) == ("stale", "(container running, session dead)")
    told = boxed.ground.hitch.here("explain", "--json", "dev").json()
    assert {fact["fact"]: fact["value"] for fact in told["facts"]}["sandbox"] == "alive"
    boxed.engine.docker("stop", "-t", "1", container)
    assert boxed.label(dev) == STOPPED
    boxed.engine.docker("start", container)
    assert boxed.label(dev) == STALE
    boxed.engine.pause(container)
    assert boxed.label(dev) == STOPPED
    if then == "restart":
        goes_on(boxed, dev, then)
    else:
        boxed.ground.hitch("stop", "dev")
        assert (boxed.label(dev), boxed.engine.containers()) == ("stopped", [])


@pytest.mark.ids("F60", "C70-2")
@pytest.mark.parametrize("written", ["137", "wait 9"])
def test_that_somebody_had_time_to_write_the_agents_end_down_changes_nothing(boxed: Boxed, written: str):
    dev = boxed.run("sh", "-c", ECHO)
    with stopped(dev.keeper_pid()):
        [place] = (dev.folder / "inside").glob("1-*")
        (place / "exit_status").write_text(f"{written}\n")
        boxed.engine.docker("rm", "-f", boxed.container(dev))
    assert dev.ended() == "failed"
    assert dev.exit() == {**NEVER_RAN, "error": "container removed"}


@pytest.mark.ids("F60", "C70-2")
def test_an_agent_that_ended_by_itself_keeps_its_exit_whatever_becomes_of_its_container(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    with stopped(dev.keeper_pid()):
        [place] = (dev.folder / "inside").glob("1-*")
        (place / "exit_status").write_text("3\n")
        boxed.engine.docker("rm", "-f", boxed.container(dev))
    assert dev.ended() == "failed"
    assert boxed.label(dev) == "failed: command exited with code 3"


@pytest.mark.skipif(not FREEZER.exists(), reason="this kernel has no freezer that holds what is killed")
def test_a_tmux_that_dies_before_the_agent_does_not_hide_that_their_container_ended(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    box = read_box(str(dev.folder))
    assert box is not None
    [tmux] = [one for one in boxed.processes(dev) if one.argv[0] == "tmux" and "new-session" in one.argv]
    group = FREEZER / f"hp-{dev.id}"
    group.mkdir()
    try:
        (group / "cgroup.procs").write_text(str(dev.agent_pid()))
        (group / "freezer.state").write_text("FROZEN")
        os.kill(box.pid, signal.SIGKILL)
        eventually(lambda: not os.path.exists(f"/proc/{tmux.pid}"), what="the end of tmux")
        (group / "freezer.state").write_text("THAWED")
        assert dev.ended() == "failed"
    finally:
        (group / "freezer.state").write_text("THAWED")
        eventually(lambda: (group / "cgroup.procs").read_text() == "", what="an empty group")
        group.rmdir()
    assert boxed.label(dev) == STOPPED


@pytest.mark.ids("F60", "C70-2")
def test_a_look_without_any_keeper_says_that_the_container_was_removed(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    dev.kill_keeper()
    boxed.engine.docker("rm", "-f", boxed.container(dev))
    assert boxed.label(dev) == REMOVED
    assert dev.state == "running"  # who only looks writes nothing
    assert "container removed" in boxed.ground.hitch.here("explain", "dev").out
    goes_on(boxed, dev, "restart")
    assert dev.exit()["error"] == "container removed"


@pytest.mark.ids("F63")
def test_of_a_container_whose_engine_does_not_answer_only_the_end_is_told(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    box = read_box(str(dev.folder))
    assert box is not None
    with stopped(boxed.engine.pid):
        os.kill(box.pid, signal.SIGKILL)
        assert dev.ended() == "failed"
        assert boxed.label(dev) == STOPPED


@pytest.mark.ids("C70-2", "C70-14", "F60")
def test_after_a_removal_by_hand_all_places_agree_at_every_moment(boxed: Boxed, hub: HubProcess):
    dev = boxed.run("sh", "-c", ECHO)
    eventually(lambda: hub.ask("GET", f"/api/agents/{dev.id}")["state"] == "running", what="the hub to know it")
    boxed.engine.docker("rm", "-f", boxed.container(dev))

    def agree() -> bool:
        """Whether the end is told. What the hub says is between two looks that are both later than its own."""
        told = hub.ask("GET", f"/api/agents/{dev.id}")["state"]
        seen = hub.ask("GET", f"/api/sessions/{dev.id}")["label"]
        explained = boxed.ground.hitch.here("explain", "dev").out
        assert not ("its keeper is gone" in explained and "alive: its lock" in explained), explained
        assert (told, seen.partition(" (")[0]) in (("running", "running"), ("running", REMOVED), ("stopped", REMOVED))
        return told == "stopped"

    eventually(agree, 5, "the end")
    assert boxed.label(dev) == REMOVED
    assert hub.ask("POST", f"/api/agents/{dev.id}/start")["state"] == "running"


@pytest.mark.ids("C70-4", "F60")
def test_a_hub_listens_to_the_engine_of_its_first_container(boxed: Boxed, hub: HubProcess):
    dev = boxed.run("sh", "-c", "exit 3")
    eventually(lambda: hub.ask("GET", f"/api/agents/{dev.id}")["state"] == "stale", what="stale")
    boxed.engine.docker("rm", "-f", boxed.container(dev))
    eventually(lambda: hub.ask("GET", f"/api/agents/{dev.id}")["state"] == "stopped", 3, "stopped")


@pytest.mark.ids("C70-12", "C70-18")
def test_without_a_hub_all_places_know_what_was_written_down(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    services = [boxed.ground.hitch.here("services").out]
    boxed.ground.hitch("send", "dev", "leave")
    dev.ended()
    assert boxed.label(dev) == STALE
    services.append(boxed.ground.hitch.here("services").out)
    with live("attach", "dev", terminal=(100, 30)) as visit:
        visit.shows(b"Agent 'dev' is stale (container running, session dead).")
        visit.press(b"c\n")
        assert visit.code() == 0
    boxed.engine.docker("rm", "-f", boxed.container(dev))
    services.append(boxed.ground.hitch.here("services").out)
    assert boxed.label(dev) == "failed: command exited with code 3"
    assert services == [
        "Containers:\n  agent-dev    running\n",
        "Containers:\n  agent-dev    stale     (container running, session dead)\n",
        "Containers:\n  none\n",
    ]
