"""Control groups for real, where this system allows any."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitchpost.keeper import cage
from hitchpost.state.home import new_id
from tests.ground import alive
from tests.support import eventually


@pytest.fixture
def session() -> Iterator[str]:
    name = new_id()
    yield name
    assert cage.find(name, 1).folders == [], "every group was given back"


@pytest.fixture
def group(session: str) -> Iterator[cage.Cage]:
    made = cage.build(session, 1, 50, 64 << 20)
    if not made.folders:
        pytest.skip("no control group is allowed here")
    yield made
    made.kill()
    eventually(lambda: made.pids() == [])
    made.remove()


def sleeper(group: cage.Cage | None = None, seconds: str = "1000") -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", seconds], preexec_fn=None if group is None else group.enter)


def test_who_enters_is_found_with_its_children_until_they_end(group: cage.Cage):
    assert group.pids() == []
    program = "import subprocess; subprocess.run(['setsid', 'sleep', '1000'], env={})"
    inside = subprocess.Popen([sys.executable, "-c", program], preexec_fn=group.enter)
    outside = sleeper()
    try:
        eventually(lambda: len(group.pids()) >= 2)
        assert inside.pid in group.pids()
        assert outside.pid not in group.pids()
        for pid in group.pids():
            os.kill(pid, signal.SIGKILL)
        inside.wait()
        eventually(lambda: group.pids() == [])
    finally:
        outside.kill()
        outside.wait()


def test_kill_ends_everyone_inside_at_once(group: cage.Cage):
    if group.tier != "cgroup2":
        pytest.skip("the kernel offers no cgroup.kill here")
    inside = [sleeper(group) for _ in range(5)]
    outside = sleeper()
    try:
        assert group.kill()
        assert [process.wait() for process in inside] == [-signal.SIGKILL] * 5
        assert alive(outside.pid)
    finally:
        outside.kill()
        outside.wait()


def test_a_group_is_found_again_by_its_name(session: str, group: cage.Cage):
    found = cage.find(session, 1)
    assert sorted(found.folders) == sorted(group.folders)
    assert found.tier == group.tier
    assert cage.find(session, 2).folders == []
    assert cage.find(session, 11).folders == []


def test_a_group_that_is_not_empty_stays(session: str, group: cage.Cage):
    inside = sleeper(group)
    group.remove()
    assert cage.find(session, 1).folders
    inside.kill()
    inside.wait()


def test_building_it_again_takes_the_one_that_is_there(session: str, group: cage.Cage):
    assert cage.build(session, 1, 50, 64 << 20).folders == group.folders


def test_limits_are_set_where_there_is_a_controller(group: cage.Cage):
    folders = [Path(folder) for folder in group.folders]
    for folder in folders:
        for file, limit in (
            ("pids.max", "50"),
            ("memory.limit_in_bytes", str(64 << 20)),
            ("memory.max", str(64 << 20)),
        ):
            if (folder / file).exists():
                assert (folder / file).read_text().strip() == limit


def test_no_limit_is_set_where_none_is_wanted(session: str):
    made = cage.build(session, 1, 0, 0)
    for folder in map(Path, made.folders):
        assert "memory" not in folder.parts
        if (folder / "pids.max").exists():
            assert (folder / "pids.max").read_text().strip() == "max"
    made.remove()


LEAVE = """
import sys
from hitchpost.keeper import cage
group = cage.find(sys.argv[1], 1)
group.enter()
below = cage.bases()
cage.leave_foreign_cage()
print(below == cage.bases(), any(cage.PREFIX in base for _, base in below), group.pids())
"""


def test_a_keeper_inside_a_foreign_group_steps_out_and_builds_beside_it(session: str, group: cage.Cage):
    done = subprocess.run([sys.executable, "-c", LEAVE, session], capture_output=True, text=True, check=True)
    assert done.stdout == "True False []\n"


def test_groups_can_be_done_without(session: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HITCHPOST_TIER", "subreaper")
    made = cage.build(session, 1, 50, 0)
    assert (made.folders, made.tier, made.pids(), made.kill()) == ([], "subreaper", [], False)
    made.enter()
    made.remove()
