from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hitchpost.errors import Refused, WorkspaceBusy
from hitchpost.workspaces import lease, store
from hitchpost.workspaces.store import Workspace
from tests.support import LeakWatch, eventually


@pytest.fixture
def workspace(home: Path, leak_watch: LeakWatch) -> Workspace:
    folder = leak_watch.scratch / "plain"
    folder.mkdir()
    return store.register(str(home), str(folder))


def take(home: Path, workspace: Workspace, name: str = "dev", *, share: bool = False) -> int:
    return lease.take(str(home), workspace, session="k3v9q0x2m7ab", name=name, run=2, share=share)


@pytest.mark.ids("A31-13", "F54")
def test_one_writer_at_a_time_and_the_refusal_names_the_holder(home: Path, workspace: Workspace) -> None:
    first = take(home, workspace)
    with pytest.raises(WorkspaceBusy) as raised:
        take(home, workspace, "other")
    assert str(raised.value) == ("workspace 'plain' is in use by dev (k3v9q0x2m7ab); --share joins as a reader")
    os.close(first)
    os.close(take(home, workspace, "other"))


@pytest.mark.ids("A31-13")
def test_as_many_writers_as_the_capacity(home: Path, workspace: Workspace) -> None:
    with store.lock(str(home), workspace.id):
        workspace = store.changed(str(home), workspace, capacity=2)
    held = [take(home, workspace, "one"), take(home, workspace, "two")]
    with pytest.raises(WorkspaceBusy, match=r"in use by one \(.*\), two \("):
        take(home, workspace, "three")
    for fd in held:
        os.close(fd)


@pytest.mark.ids("A31-13")
def test_readers_join_whoever_is_there_and_are_counted(home: Path, workspace: Workspace) -> None:
    held = [take(home, workspace, "writer"), *(take(home, workspace, f"r{n}", share=True) for n in range(3))]
    found = [(one.slot, one.name, one.run, one.reader) for one in lease.holders(str(home), workspace)]
    assert found == [
        ("0", "writer", 2, False),
        ("reader-0", "r0", 2, True),
        ("reader-1", "r1", 2, True),
        ("reader-2", "r2", 2, True),
    ]
    os.close(held.pop(0))
    lease.check_free(str(home), workspace)
    for fd in held:
        os.close(fd)
    assert lease.holders(str(home), workspace) == []


@pytest.mark.ids("A31-13")
def test_a_lease_ends_with_its_holder_whatever_happens(home: Path, workspace: Workspace) -> None:
    fd = take(home, workspace)
    holder = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], pass_fds=[fd])
    os.close(fd)
    with pytest.raises(WorkspaceBusy):
        lease.check_free(str(home), workspace)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert lease.holders(str(home), workspace) == []
    os.close(take(home, workspace))


def test_a_descriptor_of_a_lease_reaches_no_other_program(home: Path, workspace: Workspace) -> None:
    fd = take(home, workspace)
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_a_slot_that_names_nobody_is_still_held(home: Path, workspace: Workspace) -> None:
    fd = take(home, workspace)
    os.ftruncate(fd, 0)
    assert [str(one) for one in lease.holders(str(home), workspace)] == ["another process"]
    os.close(fd)


def test_a_removed_workspace_has_no_leases(home: Path, workspace: Workspace) -> None:
    with store.lock(str(home), workspace.id):
        store.forget(str(home), workspace)
    with pytest.raises(Refused, match="workspace 'plain' has been removed"):
        take(home, workspace)


@pytest.mark.ids("F54")
def test_of_many_that_start_at_once_one_gets_the_lease(home: Path, workspace: Workspace) -> None:
    script = (
        "import sys, time; from hitchpost.workspaces import lease, store; from hitchpost.errors import WorkspaceBusy\n"
        "home, ours = sys.argv[1:]; one = store.read(home, ours)\n"
        "try: lease.take(home, one, session='', name='x'); print('got', flush=True); sys.stdin.read()\n"
        "except WorkspaceBusy: print('busy', flush=True)\n"
    )
    argv = [sys.executable, "-c", script, str(home), workspace.id]
    racers = [subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    said = sorted(racer.stdout.readline().strip() for racer in racers if racer.stdout)
    for racer in racers:
        racer.communicate()
    assert said == ["busy"] * 5 + ["got"]
    eventually(lambda: not lease.holders(str(home), workspace))
