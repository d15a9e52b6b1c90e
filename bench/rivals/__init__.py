"""Other programs that bring a terminal to a WebSocket, measured beside the hub. They are installed for the run only."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import websockets

from bench.stage import cpu_s, percentile, program

HERE = Path(__file__).parent
MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    rate_mb_s: float
    cpu_s_per_100_mb: float
    echo_p50_ms: float


@contextmanager
def installed() -> Iterator[dict[str, list[str]]]:
    """The command that starts each rival that could be installed here."""
    folder = tempfile.mkdtemp(prefix="hitchpost-bench-")
    found: dict[str, list[str]] = {}
    try:
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        venv = os.path.join(folder, "venv")
        python = os.path.join(venv, "bin", "python")
        subprocess.run([sys.executable, "-m", "venv", venv], check=True, **quiet)
        if subprocess.run([python, "-m", "pip", "install", "terminado==0.18.1"], **quiet).returncode == 0:
            found["terminado"] = [python, str(HERE / "terminado_server.py")]
        if shutil.which("npm") is not None:
            shutil.copy(HERE / "node_server.js", folder)
            done = subprocess.run(["npm", "install", "--prefix", folder, "node-pty@1.1.0", "ws@8"], **quiet)
            if done.returncode == 0:
                found["node-pty + ws"] = ["node", os.path.join(folder, "node_server.js")]
        if (ttyd := shutil.which("ttyd")) is not None:
            found["ttyd"] = [ttyd]
        yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measured(name: str, command: list[str], size: int, expected: int, echoes: int) -> Figures:
    rate, busy = asyncio.run(_flood(name, command, size, expected))
    return Figures(rate, busy, asyncio.run(_echo(name, command, echoes)))


@contextmanager
def _served(name: str, command: list[str], *words: str) -> Iterator[tuple[int, str]]:
    """The server's process, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if name == "ttyd":
        argv = [*command, "-W", "-p", str(port), "-i", "127.0.0.1", program(), *words]
    else:
        argv = [*command, str(port), program(), *words]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        if name != "ttyd":
            assert process.stdout is not None
            process.stdout.readline()
        yield process.pid, f"ws://127.0.0.1:{port}/ws"
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _typed(name: str, text: str) -> str | bytes:
    if name == "terminado":
        return json.dumps(["stdin", text])
    return b"0" + text.encode() if name == "ttyd" else text


def _shown(name: str, message: str | bytes) -> bytes:
    if name == "terminado":
        value = json.loads(message)
        return value[1].encode() if value[0] == "stdout" else b""
    data = message if isinstance(message, bytes) else message.encode()
    return data[1:] if name == "ttyd" and data[:1] == b"0" else b"" if name == "ttyd" else data


async def _connected(name: str, address: str) -> Any:
    for _ in range(200):
        try:
            options: dict[str, Any] = {"subprotocols": ["tty"]} if name == "ttyd" else {}
            made = await websockets.connect(address, max_size=None, compression=None, **options)
            break
        except OSError:
            await asyncio.sleep(0.02)
    if name == "ttyd":
        await made.send(json.dumps({"AuthToken": "", "columns": 80, "rows": 24}).encode())
    return made


async def _flood(name: str, command: list[str], size: int, expected: int) -> tuple[float, float]:
    with _served(name, command, "flood", str(size)) as (pid, address):
        connection = await _connected(name, address)
        seen = 0
        while not seen:
            seen += len(_shown(name, await connection.recv()))
        seen, busy_s, began = 0, cpu_s(pid), time.perf_counter()
        await connection.send(_typed(name, "g"))
        while seen < expected - 1:
            seen += len(_shown(name, await connection.recv()))
        took_s, busy_s = time.perf_counter() - began, cpu_s(pid) - busy_s
        await connection.close()
    return expected / took_s / MB, busy_s * 100 * MB / expected


async def _echo(name: str, command: list[str], count: int) -> float:
    with _served(name, command, "echo") as (_, address):
        connection = await _connected(name, address)
        took_ms = []
        for number in range(count):
            byte = chr(97 + number % 26)
            began = time.perf_counter()
            await connection.send(_typed(name, byte))
            while byte.encode() not in _shown(name, await connection.recv()):
                pass
            took_ms.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(0.002)
        await connection.close()
    return percentile(took_ms, 0.5)
