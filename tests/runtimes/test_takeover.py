"""A lost keeper is not a dead agent: where the agent lives on, a new keeper takes it over; and looking ends nothing."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from hitchpost.ops.sessions.recover import RECOVERY, recover
from hitchpost.terminal import output
from tests.boxes import ECHO, PLAIN, STALE, WITH_PYTHON, Boxed
from tests.cli.live import live
from tests.ground import Ground, alive, left_with
from tests.hubs import HubProcess
from tests.runtimes.test_adopted import Theirs, theirs  # noqa: F401
from tests.support import eventually

LOST = "running (keeper lost)"
WITH_A_TOOL = "setsid sh -c 'echo $$ > tool; exec sleep 1000' </dev/null >/dev/null 2>&1 & wait; sleep 1000"


def gaps(folder: str) -> int:
    with output.Reader(folder) as reader:
        found = 0
        while (chunk := reader.read()).data:
            found += chunk.lost
    return found


@pytest.mark.ids("C70-2", "F17")
@pytest.mark.parametrize("image", [PLAIN, WITH_PYTHON])
def test_an_agent_in_a_container_is_taken_over_and_its_exit_is_known(boxed: Boxed, image: str):
    dev = boxed.run("sh", "-c", ECHO, image=image)
    boxed.ground.hitch("send", "dev", "before")
    eventually(lambda: b"<before>" in dev.output(), what="the echo")
    agent = dev.agent_pid()
    dev.kill_keeper()
    assert alive(agent)
    row = boxed.ground.ps(dev)
    assert (row["status"], row["label"], row["attention"]) == ("running", LOST, "unknown")
    assert (row["sandbox_alive"], row["session_alive"]) == (True, True)
    said = boxed.ground.hitch("explain", "dev").out
    assert LOST in said
    assert "nobody hears it until a new keeper takes over" in said
    assert "running" in boxed.ground.hitch("services").out
    assert alive(agent), "looking ends nothing"
    assert dev.states() == ["starting", "running"], "looking writes nothing"
    boxed.ground.hitch("send", "dev", "after")
    eventually(lambda: b"<after>" in dev.output(), what=f"the echo, not {dev.output()!r}")
    assert boxed.label(dev) == "running"
    assert dev.agent_pid() == agent
    assert gaps(str(dev.run() / "output")) >= 1
    assert [line["event"] for line in dev.story()].count("keeper") == 1
    boxed.ground.hitch("send", "dev", "leave")
    assert dev.ended() == "failed"
    assert dev.exit() == left_with(3, lost_output_bytes=None)
    assert boxed.label(dev) == STALE


@pytest.mark.ids("C70-2", "F17")
def test_an_exit_that_no_keeper_saw_is_read_from_its_container(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO, image=WITH_PYTHON)
    agent = dev.agent_pid()
    dev.kill_keeper()
    os.kill(agent, signal.SIGSEGV)
    eventually(lambda: boxed.label(dev) == STALE, what=f"stale, not {boxed.label(dev)}")
    assert boxed.ground.ps(dev)["exit"]["signal"] == "SIGSEGV"
    assert dev.state == "running", "a reader writes nothing"
    recover(str(boxed.ground.home), dev.id, actor=RECOVERY)
    assert dev.state == "failed"
    assert dev.exit()["signal"] == "SIGSEGV"
    assert dev.exit_status() == f"{128 + signal.SIGSEGV}\n"


@pytest.mark.ids("C70-2", "C70-5")
def test_a_hub_takes_over_what_its_keeper_left(boxed: Boxed, hub: HubProcess):
    dev = boxed.run("sh", "-c", ECHO)
    agent = dev.agent_pid()

    def label() -> str:
        return hub.ask("GET", f"/api/sessions/{dev.id}")["label"]

    eventually(lambda: label() == "running")
    dev.kill_keeper()
    eventually(lambda: [line["event"] for line in dev.story()].count("keeper") == 1, what="a new keeper")
    eventually(lambda: label() == "running")
    assert alive(agent)
    boxed.ground.hitch("send", "dev", "leave")
    assert dev.ended() == "failed"
    assert dev.exit() == left_with(3, lost_output_bytes=None)


@pytest.mark.ids("F17")
def test_an_end_that_was_asked_for_is_carried_on_by_the_next_keeper(boxed: Boxed):
    dev = boxed.run("sh", "-c", "trap '' TERM HUP; echo ready; while :; do sleep 0.1; done")
    eventually(lambda: b"ready" in dev.output(), what="the agent")
    with live("stop", "dev", "--grace", "3") as stop:
        eventually(lambda: dev.state == "stopping")
        dev.kill_keeper()
        assert stop.process.wait(60) == 0, stop.err()
    assert dev.state == "stopped"
    assert dev.exit()["intent"] == "user"
    assert boxed.engine.containers() == []


def test_the_menu_of_a_stale_session_ends_nothing_when_it_is_cancelled(boxed: Boxed):
    dev = boxed.run("sh", "-c", "trap '' HUP; sleep 1000 </dev/null >/dev/null 2>&1 & exit 3")
    dev.ended()
    assert dev.exit()["survivors"] == 1
    left = next(process.pid for process in boxed.processes(dev) if process.argv == ("sleep", "1000"))
    with live("attach", "dev", terminal=(80, 24)) as menu:
        menu.shows(b"Choice: ")
        menu.press(b"c\n")
        assert menu.process.wait(20) == 0
    assert alive(left)


@pytest.mark.ids("F17")
def test_an_agent_that_no_keeper_can_take_over_is_told_as_running_and_can_be_stopped(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    agent = dev.agent_pid()
    dev.kill_keeper()
    (place,) = (dev.folder / "inside").glob("1-*")
    (place / "out").unlink()
    (place / "out").write_text("no pipe")
    with live("attach", "dev", terminal=(80, 24)) as refused:
        assert refused.process.wait(20) == 4, refused.err()
        assert "no other could take over" in refused.err()
    assert boxed.ground.ps(dev)["label"] == LOST
    assert alive(agent)
    boxed.ground.hitch("stop", "dev")
    assert not alive(agent)
    assert dev.exit()["intent"] == "user"
    assert boxed.engine.containers() == []


@pytest.mark.ids("F17")
def test_a_watched_program_is_taken_over(theirs: Theirs, ground: Ground):  # noqa: F811
    pid = theirs.begin('echo before; while read -r line; do echo "<$line>"; done')
    dev = theirs.adopt()
    eventually(lambda: b"before" in dev.output())
    dev.kill_keeper()
    row = ground.ps(dev)
    assert (row["label"], row["session_alive"]) == (LOST, True)
    ground.hitch("send", "dev", "after")
    eventually(lambda: b"<after>" in dev.output())
    assert ground.ps(dev)["label"] == "running"
    assert gaps(str(dev.run() / "output")) == 1
    ground.hitch("stop", "dev")
    assert not alive(pid)


@pytest.mark.ids("F17")
def test_what_a_local_keeper_left_is_counted_and_ended_when_somebody_says_so(ground: Ground):
    dev = ground.sh(
        "setsid sh -c 'echo $$ > tool; exec sleep 1000' </dev/null >/dev/null 2>&1 & wait; sleep 1000", name="dev"
    )
    tool, agent = int(ground.said("tool")), dev.agent_pid()
    dev.kill_keeper()
    eventually(lambda: not alive(agent), what="the end of the agent by its parent's death")
    label = "failed: keeper lost (left 1 process behind)"
    assert ground.ps(dev)["label"] == label
    recover(str(ground.home), dev.id, actor=RECOVERY)  # whether it is written down or not
    assert ground.ps(dev)["label"] == label
    assert alive(tool)
    said = ground.hitch("explain", "dev").out
    assert label in said
    assert "the agent, its child, ends with it" in said
    assert alive(tool)
    ground.hitch("restart", "dev")
    assert not alive(tool)
    ground.stop(dev)


@pytest.mark.ids("F17")
def test_doctor_ends_what_a_keeper_left_when_it_is_asked_to(ground: Ground):
    dev = ground.sh(
        "setsid sh -c 'echo $$ > tool; exec sleep 1000' </dev/null >/dev/null 2>&1 & wait; sleep 1000", name="dev"
    )
    tool = int(ground.said("tool"))
    dev.kill_keeper()
    eventually(lambda: not alive(dev.agent_pid()))
    ground.hitch("doctor", check=False)
    assert alive(tool)
    said = ground.hitch("doctor", "--fix", check=False).out
    assert "ended 1 process that it had left behind" in said
    assert not alive(tool)
    assert ground.ps(dev)["label"] == "failed: keeper lost"


@pytest.mark.ids("C1")
def test_a_copy_of_a_home_leaves_the_originals_container_alone(boxed: Boxed) -> None:
    dev = boxed.run("sh", "-c", ECHO)
    copy = boxed.ground.watch.scratch / "copy"
    shutil.copytree(boxed.ground.home, copy, ignore=lambda folder, names: {"ctl.sock", "out", "keys", "go", "ready"})
    there = {"HITCHPOST_HOME": str(copy)}
    (row,) = boxed.ground.hitch("ps", "--json", env=there).json()
    assert (row["state"], row["session_alive"], row["sandbox_alive"]) == ("failed", False, False)
    for words in (("stop", "dev"), ("rm", "--force", "dev")):
        boxed.ground.hitch(*words, env=there, check=False)
        assert boxed.label(dev) == "running"
    boxed.ground.hitch("send", "dev", "still here")
    eventually(lambda: b"<still here>" in dev.output(), what="the original's agent")


@pytest.mark.ids("C1")
def test_a_copy_of_a_home_leaves_the_originals_adopted_program_alone(ground: Ground, theirs: Theirs) -> None:  # noqa: F811
    theirs.begin("sleep 1000")
    dev = theirs.adopt()
    copy = ground.watch.scratch / "copy"
    shutil.copytree(ground.home, copy, ignore=shutil.ignore_patterns("ctl.sock"))
    there = {"HITCHPOST_HOME": str(copy)}
    (row,) = ground.hitch("ps", "--json", env=there).json()
    assert (row["state"], row["label"]) == ("failed", "failed: exit status unknown")
    ground.hitch("stop", dev.id, env=there)
    assert alive(dev.agent_pid())
    assert ground.ps(dev)["label"] == "running"


@pytest.mark.ids("C70-2")
def test_an_agent_whose_tmux_died_too_is_not_taken_over(boxed: Boxed) -> None:
    dev = boxed.run("sh", "-c", "trap '' HUP; echo ready; while :; do sleep 0.1; done")
    eventually(lambda: b"ready" in dev.output(), what="the agent")
    dev.kill_keeper()
    boxed.engine.docker("exec", boxed.container(dev), "tmux", "kill-server")
    assert "no other could take over" in boxed.ground.hitch("send", "dev", "hello", check=4).err
    assert boxed.label(dev) == LOST
    boxed.ground.hitch("stop", "dev")
