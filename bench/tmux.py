"""The tmux runtime: what a look at 200 sessions costs, what they cost when idle, and whether exits are told right."""

from __future__ import annotations

import subprocess
import time

from bench import truth
from bench.idle import Count, stat_fields
from bench.memory import pss_kb
from bench.stage import Stage, median, program
from bench.table import Row, at_most_times, exactly
from hitchpost.ops.views.listing import listing

SHARE = 0.5


def measure(*, quick: bool) -> list[Row]:
    count, rounds, idle_s = (3, 2, 0.5) if quick else (200, 5, 10.0)
    with Stage(quick=quick) as stage:
        sessions = stage.sessions(count, program(), "sleep", runtime="tmux")
        ours_ms, asked_ms = [], []
        for _ in range(rounds):
            began = time.monotonic()
            rows = listing(stage.home)
            ours_ms.append((time.monotonic() - began) * 1000)
            if any(row.shape["status"] != "running" for row in rows):
                raise RuntimeError(f"expected {count} running sessions, but got {[row.shape['label'] for row in rows]}")
            began = time.monotonic()
            for session in sessions:
                argv = ["tmux", "-S", "tmux.sock", "has-session", "-t", "=agent"]
                subprocess.run(argv, cwd=session.folder, check=True, capture_output=True)
            asked_ms.append((time.monotonic() - began) * 1000)
        keepers = [session.keeper() for session in sessions]
        everyone = keepers + [int(stat_fields(pid)[1]) for pid in keepers]
        before = Count.now(everyone)
        time.sleep(idle_s)
        after = Count.now(everyone)
        pss_mb = sum(map(pss_kb, everyone)) / count / 1024
    sample = f"{count} sessions in tmux"
    return [
        Row(
            "one round of status",
            f"{sample}, median of {rounds}",
            median(ours_ms),
            "ms",
            median(asked_ms),
            "has-session once for each",
            at_most_times(SHARE),
        ),
        Row(
            "forks of idle keepers and servers, seen by their children's page faults",
            f"{sample}, {idle_s:g} s",
            after.child_faults - before.child_faults,
            "",
            None,
            "",
            exactly(0),
        ),
        Row("memory of a session, keeper and server, PSS", f"mean of {count}", pss_mb, "MB"),
        *truth.measure(quick=quick, runtime="tmux"),
    ]
