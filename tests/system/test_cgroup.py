"""Control groups for real, where this system allows any."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitchpost.store import process_marks
from hitchpost.system import cgroup
from tests.ground import alive
from tests.support import eventually


@pytest.fixture
def name(tmp_path: Path) -> Iterator[str]:
    found = process_marks.group_name(str(tmp_path / "sessions" / "abc"), 1)
    yield found
    assert cgroup.find(found).folders == [], "every group was given back"


@pytest.fixture
def group(name: str) -> Iterator[cgroup.ControlGroups]:
    made = cgroup.build(name, 50, 64 << 20)
    if not made.folders:
        pytest.skip("no control group is allowed here")
    yield made
    made.kill()
    eventually(lambda: made.pids() == [])
    made.remove()


def sleeper(group: cgroup.ControlGroups | None = None, seconds: str = "1000") -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", seconds], preexec_fn=None if group is None else group.enter)


def test_who_enters_is_found_with_its_children_until_they_end(group: cgroup.ControlGroups):
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


def test_kill_ends_everyone_inside_at_once(group: cgroup.ControlGroups):
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


def test_a_group_is_found_again_by_its_name(name: str, group: cgroup.ControlGroups):
    found = cgroup.find(name)
    assert sorted(found.folders) == sorted(group.folders)
    assert found.tier == group.tier
    assert cgroup.find(name[:-1] + "2").folders == []
    assert cgroup.find(name + "1").folders == []


def test_a_copied_home_has_groups_of_its_own_and_a_moved_one_keeps_them(tmp_path: Path):
    home = tmp_path / "home"
    session = home / "sessions" / "abc"
    session.mkdir(parents=True)
    name = process_marks.group_name(str(session), 1)
    shutil.copytree(home, tmp_path / "copy")
    assert process_marks.group_name(str(tmp_path / "copy" / "sessions" / "abc"), 1) != name
    home.rename(tmp_path / "moved")
    assert process_marks.group_name(str(tmp_path / "moved" / "sessions" / "abc"), 1) == name


def test_a_group_that_is_not_empty_stays(name: str, group: cgroup.ControlGroups):
    inside = sleeper(group)
    group.remove()
    assert cgroup.find(name).folders
    inside.kill()
    inside.wait()


def test_building_it_again_takes_the_one_that_is_there(name: str, group: cgroup.ControlGroups):
    assert cgroup.build(name, 50, 64 << 20).folders == group.folders


def test_limits_are_set_where_there_is_a_controller(group: cgroup.ControlGroups):
    folders = [Path(folder) for folder in group.folders]
    for folder in folders:
        for file, limit in (
            ("pids.max", "50"),
            ("memory.limit_in_bytes", str(64 << 20)),
            ("memory.max", str(64 << 20)),
        ):
            if (folder / file).exists():
                assert (folder / file).read_text().strip() == limit


def test_no_limit_is_set_where_none_is_wanted(name: str):
    made = cgroup.build(name, 0, 0)
    for folder in map(Path, made.folders):
        assert "memory" not in folder.parts
        if (folder / "pids.max").exists():
            assert (folder / "pids.max").read_text().strip() == "max"
    made.remove()


LEAVE = """
import sys
from hitchpost.system import cgroup
group = cgroup.find(sys.argv[1])
group.enter()
below = cgroup.bases()
cgroup.leave_foreign_group()
print(below == cgroup.bases(), any(cgroup.PREFIX in base for _, base in below), group.pids())
"""


def test_a_keeper_inside_a_foreign_group_steps_out_and_builds_beside_it(name: str, group: cgroup.ControlGroups):
    done = subprocess.run([sys.executable, "-c", LEAVE, name], capture_output=True, text=True, check=True)
    assert done.stdout == "True False []\n"


def test_groups_can_be_done_without(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HITCHPOST_TIER", "subreaper")
    made = cgroup.build(name, 50, 0)
    assert (made.folders, made.tier, made.pids(), made.kill()) == ([], "subreaper", [], False)
    made.enter()
    made.remove()
