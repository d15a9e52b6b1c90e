"""Process 1 of a pod: it reaps, hands SIGTERM on, and goes on when the server does not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hitchpost
from hitchpost.system import process
from tests.fleet.processes import Fleet, fleet_of
from tests.fleet.test_life import ASLEEP, shows
from tests.ground import Ground, left_with
from tests.support import Process, eventually

SOURCE = Path(hitchpost.__file__).parent.parent
HEAVY = {"asyncio", "ssl", "json", "re", "enum", "typing", "logging", "socket", "threading", "subprocess", "signal"}
MOST_FIRST_KIB = 14_000
MOST_SERVER_KIB = 45_000


@pytest.fixture
def fleet(ground: Ground) -> Iterator[Fleet]:
    with fleet_of(ground) as made:
        yield made


def test_sigterm_ends_the_run_with_its_grace_and_its_exit_is_on_the_volume_before_the_pod_leaves(fleet: Fleet):
    session = fleet.sh("trap 'sleep 0.5; echo bye; exit 4' TERM; echo ready; while :; do sleep 0.05; done")
    shows(session, b"ready")
    pod = fleet.pod(session)
    assert pod.end() == 0
    there = pod.truth
    assert there.state == "stopped"
    assert there.exit() == left_with(4, intent="shutdown")
    assert there.output().endswith(b"bye\r\n")
    # and the hub knows all of it, without the pod
    assert fleet.ended(session) == "stopped"
    assert (session.exit(), session.output()) == (there.exit(), there.output())


def test_a_pod_that_has_no_run_leaves_at_once(fleet: Fleet):
    session = fleet.sh("exit 0")
    fleet.ended(session)
    pod = fleet.pod(session)
    began = time.monotonic()
    assert pod.end() == 0
    assert time.monotonic() - began < 4


def test_sigterm_in_the_middle_of_a_start_leaves_no_agent_behind(fleet: Fleet):
    """Whatever comes first: either the run was never begun, or it was and is ended."""
    from tests.fleet.processes import Pod

    for pause_s in (0.0, 0.03, 0.06, 0.1, 0.15, 0.2):
        session = fleet.create("sh", "-c", ASLEEP)
        made = fleet.cluster.pods[session.id] = Pod(fleet.cluster.folder / session.id, session.id, fleet.authority)
        made.begin()
        made.address()
        import threading

        starting = threading.Thread(target=lambda session=session: _start(fleet, session))
        starting.start()
        time.sleep(pause_s)
        assert made.process is not None
        first = made.process.pid
        assert made.end() == 0
        assert process.below(first) == []
        if (made.truth.folder / "state.json").exists():
            assert made.truth.state in ("stopped", "failed", "starting")
        fleet.do(fleet.links.let_go(str(session.folder)))
        starting.join()


def _start(fleet: Fleet, session: object) -> None:
    from hitchpost.errors import HitchpostError

    try:
        fleet.start(session)  # type: ignore[arg-type]
    except HitchpostError:
        return


def test_everything_that_ends_in_the_pod_is_reaped(fleet: Fleet):
    script = "for i in $(seq 20); do (setsid sh -c 'sleep 0.1' >/dev/null 2>&1 &); done; echo ready; exec sleep 1000"
    session = fleet.sh(script)
    shows(session, b"ready")
    pod = fleet.pod(session)
    assert pod.process is not None
    first = pod.process.pid
    fleet.stop(session, by="restart")
    eventually(lambda: set(process.children(first)) == {pod.server}, what="no child but the server")
    zombies = [each for each in Process.all() if each.is_zombie and each.parent == first]
    assert zombies == []


def test_what_a_run_leaves_behind_ends_with_its_pod(fleet: Fleet):
    begun = "while ! test -e begun; do sleep 0.01; done"
    session = fleet.sh(f"setsid -f sh -c 'touch begun; exec sleep 1000' >/dev/null 2>&1 </dev/null; {begun}")
    assert fleet.ended(session) == "completed"
    assert session.exit()["survivors"] == 1
    pod = fleet.pod(session)
    assert pod.process is not None
    left = [pid for pid in process.below(pod.process.pid) if pid != pod.server]
    assert len(left) == 1
    answer = fleet.links.ask(str(session.folder), {"op": "leftovers", "run": 1})
    assert (answer["ok"], answer["count"]) == (True, 1)
    assert pod.end() == 0
    assert not process.has_live_thread(left[0])


def modules(program: str) -> set[str]:
    words = [sys.executable, "-I", "-c", f"import sys; {program}; print(*sys.modules)"]
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())


def test_the_first_process_imports_little():
    added = modules(f"sys.path.append({str(SOURCE)!r}); import hitchpost.pod.first") - modules("pass")
    assert added & HEAVY == set()
    assert "hitchpost.runtimes.kept" in added


def test_a_pod_is_small(fleet: Fleet):
    """Both processes from nothing, as in a pod, with a run and a link."""
    from tests.fleet.processes import Pod

    session = fleet.create("sh", "-c", ASLEEP)
    made = fleet.cluster.pods[session.id] = Pod(fleet.cluster.folder / session.id, session.id, fleet.authority)
    made.begin(warm=False)
    fleet.start(session)
    shows(session, b"ready")
    assert made.process is not None
    first, server = resident_kib(made.process.pid), resident_kib(made.server)
    print(f"process 1: {first} KiB, server: {server} KiB")
    assert first < MOST_FIRST_KIB
    assert server < MOST_SERVER_KIB
    fleet.stop(session)


def resident_kib(pid: int) -> int:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
