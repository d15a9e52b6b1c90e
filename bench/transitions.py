"""Durable transitions per second, against a bare loop of the same system calls."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable

from bench.stage import Stage, median
from bench.table import Row, at_least_share
from hitchpost import lightjson
from hitchpost.model import run as runs
from hitchpost.store import files, statefile
from hitchpost.store.session import Session

SHARE = 0.7
STATE_BYTES = 1024
STEPS = (runs.STARTING, runs.RUNNING, runs.STOPPING, runs.STOPPED)


def measure(*, quick: bool) -> list[Row]:
    rounds, lasting_s = (1, 0.3) if quick else (5, 2.0)
    rows = []
    with Stage(quick=quick) as stage:
        for processes in (1, 32):
            folders = [os.path.join(stage.folder, f"{processes}-{number}") for number in range(processes)]
            for folder in folders:
                os.mkdir(folder, 0o700)
                begin(folder)
            ours, bare = [], []
            for _ in range(rounds):
                ours.append(together(transitions, folders, lasting_s))
                bare.append(together(bare_loop, folders, lasting_s))
            rows.append(
                Row(
                    f"durable transitions, {processes} process{'es' if processes > 1 else ''}",
                    f"median of {rounds} × {lasting_s:g} s",
                    median(ours),
                    "/s",
                    median(bare),
                    "the same system calls",
                    at_least_share(SHARE),
                )
            )
    return rows


def together(deed: Callable[[str, float], int], folders: list[str], lasting_s: float) -> float:
    """Deeds per second of one process for each folder, all at once."""
    results, result_write = os.pipe()
    go, go_write = os.pipe()
    children = []
    for folder in folders:
        pid = os.fork()
        if pid == 0:
            try:
                os.close(go_write)
                os.read(go, 1)
                began = time.monotonic()
                done = deed(folder, began + lasting_s)
                os.write(result_write, f"{done / (time.monotonic() - began)}\n".encode())
            finally:
                os._exit(0)
        children.append(pid)
    os.close(go)
    os.close(result_write)
    os.close(go_write)
    with open(results) as lines:
        rates = [float(line) for line in lines]
    for pid in children:
        os.waitpid(pid, 0)
    if len(rates) != len(folders):
        raise RuntimeError(f"expected {len(folders)} results, but got {len(rates)}")
    return sum(rates)


def begin(folder: str) -> None:
    """The state file of a run that has not begun, not forced to the disk.

    Written over the old one: to cut or replace a file makes the file system write it out at once.
    """
    value = lightjson.dumps(statefile.new_state("0" * 12, "", 1, files.stamp()))
    fd = os.open(os.path.join(folder, files.STATE), os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(fd, value.ljust(STATE_BYTES).encode())
    os.close(fd)


def transitions(folder: str, until: float) -> int:
    stored = Session(folder, actor="test")
    done = 0
    while time.monotonic() < until:
        begin(folder)
        for state in STEPS:
            stored.transition(state, run=1, reason="measured")
        done += len(STEPS)
    return done


def bare_loop(folder: str, until: float) -> int:
    """Lock, read, append a line and force it, write a temp file and force it, rename, force the folder, unlock."""
    done = 0
    state, line = b"s" * 220 + b"\n", b"l" * 160 + b"\n"
    paths = [os.path.join(folder, name) for name in ("bare-lock", "bare-state", "bare-story", "bare-temp")]
    lock_path, state_path, story_path, temp_path = paths
    for path in paths:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    while time.monotonic() < until:
        lock = os.open(lock_path, os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
        fd = os.open(state_path, os.O_RDONLY)
        os.read(fd, 65536)
        os.close(fd)
        fd = os.open(story_path, os.O_WRONLY | os.O_APPEND)
        os.write(fd, line)
        os.fdatasync(fd)
        os.close(fd)
        fd = os.open(temp_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(fd, state)
        os.fsync(fd)
        os.close(fd)
        os.rename(temp_path, state_path)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(fd)
        os.close(fd)
        os.close(lock)
        done += 1
    return done
