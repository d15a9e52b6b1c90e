"""A flood on the terminal: how fast it reaches the log, and what it costs, against drains that keep nothing."""

from __future__ import annotations

import os
import pty
import subprocess
import time

from bench.stage import Stage, cpu_s, median, program
from bench.table import Row, at_least_share

SHARE = 0.7
LINE = 80
MB = 1_000_000


def measure(*, quick: bool) -> list[Row]:
    size, rounds = (8 * MB, 1) if quick else (200 * MB, 3)
    size = size // LINE * LINE
    expected = size + size // LINE  # the terminal adds a carriage return to each line
    ours, ours_cpu, c_drain, c_cpu, python_drain = [], [], [], [], []
    with Stage(quick=quick) as stage:
        for _ in range(rounds):
            wall_s, busy_s = through_c(size, expected)
            c_drain.append(expected / wall_s / MB)
            c_cpu.append(busy_s * 100 * MB / expected)
            wall_s, busy_s = through_keeper(stage, size, expected)
            ours.append(expected / wall_s / MB)
            ours_cpu.append(busy_s * 100 * MB / expected)
            python_drain.append(expected / through_python(size, expected) / MB)
    sample = f"median of {rounds} × {size // MB} MB"
    wanted = at_least_share(SHARE)
    return [
        Row("flood → log", sample, median(ours), "MB/s", median(c_drain), "C drain, nothing kept", wanted),
        Row("flood → log", sample, median(ours), "MB/s", median(python_drain), "Python drain, nothing kept"),
        Row("CPU of the keeper per 100 MB of flood", sample, median(ours_cpu), "s", median(c_cpu), "C drain"),
    ]


def through_keeper(stage: Stage, size: int, expected: int) -> tuple[float, float]:
    """Seconds until the last byte can be read in the log, and seconds of the keeper on a processor."""
    session = stage.session(program(), "flood", str(size))
    session.start()
    keeper = session.keeper()
    with session.link() as link:
        link.follow(0)
        while not any(kind == b"P" for kind, _ in link.frames(10)):
            continue
        link.follow(expected)  # one byte, the greeting, came before the flood
        busy_s, began = cpu_s(keeper), time.perf_counter()
        link.send(b"I", b"g")
        while not any(kind == b"P" for kind, _ in link.frames(120)):
            if link.closed:
                raise RuntimeError("the flood ended early")
        took_s = time.perf_counter() - began
        busy_s = cpu_s(keeper) - busy_s
    session.stop()
    return took_s, busy_s


def through_c(size: int, expected: int) -> tuple[float, float]:
    argv = [program(), "drain", str(expected), program(), "flood", str(size)]
    wall, busy = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
    return int(wall) / 1e9, int(busy) / 1e9


def through_python(size: int, expected: int) -> float:
    pid, master = pty.fork()
    if pid == 0:
        os.execv(program(), [program(), "flood", str(size)])
    os.read(master, 1)
    began = time.perf_counter()
    os.write(master, b"g")
    seen = 0
    while seen < expected:
        seen += len(os.read(master, 65536))
    took_s = time.perf_counter() - began
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    os.close(master)
    return took_s
