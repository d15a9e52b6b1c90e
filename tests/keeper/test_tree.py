from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hitchpost.store import process_marks
from hitchpost.system import process
from tests.ground import alive
from tests.support import LeakWatch, Process, eventually

REAPER = """
import json, os, subprocess, sys, time
from hitchpost.system import process
from hitchpost.system.cgroup import ControlGroups
from hitchpost.keeper.tree import Tree

process.CHILDREN_ARE_LISTED = sys.argv[3] == "listed"

def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass

def name(pid):
    try:
        return open(f"/proc/{pid}/comm").read().strip()
    except OSError:
        return ""

process.become_subreaper()
tree = Tree(ControlGroups([]))
before = tree.pids()
subprocess.run(["sh", "-c", sys.argv[1]], env={"PATH": os.environ["PATH"]}, check=True)
deadline = time.monotonic() + 20
while time.monotonic() < deadline:
    pids = tree.pids()
    if len(pids) >= int(sys.argv[2]) and not {name(pid) for pid in pids} & {"sh", "setsid", "nohup", "env"}:
        break
found = sorted(tree.pids())
rounds = 0
while tree.kill():
    rounds += 1
    reap()
print(json.dumps({"before": before, "found": found, "rounds": rounds, "after": tree.pids()}))
"""


def reaped(script: str, count: int, how: str = "listed") -> dict[str, Any]:
    command = [sys.executable, "-c", REAPER, script, str(count), how]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)


@pytest.mark.parametrize("how", ["listed", "looked for"])
def test_orphans_are_found_whatever_they_did_and_all_ended(how: str):
    script = """
    sleep 1000 >/dev/null 2>&1 &
    setsid sleep 1000 </dev/null >/dev/null 2>&1 &
    (setsid sh -c 'sleep 1000 & exit' </dev/null >/dev/null 2>&1 &)
    env -i nohup sleep 1000 >/dev/null 2>&1 &
    """
    seen = reaped(script, 4, how)
    assert (seen["before"], len(seen["found"]), seen["after"]) == ([], 4, [])
    assert not any(alive(pid) for pid in seen["found"])


def test_processes_that_fork_and_exit_all_the_time_do_not_get_away():
    churn = (
        "import os, time\nend = time.monotonic() + 60\n"
        "while time.monotonic() < end:\n    if os.fork():\n        time.sleep(0.001)\n        os._exit(0)"
    )
    seen = reaped(f"for i in 1 2 3; do {sys.executable} -c '{churn}' >/dev/null 2>&1 & done", 3)
    assert seen["after"] == []
    assert not [process for process in Process.all() if churn in process.argv and not process.is_zombie]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


def test_a_signal_reaches_a_process(sleeper: subprocess.Popen[bytes]):
    assert process.send(sleeper.pid, signal.SIGTERM)
    assert sleeper.wait() == -signal.SIGTERM


def test_a_signal_to_nobody_is_told(sleeper: subprocess.Popen[bytes]):
    sleeper.kill()
    sleeper.wait()
    assert not process.send(sleeper.pid, signal.SIGTERM)


def test_ignored_signals_are_seen(sleeper: subprocess.Popen[bytes]):
    assert not process.ignores(sleeper.pid, signal.SIGTERM)
    assert not process.ignores(1 << 22, signal.SIGTERM)
    deaf = subprocess.Popen(["sh", "-c", "trap '' TERM; exec sleep 1000"])
    try:
        eventually(lambda: process.ignores(deaf.pid, signal.SIGTERM))
        assert not process.ignores(deaf.pid, signal.SIGUSR2)
    finally:
        deaf.kill()
        deaf.wait()


def test_a_keeper_is_who_holds_the_lock_that_it_names(leak_watch: LeakWatch):
    folder = leak_watch.scratch / "run"
    folder.mkdir()
    lock = folder / "keeper.lock"
    claimant = subprocess.Popen(["sleep", "1000"], env={"HITCHPOST_KEEPER": str(folder)})
    held = os.open(lock, os.O_RDWR | os.O_CREAT)
    try:
        # the kernel shows it a moment after it has closed what tells of the program's start
        eventually(Path(f"/proc/{claimant.pid}/environ").read_bytes, what="the claimant's environment")
        assert not process_marks.is_keeper(claimant.pid), "the lock is empty"
        lock.write_text(f"{claimant.pid} 1 boot\n")
        assert not process_marks.is_keeper(claimant.pid), "the lock is free"
        fcntl.flock(held, fcntl.LOCK_EX)
        assert process_marks.is_keeper(claimant.pid)
        lock.write_text(f"{claimant.pid}1 1 boot\n")
        assert not process_marks.is_keeper(claimant.pid), "the lock is another's"
        assert not process_marks.is_keeper(os.getpid())
    finally:
        os.close(held)
        claimant.kill()
        claimant.wait()


def test_who_has_a_signal_waiting_that_ends_it_is_dying():
    with subprocess.Popen(["sleep", "1000"]) as child:
        assert not process.is_dying(child.pid)
        child.send_signal(signal.SIGSTOP)
        eventually(lambda: (process.stat(child.pid) or [b""])[0] == b"T")
        child.send_signal(signal.SIGHUP)
        assert process.is_dying(child.pid)
        child.send_signal(signal.SIGCONT)
        child.wait()
    assert process.is_dying(child.pid)


def test_a_signal_that_is_ignored_or_blocked_ends_nobody():
    script = "import signal as s; s.signal(1, s.SIG_IGN); s.pthread_sigmask(0, [15]); print(1, flush=True); s.pause()"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(signal.SIGHUP)
        child.send_signal(signal.SIGTERM)
        assert not process.is_dying(child.pid)
        child.kill()
