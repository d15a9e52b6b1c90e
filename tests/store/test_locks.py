from __future__ import annotations

import _thread
import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from hitchpost.store import locks
from hitchpost.store.locks import Lock, LockTimeout, Removed, SessionLock, is_held
from tests.store.made import finish, session, started
from tests.support import eventually

HOLD = """
import sys, time
from hitchpost.store.locks import Lock
with Lock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""

PROBE = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
print("probing", flush=True)
sys.stdin.read()
"""


@pytest.mark.ids("F33", "A31-13")
def test_the_lock_of_a_killed_holder_goes_to_the_next_one_at_once(tmp_path: Path):
    path = str(tmp_path / "lock")
    holder = started(HOLD, path)
    try:
        assert is_held(path) is True
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        began = time.monotonic()
        with Lock(path, timeout_s=5):
            assert time.monotonic() - began < 1
    finally:
        finish(holder)


@pytest.mark.ids("A31-4", "A31-13")
def test_a_lock_excludes_other_processes_and_says_so_when_time_is_up(tmp_path: Path):
    path = str(tmp_path / "lock")
    holder = started(HOLD, path)
    try:
        began = time.monotonic()
        with (
            pytest.raises(LockTimeout, match=r"lock is locked by another process for more than 0\.1 s"),
            Lock(path, 0.1),
        ):
            pass
        assert 0.1 <= time.monotonic() - began < 5
    finally:
        finish(holder)


def test_a_lock_without_patience_does_not_wait(tmp_path: Path):
    path = str(tmp_path / "lock")
    with Lock(path), pytest.raises(LockTimeout), Lock(path, timeout_s=0):
        pass


@pytest.mark.ids("A31-13")
def test_a_lock_that_is_waited_for_comes_as_soon_as_it_is_free(tmp_path: Path):
    path = str(tmp_path / "lock")
    holder = started(HOLD, path)
    try:
        assert holder.stdin
        holder.stdin.close()
        with Lock(path, timeout_s=10):
            assert is_held(path) is True
        assert is_held(path) is False
    finally:
        holder.wait()
        assert holder.stdout
        holder.stdout.close()


WAIT = """
import sys
from hitchpost.store.locks import Lock
print("waiting", flush=True)
with Lock(sys.argv[1]):
    with open(sys.argv[2], "a") as order:
        order.write(sys.argv[3])
"""


def in_line(path: str) -> int:
    """How many wait for the lock, as the kernel has it."""
    inode = f":{os.stat(path).st_ino} "
    return sum("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


def test_who_waits_longest_for_a_lock_is_the_next_to_have_it(tmp_path: Path):
    path, order = str(tmp_path / "lock"), tmp_path / "order"
    order.touch()
    waiting: list[subprocess.Popen[str]] = []
    try:
        with Lock(path):
            for number in range(6):
                waiting.append(started(WAIT, path, str(order), str(number)))
                eventually(lambda: in_line(path) == len(waiting), what="one more in line")
        eventually(lambda: len(order.read_text()) == len(waiting), what="everybody's turn")
    finally:
        for process in waiting:
            finish(process)
    assert order.read_text() == "012345"


def test_a_lock_that_nobody_waits_for_any_more_is_free_and_costs_few_threads(tmp_path: Path):
    path = str(tmp_path / "lock")
    with Lock(path):
        for _ in range(locks.MOST_WAITING + 3):
            with pytest.raises(LockTimeout), Lock(path, timeout_s=0.001):
                pass
        assert in_line(path) == locks.MOST_WAITING
    eventually(lambda: not locks._waiting, what="the end of the line")
    assert is_held(path) is False


def test_where_no_thread_can_be_started_a_lock_is_waited_for_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refused)
    path = str(tmp_path / "lock")
    with Lock(path), pytest.raises(LockTimeout), Lock(path, timeout_s=0.01):
        pass
    with Lock(path):
        assert is_held(path) is True


def test_a_released_lock_leaves_its_file_and_no_descriptor(tmp_path: Path):
    path = tmp_path / "lock"
    with Lock(str(path)) as lock:
        assert lock.fd >= 0
    assert lock.fd == -1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_lock_is_never_taken_through_a_link(tmp_path: Path):
    (tmp_path / "elsewhere").touch()
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError), Lock(str(tmp_path / "lock")):
        pass
    assert is_held(str(tmp_path / "lock")) is None


def test_whether_a_lock_is_held_has_three_answers(tmp_path: Path):
    path = str(tmp_path / "lock")
    assert is_held(path) is False
    with Lock(path):
        assert is_held(path) is True
    assert is_held(path) is False
    assert is_held(str(tmp_path / "lock" / "below-a-file")) is None


def test_two_probes_at_once_do_not_take_each_other_for_life(tmp_path: Path):
    path = str(tmp_path / "lock")
    Path(path).touch()
    probe = started(PROBE, path)
    try:
        assert is_held(path) is False
    finally:
        finish(probe)


def test_a_lock_is_still_had_while_a_probe_looks(tmp_path: Path):
    path = str(tmp_path / "lock")
    Path(path).touch()
    probe = started(PROBE, path)
    try:
        with pytest.raises(LockTimeout), Lock(path, timeout_s=0.01):
            pass
        assert probe.stdin
        probe.stdin.close()
        with Lock(path, timeout_s=5):
            pass
    finally:
        probe.wait()
        assert probe.stdout
        probe.stdout.close()


def test_the_lock_of_a_session_that_is_gone_is_refused_and_makes_nothing(tmp_path: Path):
    with pytest.raises(Removed), SessionLock(str(tmp_path / "gone")):
        pass
    assert list(tmp_path.iterdir()) == []


def test_who_waits_for_the_lock_of_a_session_learns_that_it_was_removed_meanwhile(home: Path):
    folder = session(home)
    waiter = """
import sys
from hitchpost.store.locks import Removed, SessionLock
print("waiting", flush=True)
try:
    with SessionLock(sys.argv[1]):
        print("got it")
except Removed:
    print("removed")
"""
    with SessionLock(str(folder)):
        process = started(waiter, folder)
        try:
            _wait_until_it_has_open(process.pid, folder / "lock")
            folder.rename(folder.with_name(".removed-x"))
        except BaseException:
            finish(process)
            raise
    assert process.communicate()[0] == "removed\n"


def _wait_until_it_has_open(pid: int, path: Path) -> None:
    def has() -> bool:
        try:
            return any(os.readlink(f"/proc/{pid}/fd/{name}") == str(path) for name in os.listdir(f"/proc/{pid}/fd"))
        except FileNotFoundError:
            return False

    eventually(has, what="the waiter to have the lock's file open")
