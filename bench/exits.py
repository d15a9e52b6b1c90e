"""From the true moment of an agent's exit to its final state on disk, and to a subscriber being told."""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable

from bench.stage import Session, Stage, percentile, program
from bench.table import Row, at_most
from hitchpost.runtimes.link import exit_event
from hitchpost.store import files

TOLD_P99_MS = 20.0
IN_MOVED_TO = 0x80
PATIENCE_MS = 20_000


class Clock:
    """A file shared with the agents: each notes there, at its place, when it was about to exit."""

    def __init__(self, path: str, places: int) -> None:
        self.path = path
        with open(path, "wb+") as file:
            file.truncate(places * 8)
            self._map = mmap.mmap(file.fileno(), places * 8)

    def __getitem__(self, place: int) -> int:
        return int.from_bytes(self._map[place * 8 : place * 8 + 8], "little")

    def close(self) -> None:
        self._map.close()


def measure(*, quick: bool) -> list[Row]:
    count = 10 if quick else 200
    with Stage(quick=quick) as stage:
        clock = Clock(os.path.join(stage.folder, "clock"), count * 2)
        session = stage.session(program(), "sleep")
        disk_ms, told_ms, bare_ms = [], [], []
        for place in range(count):
            disk, told = one_exit(session, clock, place)
            disk_ms.append(disk)
            told_ms.append(told)
            bare_ms.append(one_bare_exit(stage, clock, count + place))
        clock.close()
    rows = []
    for what, values in (("state on disk", disk_ms), ("subscriber told", told_ms)):
        for share in (0.5, 0.99):
            rows.append(
                Row(
                    f"exit → {what}, p{share * 100:g}",
                    f"{count} exits",
                    percentile(values, share),
                    "ms",
                    percentile(bare_ms, share),
                    "pidfd, waitpid, write + fsync",
                    at_most(TOLD_P99_MS, "ms") if what == "subscriber told" and share > 0.5 else None,
                )
            )
    return rows


def one_exit(
    session: Session, clock: Clock, place: int, until: Callable[[], None] = lambda: None
) -> tuple[float, float]:
    """Milliseconds until the final state has its name, and until the client has read of it. ``until`` waits first."""
    session.start(program(), "stamp", clock.path, str(place), str(place % 256))
    with session.link() as link:
        watch = moved_to(session.folder)
        link.follow(0)
        while not any(kind == b"P" for kind, _ in link.frames(5)):
            continue
        poll = select.poll()
        poll.register(watch, select.POLLIN)
        poll.register(link.fileno(), select.POLLIN)
        until()
        link.send(b"I", b"x")
        seen_ns: dict[str, int] = {}
        while "told" not in seen_ns:
            ready = poll.poll(PATIENCE_MS)
            now_ns = time.monotonic_ns()
            if not ready:
                raise TimeoutError("no word of the exit")
            for fd, _ in ready:
                if fd == watch:
                    if files.STATE.encode() in os.read(watch, 4096):
                        seen_ns.setdefault("disk", now_ns)
                elif exit_event(link.frames(0)):
                    seen_ns["told"] = now_ns
        seen_ns.setdefault("disk", seen_ns["told"])
        os.close(watch)
    session.wait_for_keeper_to_leave()
    return (seen_ns["disk"] - clock[place]) / 1e6, (seen_ns["told"] - clock[place]) / 1e6


def one_bare_exit(stage: Stage, clock: Clock, place: int) -> float:
    """The least that a parent must do: hear of the exit, collect it, write one file and force it to the disk."""
    agent = subprocess.Popen(
        [program(), "stamp", clock.path, str(place), "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert agent.stdin is not None
    assert agent.stdout is not None
    agent.stdout.read(1)
    pidfd = os.pidfd_open(agent.pid)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    agent.stdin.write(b"x")
    agent.stdin.flush()
    poll.poll(PATIENCE_MS)
    _, status = os.waitpid(agent.pid, 0)
    fd = os.open(os.path.join(stage.folder, f"bare-{place}"), os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(fd, b"%d\n" % status)
    os.fsync(fd)
    took_ms = (time.monotonic_ns() - clock[place]) / 1e6
    os.close(fd)
    os.close(pidfd)
    agent.returncode = -signal.SIGKILL  # collected above
    agent.stdin.close()
    agent.stdout.close()
    return took_ms


def moved_to(folder: str) -> int:
    """An inotify descriptor that tells of names that appear in ``folder`` by a rename."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = int(libc.inotify_init1(os.O_CLOEXEC))
    if fd < 0 or libc.inotify_add_watch(fd, os.fsencode(folder), IN_MOVED_TO) < 0:
        raise OSError(ctypes.get_errno(), "inotify")
    return fd
