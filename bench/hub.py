"""The hub: from a terminal to a WebSocket client, crashes told, runs resumed, sessions adopted, stalled clients."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import websockets

from bench import rivals
from bench.exits import Clock, one_bare_exit
from bench.flood import LINE, MB, through_c
from bench.stage import Session, Stage, cpu_s, median, percentile, program, wait_until
from bench.table import Row, at_least_share, at_most, at_most_times
from hitchpost.hub import client as hub_client
from hitchpost.system.shortpath import ShortPath

OUTPUT = 1
STALLED_CLIENTS = 50


def measure(*, quick: bool) -> list[Row]:
    rows = []
    with Stage(quick=quick) as stage:
        rows += adopted(stage, 5 if quick else 100)
        with hub(stage) as process:
            rows += asyncio.run(floods(stage, process, 8 * MB if quick else 200 * MB, 1 if quick else 3))
            rows += asyncio.run(echoes(stage, 30 if quick else 300, (0, 2) if quick else (0, 1, 10, 20)))
            rows += asyncio.run(crashes(stage, 5 if quick else 100))
            rows += asyncio.run(resumes(stage, 5 if quick else 50))
            rows += asyncio.run(stalled(stage, process, 20 * MB if quick else 400 * MB))
            rows += asyncio.run(reconnects(stage, 20 if quick else 500))
    return rows if quick else rows + beside_rivals(rows)


def beside_rivals(ours: list[Row]) -> list[Row]:
    """The same flood and the same echo through other programs, each figure beside ours."""
    size = 100 * MB // LINE * LINE
    expected = size + size // LINE
    mine = {row.what: row.ours for row in ours}
    rows = []
    with rivals.installed() as commands:
        for name, command in commands.items():
            try:
                theirs = rivals.measured(name, command, size, expected, 200)
            except (OSError, websockets.WebSocketException, AssertionError) as error:
                print(f"bench: {name} could not be measured: {error!r}", file=sys.stderr)
                continue
            for what, figure, unit, limit in (
                ("flood → WebSocket, bytes sent", theirs.rate_mb_s, "MB/s", at_least_share(1.0)),
                ("CPU of keeper and hub per 100 MB of flood", theirs.cpu_s_per_100_mb, "s", at_most_times(1.5)),
                ("echo through the hub, idle, p50", theirs.echo_p50_ms, "ms", at_most_times(3)),
            ):
                # the others keep no log: they are here to be seen, ttyd to be matched
                wanted = limit if name == "ttyd" else None
                rows.append(Row(what, f"beside {name}", mine[what], unit, figure, name, wanted))
    return rows


@contextmanager
def hub(stage: Stage) -> Iterator[subprocess.Popen[bytes]]:
    log = os.open(os.path.join(stage.folder, "hub.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    argv = [sys.executable, "-m", "hitchpost.hub", "127.0.0.1", "0"]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    os.close(log)
    try:
        wait_until(lambda: os.path.exists(os.path.join(stage.home, hub_client.FILE)), "the hub")
        yield process
    finally:
        process.terminate()
        process.wait()


@asynccontextmanager
async def client(stage: Stage) -> AsyncIterator[Any]:
    with ShortPath(stage.home, hub_client.SOCKET) as path:
        made = await websockets.unix_connect(path, "ws://hub/ws", max_size=None, compression=None)
    try:
        yield made
    finally:
        await made.close()


async def say(connection: Any, kind: str, **fields: Any) -> None:
    await connection.send(json.dumps({"type": kind, **fields}))


async def event(connection: Any, kind: str, session: str) -> dict[str, Any]:
    while True:
        message = await connection.recv()
        if isinstance(message, str):
            told: dict[str, Any] = json.loads(message)
            if told["type"] == kind and told.get("sessionId") == session:
                return told


async def attached(connection: Any, session: Session) -> None:
    """Once the hub knows the session."""
    while True:
        await say(connection, "session.attach", sessionId=session.id)
        while True:
            message = await connection.recv()
            if isinstance(message, str):
                kind = json.loads(message)["type"]
                if kind == "session.attached":
                    return
                if kind == "error":
                    break


async def floods(stage: Stage, process: subprocess.Popen[bytes], size: int, rounds: int) -> list[Row]:
    size = size // LINE * LINE
    expected = size + size // LINE
    rates, shares, drains, busy, drain_busy = [], [], [], [], []
    for _ in range(rounds):
        wall_s, busy_s = through_c(size, expected)
        drains.append(expected / wall_s / MB)
        drain_busy.append(busy_s * 100 * MB / expected)
        session = stage.session(program(), "flood", str(size))
        session.start()
        async with client(stage) as connection:
            await attached(connection, session)
            used_s, began = cpu_s(process.pid) + cpu_s(session.keeper()), time.perf_counter()
            await say(connection, "terminal.input", sessionId=session.id, data="g")
            reached = delivered = 0
            while reached < expected:
                message = await connection.recv()
                if isinstance(message, bytes):
                    offset = int.from_bytes(message[5:13], "big")
                    is_output = message[0] == OUTPUT
                    reached = offset + (len(message) - 13 if is_output else 0)
                    delivered += len(message) - 13 if is_output else 0
            took_s = time.perf_counter() - began
            used_s = cpu_s(process.pid) + cpu_s(session.keeper()) - used_s
        rates.append(delivered / took_s / MB)
        shares.append(expected / took_s / MB)
        busy.append(used_s * 100 * MB / expected)
        session.stop()
    sample = f"median of {rounds} × {size // MB} MB"
    return [
        Row("flood → WebSocket, its end on the screen", sample, median(shares), "MB/s", median(drains), "C drain",
            at_least_share(0.7)),
        Row("flood → WebSocket, bytes sent", sample, median(rates), "MB/s", median(drains), "C drain"),
        Row("CPU of keeper and hub per 100 MB of flood", sample, median(busy), "s", median(drain_busy), "C drain"),
    ]  # fmt: skip


async def echoes(stage: Stage, count: int, beside: tuple[int, ...]) -> list[Row]:
    rows = []
    quiet = stage.session(program(), "echo")
    quiet.start()
    running: list[Session] = []
    async with client(stage) as connection:
        await attached(connection, quiet)
        for wanted in beside:
            for flood in stage.sessions(wanted - len(running), program(), "flood", "0"):
                running.append(flood)
                with flood.link() as link:
                    link.send(b"I", b"g")
            took_ms = []
            for number in range(count):
                byte = chr(97 + number % 26)
                began = time.perf_counter()
                await say(connection, "terminal.input", sessionId=quiet.id, data=byte)
                while True:
                    message = await connection.recv()
                    if isinstance(message, bytes) and byte.encode() in message[13:]:
                        break
                took_ms.append((time.perf_counter() - began) * 1000)
                await asyncio.sleep(0.002)
            words = f"beside {wanted} floods" if wanted else "idle"
            for share in (0.5, 0.99):
                limit = at_most(100, "ms") if share > 0.5 else None
                what = f"echo through the hub, {words}, p{share * 100:g}"
                rows.append(Row(what, f"{count} bytes", percentile(took_ms, share), "ms", None, "", limit))
    for session in (quiet, *running):
        session.stop()
    return rows


async def crashes(stage: Stage, count: int) -> list[Row]:
    """Beside what a parent must do at least: hear of an exit, collect it, write a file and force it to the disk."""
    took_ms, bare_ms = [], []
    clock = Clock(os.path.join(stage.folder, "crash-clock"), count)
    async with client(stage) as connection:
        for number in range(count):
            session = stage.session(program(), "sleep")
            session.start()
            pid = agent(session)
            await event(connection, "session.status", session.id)
            began = time.perf_counter()
            os.kill(pid, signal.SIGKILL)
            await event(connection, "terminal.exit", session.id)
            took_ms.append((time.perf_counter() - began) * 1000)
            bare_ms.append(one_bare_exit(stage, clock, number))
    clock.close()
    return [
        Row(f"crash → client told, p{share * 100:g}", f"{count} crashes", percentile(took_ms, share), "ms",
            percentile(bare_ms, share), "pidfd, waitpid, write + fsync", at_most(20, "ms") if share > 0.5 else None)
        for share in (0.5, 0.99)
    ]  # fmt: skip


async def resumes(stage: Stage, count: int) -> list[Row]:
    session = stage.session("sh", "-c", "echo hello; read x")
    session.start()
    took_ms = []
    async with client(stage) as connection:
        await attached(connection, session)
        for _ in range(count):
            await say(connection, "terminal.input", sessionId=session.id, data="\r")
            await event(connection, "terminal.exit", session.id)
            began = time.perf_counter()
            await say(connection, "session.resume", sessionId=session.id)
            await event(connection, "session.attached", session.id)
            while True:
                message = await connection.recv()
                if isinstance(message, bytes) and b"hello" in message:
                    break
            took_ms.append((time.perf_counter() - began) * 1000)
    session.run += count
    session.stop()
    return [
        Row(f"resume → first output at the client, p{share * 100:g}", f"{count} times", percentile(took_ms, share),
            "ms", None, "", at_most(300, "ms") if share > 0.5 else None)
        for share in (0.5, 0.99)
    ]  # fmt: skip


async def stalled(stage: Stage, process: subprocess.Popen[bytes], size: int) -> list[Row]:
    """Clients that attach and read no more, while the session floods."""
    session = stage.session(program(), "flood", str(size // LINE * LINE))
    session.start()
    made = []
    for _ in range(STALLED_CLIENTS):
        with ShortPath(stage.home, hub_client.SOCKET) as path:
            stuck = await websockets.unix_connect(path, "ws://hub/ws", max_size=None, max_queue=1, compression=None)
        await attached(stuck, session)
        stuck.transport.pause_reading()
        made.append(stuck)
    async with client(stage) as connection:
        await attached(connection, session)
        await say(connection, "terminal.input", sessionId=session.id, data="g")
        expected = size // LINE * LINE
        reached = most_mb = 0.0
        while reached < expected:
            message = await connection.recv()
            if isinstance(message, bytes):
                reached = int.from_bytes(message[5:13], "big") + len(message) - 13
                most_mb = max(most_mb, rss_mb(process.pid))
    for connection in made:
        connection.transport.abort()
    session.stop()
    sample = f"{STALLED_CLIENTS} stalled clients, {size // MB} MB flood"
    return [Row("memory of the hub, most", sample, most_mb, "MB", None, "", at_most(150, "MB"))]


async def reconnects(stage: Stage, count: int) -> list[Row]:
    """All clients come back at once and want the screen of a session that is full of text."""
    session = stage.session("sh", "-c", "seq 20000; echo done; read x")
    session.start()

    async def reconnect() -> None:
        async with client(stage) as connection:
            await attached(connection, session)
            seen = b""
            while b"done" not in seen:
                message = await connection.recv()
                seen += message[13:] if isinstance(message, bytes) else b""

    await reconnect()
    began = time.perf_counter()
    await asyncio.gather(*(reconnect() for _ in range(count)))
    took_s = time.perf_counter() - began
    session.stop()
    return [Row("reconnected, with the screen", f"{count} clients at once", took_s, "s", None, "", None)]


def adopted(stage: Stage, count: int) -> list[Row]:
    """How long until a hub that starts beside live sessions knows all of them."""
    sessions = stage.sessions(count, program(), "sleep")
    began = time.perf_counter()
    with hub(stage):
        took_s = time.perf_counter() - began
        if hub_client.ask(stage.home, "GET", "/api/health")["live"] < count:
            wait_until(lambda: hub_client.ask(stage.home, "GET", "/api/health")["live"] == count, "adoption")
            took_s = time.perf_counter() - began
    for session in sessions:
        session.stop()
    sample = f"{count} live sessions"
    return [
        Row("hub started, all sessions adopted", sample, took_s, "s", None, "", at_most(2, "s")),
        Row("sessions adopted per second", sample, count / adoption_s(stage), "/s", None, "", None),
    ]


def adoption_s(stage: Stage) -> float:
    """As the hub itself says in its log."""
    with open(os.path.join(stage.folder, "hub.log")) as file:
        return next(float(line["seconds"]) for line in map(json.loads, file) if line.get("event") == "adopted")


def agent(session: Session) -> int:
    with open(os.path.join(session.run_folder, "run.json")) as file:
        return int(json.load(file)["agent"]["pid"])


def rss_mb(pid: int) -> float:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MB
