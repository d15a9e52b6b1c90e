"""From the wish to start, or to start again, to the first output that can be read in the log."""

from __future__ import annotations

import glob
import os
import pty
import time

from bench.stage import Session, Stage, command_s, hitch, percentile, program
from bench.table import Row, at_most
from hitchpost.ops.sessions.restart import restart
from hitchpost.store import records

RESTART_P99_MS = 300.0
TICK_S = 0.004


def measure(*, quick: bool) -> list[Row]:
    count = 5 if quick else 50
    kinds = {
        "start, ops.start": started_ms,
        "restart of a live session, ops.restart": restarted_ms,
        "start, hitch run": run_ms,
        "restart of a live session, hitch restart": hitch_restart_ms,
    }
    took_ms: dict[str, list[float]] = {kind: [] for kind in kinds}
    returns_ms.clear()
    bare_ms = []
    with Stage(quick=quick) as stage:
        session = stage.session(program(), "say")
        for _ in range(count):
            bare_ms.append(bare_start_ms())
            for kind, deed in kinds.items():
                took_ms[kind].append(deed(stage, session))
            session.stop()
    rows = []
    for kind, values in took_ms.items():
        for share in (0.5, 0.99):
            rows.append(
                Row(
                    f"{kind} → first output, p{share * 100:g}",
                    f"{count} times",
                    percentile(values, share),
                    "ms",
                    percentile(bare_ms, share),
                    "fork + exec on a PTY",
                    at_most(RESTART_P99_MS, "ms") if share > 0.5 else None,
                )
            )
    for share in (0.5, 0.99):
        rows.append(Row(f"hitch run returns, p{share * 100:g}", f"{count} times", percentile(returns_ms, share), "ms"))
    return rows


returns_ms: list[float] = []
"""``hitch run`` comes back when the agent is ready: some time after its first output."""


def first_output(session: Session) -> None:
    """Returns when the log holds something."""
    with session.link() as link:
        link.follow(0)
        while not any(kind == b"P" for kind, _ in link.frames(10)):
            continue


def started_ms(stage: Stage, session: Session) -> float:
    began = time.perf_counter()
    session.start()
    first_output(session)
    return (time.perf_counter() - began) * 1000


def restarted_ms(stage: Stage, session: Session) -> float:
    began = time.perf_counter()
    begun = restart(stage.home, session.id, stage.settings, caller=os.environ, actor="test")
    session.run = begun.seen.facts.run
    first_output(session)
    return (time.perf_counter() - began) * 1000


def output_at(session: Session) -> float:
    """When the run's only output was written to its log. Files have the time of the last tick, so one is added."""
    first_output(session)
    (log,) = glob.glob(f"{session.run_folder}/output/*.log")
    return os.stat(log).st_mtime + TICK_S


def hitch_restart_ms(stage: Stage, session: Session) -> float:
    began = time.time()
    command_s(hitch(), "restart", session.id)
    session.run += 1
    return (output_at(session) - began) * 1000


def run_ms(stage: Stage, session: Session) -> float:
    """The whole command, from an empty shell line to the first output of a new session."""
    before = set(records.ids(stage.home))
    began = time.time()
    returns_ms.append(command_s(hitch(), "run", "--workspace", stage.work, "--", program(), "say") * 1000)
    (new,) = set(records.ids(stage.home)) - before
    made = Session(stage, new)
    made.run = 1
    took_ms = (output_at(made) - began) * 1000
    made.stop()
    return took_ms


def bare_start_ms() -> float:
    began = time.perf_counter()
    pid, master = pty.fork()
    if pid == 0:
        os.execv(program(), [program(), "say"])
    os.read(master, 1)
    took_ms = (time.perf_counter() - began) * 1000
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    os.close(master)
    return took_ms
