"""Many start sessions at the same moment: all of them start, under names and numbers of their own, each agent once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.ground import Ground, Truth
from tests.support import Hitch, Process

LONG = "LONG" in os.environ
PROCESSES, EACH = (30, 10) if LONG else (6, 3)
STARTER = """
import subprocess, sys, time
times, place, mark = int(sys.argv[1]), sys.argv[2], sys.argv[3]
for _ in range(times):
    words = ["run", "--workspace", place, "--", "sh", "-c", "exec sleep 1000", mark]
    done = subprocess.run([sys.executable, "-m", "hitchpost", *words], capture_output=True, text=True)
    if done.returncode:
        print(done.stderr.strip())
"""
RACER = """
import os, random, sys
from hitchpost.errors import HitchpostError
from hitchpost.ops.sessions.restart import restart
from hitchpost.ops.sessions.resume import resume
from hitchpost.ops.sessions.stop import stop
from hitchpost.settings import Settings

home, seed, *sessions = sys.argv[1:]
dice = random.Random(int(seed))
caller = dict(os.environ)
for _ in range(int(os.environ["TURNS"])):
    session = dice.choice(sessions)
    try:
        match dice.choice(("resume", "restart", "restart", "stop")):
            case "resume":
                resume(home, session, Settings(), actor="test", caller=caller)
            case "restart":
                restart(home, session, Settings(), actor="test", caller=caller)
            case "stop":
                stop(home, session, actor="test")
    except HitchpostError as error:
        print(error)
"""
ALONE = "exec 9> $1; flock -n 9 || echo two >> $2; exec sleep 1000"


def at_once(count: int, code: str, *argv: str, **env: str) -> list[str]:
    """What ``count`` processes print that run ``code`` at the same time, each with its own NUMBER in ``argv``."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, *(word.replace("NUMBER", str(number)) for word in argv)],
            env=Hitch.environment() | env,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    said = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * count
    return [line for text in said for line in text.splitlines()]


def sessions(ground: Ground) -> list[Truth]:
    return [Truth(ground.home, name) for name in os.listdir(ground.home / "sessions") if not name.startswith(".")]


@pytest.mark.timeout(1800 if LONG else 240)
def test_all_start_that_are_started_at_once(ground: Ground) -> None:
    began = time.monotonic()
    refused = at_once(PROCESSES, STARTER, str(EACH), str(ground.place), "NUMBER")
    took_s = time.monotonic() - began
    rows = ground.hitch("ps", "--json", timeout_s=120).json()
    print(f"{len(rows)} of {PROCESSES * EACH} started in {took_s:.1f} s: {len(rows) / took_s:.1f} a second")
    assert refused == []
    assert sorted(row["index"] for row in rows) == list(range(1, PROCESSES * EACH + 1))
    assert len({row["name"] for row in rows}) == PROCESSES * EACH
    assert {(row["state"], row["run"]) for row in rows} == {("running", 1)}
    assert len({session.agent_pid() for session in sessions(ground)}) == PROCESSES * EACH
    assert not list((ground.home / "sessions").glob(".[nr]*"))


@pytest.mark.timeout(1800 if LONG else 240)
def test_no_session_runs_twice_however_many_start_it(ground: Ground) -> None:
    def one(number: int) -> Truth:
        words = (str(ground.place / f"alone{number}"), str(ground.place / "doubles"))
        return ground.begin_sh(ALONE, *words, name=f"dev{number}")

    raced = [one(number) for number in range(2)]
    turns = "40" if LONG else "6"
    said = at_once(4, RACER, str(ground.home), "NUMBER", *(session.id for session in raced), TURNS=turns)
    assert not (ground.place / "doubles").exists()
    assert not [text for text in said if "locked" in text or "was not stopped" in text]
    for session in raced:
        runs = Counter(line["run"] for line in session.story() if line.get("to") == "starting")
        assert set(runs.values()) == {1}
        row = ground.ps(session)
        lives = [number for number in runs if (run := session.run(number) / "run.json").exists() and run_lives(run)]
        assert lives == ([row["run"]] if row["state"] == "running" else [])


def run_lives(path: Path) -> bool:
    agent = json.loads(path.read_bytes())["agent"]
    process = Process.read(agent["pid"])
    return process is not None and not process.is_zombie and process.start_ticks == agent["start"]
