"""What a keeper costs in memory, against a bare interpreter that waits."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterable

from bench.stage import Stage, end_children, program
from bench.table import Row, at_most_more

MORE_MB = 2.5


def measure(*, quick: bool) -> list[Row]:
    count = 10 if quick else 100
    python = os.path.realpath(sys.executable)
    waiting = "import os; os.write(1, b'r'); os.read(0, 1)"
    bare = [
        subprocess.Popen([python, "-I", "-S", "-c", waiting], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(count)
    ]
    try:
        for child in bare:
            assert child.stdout is not None
            child.stdout.read(1)
        bare_mb = mean_pss_mb(child.pid for child in bare)
    finally:
        end_children(bare)
    with Stage(quick=quick) as stage:
        sessions = stage.sessions(count, program(), "sleep")
        ours_mb = mean_pss_mb(session.keeper() for session in sessions)
    sample = f"mean of {count}"
    return [Row("memory of a keeper, PSS", sample, ours_mb, "MB", bare_mb, "python -I -S", at_most_more(MORE_MB, "MB"))]


def mean_pss_mb(pids: Iterable[int]) -> float:
    return statistics.mean(map(pss_kb, pids)) / 1024


def pss_kb(pid: int) -> int:
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
