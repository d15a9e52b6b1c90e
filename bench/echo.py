"""From a typed byte to its echo in the log and the follower told, alone and beside sessions that flood."""

from __future__ import annotations

import os
import pty
import time

from bench.stage import Session, Stage, percentile, program
from bench.table import Row, at_most
from hitchpost import wire
from hitchpost.terminal.output import Reader

P99_MS = 100.0
PAUSE_S = 0.005


def measure(*, quick: bool) -> list[Row]:
    count = 30 if quick else 500
    floods = (0, 4) if quick else (0, 4, 20)
    rows = []
    with Stage(quick=quick, log_cap_mib=4) as stage:
        session = stage.session(program(), "echo")
        session.start()
        started = 0
        for wanted in floods:
            for flood in stage.sessions(wanted - started, program(), "flood", "0"):
                with flood.link() as link:
                    link.send(wire.INPUT, b"g")
            started = wanted
            ours, bare = echoes_ms(session, count), bare_echoes_ms(count)
            beside = f"beside {wanted} floods" if wanted else "idle"
            for share in (0.5, 0.99):
                rows.append(
                    Row(
                        f"echo through the log, {beside}, p{share * 100:g}",
                        f"{count} bytes",
                        percentile(ours, share),
                        "ms",
                        percentile(bare, share),
                        "bare PTY",
                        at_most(P99_MS, "ms") if share > 0.5 else None,
                    )
                )
    return rows


def echoes_ms(session: Session, count: int) -> list[float]:
    took_ms = []
    with session.link() as link, Reader(os.path.join(session.run_folder, wire.OUTPUT)) as reader:
        while not link.closed and not reader.read().data:
            time.sleep(PAUSE_S)
        while reader.read().data:
            continue
        for number in range(count):
            byte = bytes([97 + number % 26])
            link.follow(reader.offset)
            began = time.perf_counter()
            link.send(wire.INPUT, byte)
            while not any(kind == wire.POKE for kind, _ in link.frames(30)):
                if link.closed:
                    raise RuntimeError("the keeper is gone")
            if reader.read().data != byte:
                raise RuntimeError("another byte came back")
            took_ms.append((time.perf_counter() - began) * 1000)
            time.sleep(PAUSE_S)
    return took_ms


def bare_echoes_ms(count: int) -> list[float]:
    pid, master = pty.fork()
    if pid == 0:
        os.execv(program(), [program(), "echo"])
    os.read(master, 1)
    took_ms = []
    for _ in range(count):
        began = time.perf_counter()
        os.write(master, b"x")
        os.read(master, 1)
        took_ms.append((time.perf_counter() - began) * 1000)
        time.sleep(PAUSE_S)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    os.close(master)
    return took_ms
