"""Watched agents: from a permission asked to a client told, exits beside a watcher, and what watching costs."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.exits import PATIENCE_MS, Clock, moved_to, one_exit
from bench.hub import client, hub
from bench.idle import Count
from bench.memory import mean_pss_mb
from bench.stage import Session, Stage, end_children, percentile, program, wait_until
from bench.table import Row, at_most, at_most_times, exactly
from hitchpost import wire
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.store import runfiles
from hitchpost.system import process

TOLD_P99_MS, PS_MS, MOST_CPU, TIMES = 100.0, 100.0, 2.0, 1.5
FILE = """
title = "An agent that reports"
argv = ["{program}"]
adapter = "rules"
ready_after_s = 1
"""
CALM_S = 12.0
"""After a start, where much changes beside it, a keeper looks each second for ten seconds; then the kernel tells it."""
ASKED = {True: (b"b", "blocked"), False: (b"i", "idle")}


def measure(*, quick: bool) -> list[Row]:
    times, exits, agents, lasting_s = (10, 5, 3, 2.0) if quick else (200, 100, 100, 10.0)
    with Stage(quick=quick) as stage:
        folder = Path(stage.folder, "agents")
        folder.mkdir()
        (folder / "bench.toml").write_text(FILE.format(program=program()))
        rows = reports(stage, times)
        rows += ends(stage, exits)
        rows += cost(stage, agents, lasting_s)
    return rows


def watched(stage: Stage) -> Session:
    """A session of the agent that is watched, not started yet."""
    made = create(stage.home, SessionSpec(stage.work, agent="bench"), stage.settings, actor="test")
    return Session(stage, made.id)


def watcher(session: Session) -> int:
    """The watcher's number; 0 while there is none that is connected."""
    for pid in process.children(session.keeper()):
        if b"hitchpost.watcher" in process.read(f"/proc/{pid}/cmdline"):
            return pid if sockets(pid) > 2 else 0  # asyncio has two of its own
    return 0


def sockets(pid: int) -> int:
    count = 0
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            count += os.readlink(f"/proc/{pid}/fd/{number}").startswith("socket:")
        except FileNotFoundError:
            continue  # closed while we looked
    return count


def is_watched(session: Session) -> bool:
    return bool(watcher(session)) and runfiles.read_report(session.run_folder).get("state") == "idle"


def reports(stage: Stage, count: int) -> list[Row]:
    clock = Clock(os.path.join(stage.folder, "reports"), count)
    bare_ms = asked_of_a_pipe(stage, count)
    with hub(stage):
        session = watched(stage)
        session.start(program(), "report", clock.path, str(count))
        wait_until(lambda: is_watched(session), "a watched agent")
        told_ms = asyncio.run(told(stage, session, clock, count))
        session.stop()
    session.start(program(), "report", clock.path, str(count))
    wait_until(lambda: is_watched(session), "a watched agent")
    ps_ms = written(session, clock, count)
    session.stop()
    clock.close()
    rows = []
    for what, values, limit in (
        ("permission asked → WebSocket client told", told_ms, TOLD_P99_MS),
        ("report → what hitch ps reads is right", ps_ms, PS_MS),
    ):
        for share in (0.5, 0.99):
            wanted = at_most(limit, "ms") if share > 0.5 else None
            figures = (percentile(values, share), "ms", percentile(bare_ms, share))
            rows.append(Row(f"{what}, p{share * 100:g}", f"{count} reports", *figures, "through a pipe", wanted))
    return rows


