"""``stop`` when something is in its way: it ends the run, or says that it did not; and what is said of such a run."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from hitchpost.ops.sessions.recover import RECOVERY, recover
from hitchpost.runtimes.kept import Kept, is_kept, kept
from hitchpost.runtimes.link import Link
from hitchpost.store import locks
from hitchpost.system.shortpath import ShortPath
from tests.ground import Ground, Truth, alive, died_of
from tests.support import eventually, halt

UNBOUND = (
    "import ctypes, signal, time; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
    "ctypes.CDLL(None).prctl(1, 0, 0, 0, 0); print('free', flush=True); time.sleep(1000)"
)
"""A program that does not die with its parent."""


@contextmanager
def held(dev: Truth) -> Iterator[None]:
    """The lock of a dead keeper, held by another process: this one."""
    fd = os.open(dev.run() / "keeper.lock", os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@contextmanager
def standing(dev: Truth) -> Iterator[None]:
    """The keeper is stopped by a signal meanwhile."""
    pid = dev.keeper_pid()
    halt(pid)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


# the socket -----------------------------------------------------------------------------------------------------


def test_a_socket_that_was_removed_is_made_again_and_stop_ends_the_run(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    (dev.run() / "ctl.sock").unlink()
    agent = dev.agent_pid()
    ground.stop(dev)
    assert dev.exit() == died_of(signal.SIGTERM, intent="user")
    assert not alive(agent)


def test_a_removed_socket_is_made_again_and_those_who_are_connected_stay(ground: Ground) -> None:
    dev = ground.begin("cat")
    with Link.connect(str(dev.run())) as before:
        (dev.run() / "ctl.sock").unlink()
        eventually((dev.run() / "ctl.sock").exists)
        assert (dev.run() / "ctl.sock").stat().st_mode & 0o777 == 0o600
        Link.connect(str(dev.run())).close()
        assert before.request("send", text="x")["ok"] is True
    ground.end(dev)


@pytest.mark.ids("C3", "C15")
def test_a_keeper_whose_lock_was_removed_is_not_told_as_lost_and_makes_it_again(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000", name="dev")
    lock, agent, keeper = dev.run() / "keeper.lock", dev.agent_pid(), dev.keeper_pid()
    with standing(dev):  # it has no time to make it again
        lock.unlink()
        assert ground.ps(dev)["label"] == "running (keeper stopped)"
        assert "stopped by a signal: its lock was removed" in ground.hitch("explain", "dev").out
        assert "stop it first" in ground.hitch("rm", "dev", check=False).err
    eventually(lock.exists)
    eventually(lambda: ground.ps(dev)["label"] == "running")
    assert f"alive: its lock is held by pid {keeper}" in ground.hitch("explain", "dev").out
    assert lock.stat().st_mode & 0o777 == 0o600
    recover(str(ground.home), dev.id, actor=RECOVERY)
    assert (alive(agent), dev.keeper_pid()) == (True, keeper)
    ground.stop(dev)
    assert dev.exit() == died_of(signal.SIGTERM, intent="user")


@pytest.mark.ids("C3", "C15")
def test_a_lock_that_is_made_again_during_a_look_is_held(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    dev = ground.begin("sleep", "1000", name="dev")
    lock, keeper, probe = dev.run() / "keeper.lock", dev.keeper_pid(), locks.is_held

    def slow_probe(path: str) -> bool | None:
        found = probe(path)
        os.kill(keeper, signal.SIGCONT)
        eventually(lock.exists)
        return found

    with standing(dev), monkeypatch.context() as patched:
        lock.unlink()
        patched.setattr(locks, "is_held", slow_probe)
        assert kept(str(dev.run())) == Kept(True)
    ground.stop(dev)


def test_a_keeper_whose_socket_cannot_be_made_is_stopped_by_a_signal(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    eventually(partial(takes_the_place_of, dev.run() / "ctl.sock"), what="a folder in the place of the socket")
    try:
        ground.stop(dev, "--grace", "5")
    finally:
        shutil.rmtree(dev.run() / "ctl.sock")
    assert dev.exit() == died_of(signal.SIGTERM, intent="user")
    assert "nobody can reach this keeper" in (dev.run() / "keeper.log").read_text()


def test_stop_has_a_place_although_256_clients_are_attached(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    with ExitStack() as opened:
        for _ in range(256):
            opened.enter_context(Link.connect(str(dev.run()), role="attach", cols=80, rows=24, timeout_s=60))
        ground.stop(dev)
    assert dev.exit() == died_of(signal.SIGTERM, intent="user")


def test_stop_has_a_place_although_300_connections_say_nothing(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    with ExitStack() as opened:
        for _ in range(300):
            silent = opened.enter_context(socket.socket(socket.AF_UNIX))
            silent.settimeout(30)
            eventually(partial(connected, silent, dev), 60)
        ground.stop(dev)
    assert dev.exit() == died_of(signal.SIGTERM, intent="user")


def takes_the_place_of(path: Path) -> bool:
    """Whether there is a folder now: the keeper makes its socket again as soon as it is gone."""
    path.unlink(missing_ok=True)
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True


def connected(end: socket.socket, dev: Truth) -> bool:
    try:
        with ShortPath(str(dev.run()), "ctl.sock") as path:
            end.connect(path)
    except BlockingIOError:  # more wait than the keeper has let in so far
        return False
    return True


# the grace time -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grace", ["inf", "nan", "1e308", "86401", "-1"])
def test_a_grace_time_that_is_none_is_refused(ground: Ground, grace: str) -> None:
    dev = ground.begin("sleep", "1000")
    answer = ground.stop(dev, "--grace", grace, check=2)
    assert "grace" in answer.err
    assert alive(dev.agent_pid())
    ground.end(dev)


@pytest.mark.parametrize("grace", [1e308, -1, "soon"])
def test_a_keeper_refuses_it_too(ground: Ground, grace: object) -> None:
    dev = ground.begin("sleep", "1000")
    with Link.connect(str(dev.run())) as link:
        assert link.request("stop", grace_s=grace) == {
            "id": 1,
            "ok": False,
            "why": "expected a grace time of 0 to 86400 seconds",
        }
    ground.end(dev)


@pytest.mark.parametrize("grace", ["inf", "nan"])
def test_such_a_setting_is_refused(ground: Ground, grace: str) -> None:
    ground.configure(f"grace_s = {grace}")
    assert "expected grace_s to be a number" in ground.hitch("run", "--", "true", check=2).err


# a lock that another process holds ------------------------------------------------------------------------------


def test_a_lock_that_outlived_its_keeper_and_agent_is_no_life(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    dev.kill_keeper()
    eventually(lambda: not alive(dev.agent_pid()))
    with held(dev):
        assert kept(str(dev.run())) == Kept(False)
        assert ground.ps(dev)["label"] == "failed: keeper lost"
        assert "gone: another process holds its lock" in ground.hitch("explain", dev.id).out
        assert "failed: keeper lost" in ground.stop(dev).out
        ground.hitch("restart", dev.id)
        ground.hitch("stop", "--now", dev.id)
        ground.hitch("rm", dev.id)


def test_an_agent_that_lives_on_under_a_dead_keepers_lock_is_unknown_and_stop_ends_it(ground: Ground) -> None:
    dev = ground.begin(sys.executable, "-c", UNBOUND)
    eventually(lambda: b"free" in dev.output())
    dev.kill_keeper()
    agent = dev.agent_pid()
    with held(dev):
        assert is_kept(str(dev.run())) is None
        row = ground.ps(dev)
        assert alive(agent), "looking ends nothing"
        assert (row["status"], row["session_alive"]) == ("unknown", None)
        assert row["label"] == "unknown (keeper dead, its lock held by another process)"
        assert "keeper dead, its lock held by another process" in ground.hitch("explain", dev.id).out
        assert "failed: keeper lost" in ground.stop(dev).out
        assert not alive(agent)


def test_what_cannot_be_stopped_is_an_error(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    with standing(dev):
        answer = ground.stop(dev, check=1)
        pid = dev.keeper_pid()
        assert answer.out == ""
        assert f"was not stopped: its keeper is stopped by a signal (pid {pid}); kill -CONT {pid}" in answer.err
        assert alive(dev.agent_pid())
    ground.end(dev)


# a keeper that stands still -------------------------------------------------------------------------------------


def test_of_a_stopped_keeper_it_is_said_whether_its_agent_lives(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    with standing(dev):
        row = ground.ps(dev)
        assert (row["status"], row["label"], row["session_alive"]) == ("running", "running (keeper stopped)", True)
        os.kill(dev.agent_pid(), signal.SIGKILL)
        eventually(lambda: not alive(dev.agent_pid()))
        row = ground.ps(dev)
        assert (row["status"], row["label"], row["session_alive"]) == ("unknown", "unknown (keeper stopped)", None)
        assert "stopped by a signal: its lock is held by pid" in ground.hitch("explain", dev.id).out
    assert dev.ended() == "failed"
    assert ground.ps(dev)["label"] == "failed: command killed by SIGKILL"


def test_an_agent_does_not_have_its_keepers_lock(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    lock = os.stat(dev.run() / "keeper.lock")
    fds = f"/proc/{dev.agent_pid()}/fd"
    for fd in os.listdir(fds):
        with suppress(FileNotFoundError):  # it has just closed a library that it loads
            assert os.stat(f"{fds}/{fd}").st_ino != lock.st_ino
    ground.end(dev)
