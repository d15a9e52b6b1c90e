"""A sample of the crash-consistency campaign (``script/faults --long`` walks it all), and the order of the writes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tests
from hitchpost.model import run as runs
from hitchpost.store.session import Session
from tests.faults.campaign import BY_NAME, FAULTS, SAMPLE, Shot, ending_phase, table
from tests.faults.scene import MEMORY, Scene
from tests.faults.tracing import process
from tests.store.made import session

pytestmark = pytest.mark.skipif(not Path("/usr/bin/strace").exists(), reason="needs strace")

IDS = ("F18", "F30", "F37")


@pytest.mark.ids(*IDS)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("operation", BY_NAME)
def test_whatever_the_disk_or_a_kill_does_to_an_operation_every_promise_holds(operation: str):
    """In a process of its own, which imports everything first: every shot is made by a copy of it."""
    words = ["--operation", operation, "--most", str(SAMPLE), "--part", "0/1"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.campaign", *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(tests.__file__).parent.parent)},
        timeout=280,
    )
    shots = [Shot(**json.loads(line)) for line in done.stdout.splitlines()]
    broken = [f"{shot.fault} at {shot.call}: {shot.violation}" for shot in shots if shot.violation]
    assert broken == [], done.stderr
    assert done.returncode == 0, done.stderr
    if operation != "stop":  # the keeper writes all of a stop; who asks for it writes nothing
        assert {shot.fault for shot in shots} == set(FAULTS)
    # now and then a count of processes shifts an ordinal, and a shot goes beside
    assert sum(shot.hit for shot in shots) >= len(shots) * 0.5


@pytest.mark.ids("F2", "F18", "F74")
@pytest.mark.parametrize("operation", ["keeper: exit", "keeper: stop"])
def test_a_keeper_reads_no_code_once_its_agent_runs(home: Path, operation: str):
    """What it had to import at the end could fail then (an upgrade, no descriptor left), and take the exit with it."""
    scene = Scene()
    try:
        BY_NAME[operation].prepare(scene)
        BY_NAME[operation].deed(scene, None)
        lines = scene.log.read_text().splitlines()
    finally:
        scene.close()
    after = lines[ending_phase(lines)[0] :]
    assert any("exit.json" in line for line in after)
    assert [line for line in after if line.startswith("openat(") and re.search(r"\.(py|pyc|so)[\".]", line)] == []


@pytest.mark.ids("F39", "A31-5")
def test_a_change_is_durable_before_it_is_acknowledged_and_all_of_it_happens_under_the_lock(home: Path, tmp_path: Path):
    """The story is synced, then a whole new file is synced, then renamed, then the folder is synced."""
    folder = session(home)
    log = tmp_path / "log"
    done = process(lambda: change(folder), log)
    assert (done.code, done.err) == (0, "")
    lines = [line for line in log.read_text().splitlines() if str(folder) in line]
    name, temp = re.escape(str(folder)), r"\.state\.json\.\d+\.[0-9a-f]{8}\.tmp"
    steps = [
        rf'openat\(.*"{name}/lock"',
        rf"flock\(\d+<{name}/lock>, LOCK_EX\|LOCK_NB\) += 0",
        rf'openat\(.*"{name}/story\.jsonl", O_RDWR\|O_CREAT\|O_APPEND',
        rf"write\(\d+<{name}/story\.jsonl>",
        rf"fdatasync\(\d+<{name}/story\.jsonl>\) += 0",
        rf'openat\(.*"{name}/{temp}", O_WRONLY\|O_CREAT\|O_EXCL',
        rf"write\(\d+<{name}/{temp}>",
        rf"fsync\(\d+<{name}/{temp}>\) += 0",
        rf'rename\("{name}/{temp}", "{name}/state\.json"\) += 0',
        rf"fsync\(\d+<{name}>\) += 0",
        rf"close\(\d+<{name}/lock>\) += 0",
    ]
    reads = [line for line in lines if "O_RDONLY" in line or line.startswith("close(")]
    assert all(re.match(step, line) for step, line in zip(steps[:-1], _without(lines, reads), strict=True))
    assert re.match(steps[-1], lines[-1])


def _without(lines: list[str], others: list[str]) -> list[str]:
    return [line for line in lines if line not in others]


def change(folder: Path) -> int:
    Session(str(folder), actor="test").transition(runs.STARTING, run=1)
    return 0


def test_the_table_counts_each_shot_once():
    shots = [Shot("stop", "KILL", "", hit=True, acknowledged=False), Shot("stop", "KILL", "", True, True, "broken")]
    assert table(shots).splitlines() == [
        "OPERATION  FAULT  SHOTS  HIT  ACKNOWLEDGED  RECOVERED  VIOLATIONS",
        "stop       KILL   2      2    1             1          1",
        "all               2      2    1             1          1",
    ]


def test_the_campaign_leaves_nothing_in_memory(home: Path):
    before = set(MEMORY.iterdir()) if MEMORY.exists() else set()
    words = ["--operation", "transition", "--most", "1", "--part", "0/1"]
    env = os.environ | {"PYTHONPATH": str(Path(tests.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.campaign", *words], capture_output=True, text=True, check=True, env=env
    )
    ours = {json.loads(line)["call"] for line in done.stdout.splitlines()}
    assert len(ours) == 1
    used = re.search(rf"{MEMORY}/[^/]*", ours.pop())
    assert used is None or (Path(used[0]) not in before and not Path(used[0]).exists())