def asked_of_a_pipe(stage: Stage, count: int) -> list[float]:
    """The anchor: who reads the program's output itself."""
    clock = Clock(os.path.join(stage.folder, "piped"), count)
    agent = subprocess.Popen(
        [program(), "report", clock.path, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert agent.stdin is not None
    assert agent.stdout is not None
    agent.stdout.read(100)
    took_ms = []
    for place in range(count):
        agent.stdin.write(b"b")
        agent.stdout.read(100)
        took_ms.append((time.monotonic_ns() - clock[place]) / 1e6)
    end_children([agent])
    clock.close()
    return took_ms


async def told(stage: Stage, session: Session, clock: Clock, count: int) -> list[float]:
    """Milliseconds from each report to a client of the hub that has read of it."""
    took_ms = []
    async with client(stage) as connection:
        with session.link() as link:
            for place in range(count):
                byte, state = ASKED[place % 2 == 0]
                await asyncio.sleep(0.15)  # the keeper tells ten times a second at most
                link.send(wire.INPUT, byte)
                async with asyncio.timeout(PATIENCE_MS / 1000):
                    while not says(await connection.recv(), session.id, state):
                        continue
                took_ms.append((time.monotonic_ns() - clock[place]) / 1e6)
    return took_ms


def says(message: Any, session: str, state: str) -> bool:
    return isinstance(message, str) and session in message and f'"state":"{state}"' in message.replace(": ", ":")


def written(session: Session, clock: Clock, count: int) -> list[float]:
    """Milliseconds from each report to the file that every look reads."""
    took_ms = []
    watch = moved_to(session.run_folder)
    poll = select.poll()
    poll.register(watch, select.POLLIN)
    with session.link() as link:
        for place in range(count):
            byte, state = ASKED[place % 2 == 0]
            time.sleep(0.15)
            link.send(wire.INPUT, byte)
            while runfiles.read_report(session.run_folder).get("state") != state:
                if not poll.poll(PATIENCE_MS):
                    raise TimeoutError("no report")
                os.read(watch, 4096)
            took_ms.append((time.monotonic_ns() - clock[place]) / 1e6)
    os.close(watch)
    return took_ms


def ends(stage: Stage, count: int) -> list[Row]:
    """Exits with a watcher and without one, in turns."""
    clock = Clock(os.path.join(stage.folder, "ends"), count * 2)
    beside, alone = watched(stage), stage.session(program(), "sleep")
    with_ms, without_ms = [], []

    def has_watcher() -> None:
        wait_until(lambda: watcher(beside) > 0, "a watcher")

    for place in range(count):
        with_ms.append(one_exit(beside, clock, 2 * place, has_watcher)[1])
        without_ms.append(one_exit(alone, clock, 2 * place + 1)[1])
    clock.close()
    return [
        Row(
            f"exit of a watched agent → subscriber told, p{share * 100:g}",
            f"{count} exits",
            percentile(with_ms, share),
            "ms",
            percentile(without_ms, share),
            "without a watcher",
            at_most_times(TIMES) if share == 0.5 else None,
        )
        for share in (0.5, 0.99)
    ]


def cost(stage: Stage, count: int, lasting_s: float) -> list[Row]:
    """Of agents that are at their prompts."""
    clock = Clock(os.path.join(stage.folder, "cost"), 1)
    sessions = []
    for _ in range(count):
        session = watched(stage)
        session.start(program(), "report", clock.path, "1")
        sessions.append(session)
    for session in sessions:
        wait_until(lambda session=session: is_watched(session), "a watched agent", 120)  # type: ignore[misc]
    watchers = [watcher(session) for session in sessions]
    everybody = [*watchers, *(session.keeper() for session in sessions)]
    time.sleep(CALM_S)
    before = Count.now(everybody)
    time.sleep(lasting_s)
    after = Count.now(everybody)
    clock.close()
    sample = f"{count} agents, {lasting_s:g} s"
    faults = after.child_faults - before.child_faults
    busy = (after.busy_s - before.busy_s) / lasting_s * 100
    return [
        Row("forks of keepers and watchers, seen by their children's faults", sample, faults, "", wanted=exactly(0)),
        Row("CPU of keepers and watchers", sample, busy, "% of a core", wanted=at_most(MOST_CPU, "%")),
        Row("memory of a watcher, PSS", f"mean of {count}", mean_pss_mb(watchers), "MB"),
    ]
