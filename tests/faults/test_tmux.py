"""Faults of the tmux runtime, each provoked for real."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hitchpost.ops.sessions.stop import stop
from tests.cli.live import live
from tests.ground import Ground, Truth, alive, left_with
from tests.support import Hitch, eventually, halt
from tests.tmuxes import Panes

SOON_S = 2.0


def failed_within(panes: Panes, session: Truth, began: float) -> float:
    assert panes.final(session) == "failed"
    return time.monotonic() - began


@pytest.mark.ids("F20", "A22-2", "A31-12")
@pytest.mark.parametrize("how", ["kill-server", "kill-session", "SIGKILL", "SIGTERM"])
def test_F20_a_tmux_session_that_is_gone_fails_the_run_and_no_other(panes: Panes, ground: Ground, how: str) -> None:
    dev, other = panes.sh("trap '' HUP TERM; sleep 1001; sleep 1002"), panes.sh("sleep 1003")
    server, agent = panes.server(dev), dev.agent_pid()
    began = time.monotonic()
    if how.startswith("SIG"):
        os.kill(server, getattr(signal, how))
    else:
        panes.tmux(dev, how)
    took_s = failed_within(panes, dev, began)
    assert ground.ps(dev)["label"] == "failed: tmux session no longer exists"
    assert dev.exit()["error"] == "tmux session no longer exists"
    assert not alive(agent)
    assert took_s < SOON_S
    assert other.state == "running"
    assert alive(other.agent_pid())


@pytest.mark.ids("F20", "A22-2")
def test_F20_a_killed_session_beside_another_one_of_the_same_server_is_gone_too(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("sleep 1000")
    panes.tmux(dev, "new-session", "-d", "-s", "mine", "sleep 1001")
    panes.tmux(dev, "kill-session", "-t", "=agent")
    assert panes.final(dev) == "failed"
    assert ground.ps(dev)["label"] == "failed: tmux session no longer exists"
    assert alive(panes.server(dev))


@pytest.mark.ids("F21")
def test_F21_a_socket_that_was_unlinked_is_made_again_by_the_same_server(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("read line; echo got:$line; sleep 1000")
    server = panes.server(dev)
    (dev.folder / "tmux.sock").unlink()
    eventually((dev.folder / "tmux.sock").exists, SOON_S, what="the socket")
    assert panes.server(dev) == server
    assert dev.state == "running"
    panes.tmux(dev, "send-keys", "hello", "Enter")
    panes.shows(dev, "got:hello")


@pytest.mark.ids("F22", "A22-10")
def test_F22_a_stopped_server_changes_no_state_and_hangs_nobody(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("while read line; do echo got:$line; done")
    server = panes.server(dev)
    halt(server)
    try:
        assert ground.ps(dev)["status"] == "running"
        ground.hitch("send", dev.id, "one")
        eventually(lambda: b"got:one" in dev.output(), what="the agent's answer")
        with live("attach", dev.id, terminal=(80, 24)) as visit:
            assert visit.code() == 4
            assert "tmux does not answer within" in visit.err()
        assert dev.state == "running"
    finally:
        os.kill(server, signal.SIGCONT)
    panes.shows(dev, "got:one")
    halt(server)
    stop(str(ground.home), dev.id, actor="test")
    assert dev.state == "stopped"
    os.kill(server, signal.SIGCONT)


@pytest.mark.ids("F22", "F72")
def test_F22_output_that_the_pane_did_not_take_is_shown_when_it_takes_it(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("until test -e go; do sleep 0.02; done; seq 1 60000; echo the-end; sleep 1000")
    server = panes.server(dev)
    halt(server)
    (ground.place / "go").touch()
    eventually(lambda: b"the-end" in dev.output(), what="the log going on")
    os.kill(server, signal.SIGCONT)
    panes.shows(dev, "the-end")


@pytest.mark.ids("F23", "A22-3", "A31-12")
def test_F23_a_killed_pane_process_fails_the_run_and_its_agent_ends(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("sleep 1001")
    agent = dev.agent_pid()
    dev.kill_keeper()
    assert ground.ps(dev)["label"] == "failed: shell process exited"
    eventually(lambda: not alive(agent), what="the end of the agent")
    assert [dead for _, dead, _ in panes.panes(dev)] == [True], "ADR 22's pane_dead"
    ground.hitch("stop", dev.id)
    assert dev.state == "failed"
    assert dev.exit()["error"] == "shell process exited"


@pytest.mark.ids("F23", "A22-3")
def test_F23_a_pane_killed_by_hand_beside_another_one(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("sleep 1001")
    pane = panes.panes(dev)[0][0]
    panes.tmux(dev, "split-window", "-d", "sleep 1002")
    panes.tmux(dev, "kill-pane", "-t", pane)
    assert panes.final(dev) == "failed"
    assert ground.ps(dev)["label"] == "failed: shell process exited"
    assert len(panes.panes(dev)) == 1


@pytest.mark.ids("F23")
def test_F23_the_users_shell_that_leaves_afterwards_changes_nothing(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("exit 3")
    panes.shows(dev, "[failed: command exited with code 3]")
    server = panes.server(dev)
    panes.tmux(dev, "send-keys", "exit 9", "Enter")
    eventually(lambda: not alive(server), what="the end of the server")
    assert dev.exit() == left_with(3)
    assert ground.ps(dev)["label"] == "failed: command exited with code 3"


@pytest.mark.ids("F24")
def test_F24_splits_renames_and_moved_panes_change_nothing(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("read line; exit 5")
    pane = panes.panes(dev)[0][0]
    for words in (
        ("rename-session", "#(touch canary)"),
        ("rename-window", "other"),
        ("split-window", "-h", "sleep 1001"),
        ("new-window", "sleep 1002"),
        ("break-pane", "-d", "-s", pane),
        ("swap-window", "-s", ":0", "-t", ":1"),
    ):
        panes.tmux(dev, *words, check=False)
    assert ground.ps(dev)["status"] == "running"
    panes.tmux(dev, "send-keys", "-t", pane, "x", "Enter")
    assert panes.final(dev) == "failed"
    assert dev.exit() == left_with(5)
    ground.hitch("restart", dev.id)
    assert (dev.state, dev.state_file()["run"]) == ("running", 2)
    stop(str(ground.home), dev.id, actor="test")


@pytest.mark.ids("F25")
def test_F25_without_tmux_the_error_is_clear_and_local_works(ground: Ground, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "sleep", "env"):
        (programs / name).symlink_to(f"/bin/{name}")
    env = {"PATH": str(programs)}
    answer = ground.hitch("run", "--runtime", "tmux", "--", "sleep", "1000", check=1, env=env)
    assert "tmux is not installed; install the package tmux, or use the local runtime" in answer.err
    ground.hitch("run", "--name", "dev", "--", "sh", "-c", "exit 0", env=env)
    old = programs / "tmux"
    old.write_text("#!/bin/sh\necho tmux 2.9\n")
    old.chmod(0o755)
    answer = ground.hitch("run", "--runtime", "tmux", "--", "sleep", "1000", check=1, env=env)
    assert "tmux 2.9 is too old; 3.2 or newer is needed, or use the local runtime" in answer.err
    eventually(lambda: not ground.processes())


@pytest.mark.ids("F9")
def test_a_tmux_session_started_inside_a_session_survives_the_outer_stop(panes: Panes, ground: Ground) -> None:
    command = " ".join(ground.hitch.command)
    outer = ground.sh(f"{command} run --runtime tmux --name inner -- sleep 1001; sleep 1002")
    rows = eventually(lambda: [row for row in ground.hitch("ps", "--json").json() if row["name"] == "inner"])
    inner = Truth(ground.home, rows[0]["id"])
    panes.sessions.append(inner)
    eventually(lambda: inner.state == "running")
    ground.stop(outer, "--now")
    assert outer.state == "stopped"
    assert inner.state == "running"
    assert alive(inner.agent_pid())
    assert alive(panes.server(inner))


@pytest.mark.ids("F15")
def test_F15_attach_enters_the_pane_and_detaching_changes_nothing(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("echo ready; while read line; do echo got:$line; done", name="dev")
    with live("attach", "dev", terminal=(80, 24)) as visit:
        visit.shows(b"ready")  # tmux throws away what was typed before it has the terminal
        visit.press(b"hello\r")
        visit.shows(b"got:hello")
        time.sleep(0.01)  # keys that come within a millisecond of others are a paste to tmux, and bind nothing
        visit.press(b"\x02d")
        assert visit.code() == 0
        assert b"[detached from dev; hitch attach dev comes back]" in visit.out()
        assert visit.settings() == visit.before
    assert dev.state == "running"
    with live("attach", "dev", terminal=(80, 24)) as visit:
        visit.shows(b"got:hello")
        visit.press(b"\x04")
        visit.shows(b"[completed]")
        visit.press(b"exit\r")
        assert visit.code() == 0
        assert b"[dev: completed]" in visit.out()


def test_a_read_only_visitor_types_nothing(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("echo ready; while read line; do echo got:$line; done", name="dev")
    with live("attach", "dev", "--read-only", terminal=(80, 24)) as visit:
        visit.shows(b"ready")
        visit.press(b"nothing\r")
        panes.tmux(dev, "send-keys", "something", "Enter")
        visit.shows(b"got:something")
        visit.press(b"\x02d")
        assert visit.code() == 0
    assert b"got:nothing" not in dev.output()


def test_tmux_itself_reaches_the_session(panes: Panes) -> None:
    dev = panes.sh("echo hello; sleep 1000")
    argv = ["tmux", "-S", str(dev.folder / "tmux.sock"), "list-sessions", "-F", "#{session_name}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=Hitch.environment())
    assert done.stdout == "agent\n"
