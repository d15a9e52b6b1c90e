"""Being told: from the end of a run, and from what an agent reports, until the message is at its receiver.

The dwell is 0 here: it is a wait that people want, and comes on top. The receiver is on loopback: what a push service
or a phone adds is not ours.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

from bench.stage import percentile, wait_until
from bench.table import Row, at_most
from hitchpost.hub import client as hub_client
from hitchpost.notify import push_crypto

KEEPER_WRITES_EVERY_S = 0.1
"""A report that comes sooner after the last one waits for it: that would be measured, and not how people are told."""
SESSION = """
import os, sys
for line in open(sys.argv[1]):
    os.write(1, f"\\033]7501;state={line.strip()}\\a".encode())
"""

ANCHOR = """
import http.client, os, sys
log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
for line in sys.stdin:
    os.write(log, b"begun\\n")
    os.fdatasync(log)
    link = http.client.HTTPConnection(sys.argv[1])
    link.request("POST", "/anchor", b"x" * 300)
    link.getresponse().read()
    link.close()
"""
"""The least that it takes: a process that waits is told, writes a line through to the disk, and sends a request."""


@contextmanager
def receiver() -> Iterator[tuple[str, queue.Queue[tuple[str, float]]]]:
    """An address, and what comes there: the path, and when it was there whole."""
    got: queue.Queue[tuple[str, float]] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            got.put((self.path, time.perf_counter()))
            self.send_response(201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def served(host: str) -> Iterator[tuple[str, dict[str, str]]]:
    """A hub that tells at once: the home, and the environment for commands."""
    with tempfile.TemporaryDirectory(prefix="hp-bench-") as folder:
        home, config = os.path.join(folder, "home"), os.path.join(folder, "config.toml")
        Path(config).write_text(
            f'[notify]\ndwell_s = 0\ngroup_s = 0\ncooldown_s = 0\nwebhook_url = "http://{host}/hook"\n'
            f'webhook_secret = "secret"\npush_hosts = ["{host}"]\n'
        )
        environment = {**os.environ, "HITCHPOST_HOME": home, "HITCHPOST_CONFIG": config}
        argv = [sys.executable, "-m", "hitchpost.hub", "127.0.0.1", "0"]
        process = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: os.path.exists(os.path.join(home, hub_client.FILE)), "the hub")
            wait_until(lambda: answers(home), "the hub")
            yield home, environment
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def answers(home: str) -> bool:
    try:
        return bool(hub_client.ask(home, "GET", "/api/health")["ok"])
    except hub_client.NoHub:
        return False


def subscribe(home: str, host: str) -> None:
    keys = {"p256dh": push_crypto.public_key(push_crypto.new_key()), "auth": push_crypto.to_base64url(os.urandom(16))}
    body = {"endpoint": f"http://{host}/push", "keys": keys}
    hub_client.ask(home, "GET", "/api/notifications")  # its key is made, as a page would have it
    hub_client.ask(home, "POST", "/api/notifications/subscriptions", body)


def hitch(environment: dict[str, str], *words: str) -> None:
    argv = [sys.executable, "-m", "hitchpost", *words]
    subprocess.run(argv, env=environment, check=False, capture_output=True, cwd=environment["HITCHPOST_HOME"])


@contextmanager
def anchored(host: str, folder: str) -> Iterator[IO[str]]:
    argv = [sys.executable, "-u", "-c", ANCHOR, host, os.path.join(folder, "anchor.log")]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, text=True, bufsize=1)
    assert process.stdin is not None
    with process.stdin as orders:
        yield orders
    process.wait()


def arrivals(got: queue.Queue[tuple[str, float]], began: float, count: int = 2) -> dict[str, float]:
    """Milliseconds until the message was at each receiver."""
    found: dict[str, float] = {}
    while len(found) < count:
        path, at = got.get(timeout=30)
        found[path] = (at - began) * 1000
    return found


def measure(*, quick: bool) -> list[Row]:
    rounds = 5 if quick else 100
    ends: list[dict[str, float]] = []
    reports: list[dict[str, float]] = []
    least: list[float] = []
    with receiver() as (host, got), served(host) as (home, environment):
        subscribe(home, host)
        orders = os.path.join(home, "orders")
        os.mkfifo(orders)
        hitch(environment, "run", "--name", "talk", "--", sys.executable, "-c", SESSION, orders)
        with open(orders, "w", buffering=1) as order, anchored(host, home) as anchor:
            for _ in range(rounds):
                began = time.perf_counter()
                anchor.write("go\n")
                least.append(arrivals(got, began, 1)["/anchor"])
                began = time.perf_counter()
                order.write("blocked:kind=permission\n")
                reports.append(arrivals(got, began))
                order.write("working\n")
                wait_until(lambda: shape(home, "talk")["rank"] > 5, "it to work again")
                time.sleep(KEEPER_WRITES_EVERY_S)
        arrivals(got, 0.0)  # it ends well with its orders, and that is told, too
        for number in range(rounds):
            name = f"end{number}"
            hitch(environment, "run", "--name", name, "--", "sh", "-c", "read line; exit 3")
            wait_until(lambda name=name: shape(home, name)["state"] == "running", name)  # type: ignore[misc]
            pid = agent_pid(home, shape(home, name)["id"])
            began = time.perf_counter()
            os.kill(pid, signal.SIGKILL)
            ends.append(arrivals(got, began))
    rows = []
    for what, found in (("an agent asks", reports), ("an agent is killed", ends)):
        for path, name in (("/hook", "webhook"), ("/push", "Web Push, encrypted")):
            times = [one[path] for one in found]
            sample = f"{len(times)}, p50 {percentile(times, 0.5):.0f} ms"
            p99, floor, wanted = percentile(times, 0.99), percentile(least, 0.99), at_most(200, "ms")
            rows.append(Row(f"{what} → {name}, p99", sample, p99, "ms", floor, "a line synced and a bare POST", wanted))
    return rows


def shape(home: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = hub_client.ask(home, "GET", f"/api/sessions/{name}")
    return found


def agent_pid(home: str, session: str) -> int:
    path = Path(home, "sessions", session, "runs", "1", "run.json")
    return int(json.loads(path.read_bytes())["agent"]["pid"])
