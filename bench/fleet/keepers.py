"""A thousand keepers under two hubs and one PostgreSQL: listing, the hubs' memory and time, statements while idle.

Pods are plain processes here (``process_hub.py``). The agents sleep; the anchor of a listing is ``kubectl get pods``
where a cluster was measured in the same run.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.hub import rss_mb
from bench.stage import Stage, cpu_s, percentile, program, wait_until
from bench.table import Row, at_most
from hitchpost.hub import client as hub_client
from tests import warm
from tests.postgres import SUPERUSER, Server, own_server
from tests.undisturbed import ended_by

HUBS = 2
STARTS, ENDS = 4, 20
SETTLE_S, IDLE_S = 10.0, 20.0
LISTINGS = 100
AUTHORITY = "authority"
COMES_UP_S = 5.0
SPARE_KB = 1500 << 10
TABLE, SHAPES = "/api/sessions/table", "/api/sessions"
"""What ``hitch ps`` asks for, and what the page does."""
ANCHOR = "kubectl get pods -o json"
STATEMENT = re.compile(r"LOG:  (?:statement|execute [^:]*): (.*)")


@dataclass(slots=True)
class Hub:
    home: str
    process: subprocess.Popen[bytes]

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return hub_client.ask(self.home, method, path, body)


@contextmanager
def hubs(stage: Stage, server: Server, database: str, count: int = HUBS) -> Iterator[list[Hub]]:
    """Each with a home of its own. The pods end last, all at once."""
    pods = Path(stage.folder, "pods")
    config = Path(stage.folder, "config.toml")
    config.write_text("sessions_max = 100000\nreap_idle_minutes = 0\n")
    made: list[Hub] = []

    def end() -> None:
        for hub in made:
            if hub.process.poll() is None:
                hub.process.terminate()
        for hub in made:
            hub.process.wait()
        end_pods(pods)

    with ended_by(end), told_when_it_fails(stage, made):
        for number in range(count):
            home = os.path.join(stage.folder, f"hub{number}")
            os.mkdir(home, 0o700)
            env = {**os.environ, "HITCHPOST_HOME": home, "HITCHPOST_CONFIG": str(config)}
            env["HITCHPOST_FLEET"] = server.address(database)
            with open(os.path.join(stage.folder, f"hub{number}.log"), "wb") as log:
                argv = [sys.executable, "-m", "bench.fleet.process_hub", str(pods), "127.0.0.1", "0"]
                process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                made.append(Hub(home, process))
            wait_until(lambda home=home: os.path.exists(os.path.join(home, hub_client.FILE)), "a hub")  # type: ignore[misc]
        yield made


@contextmanager
def told_when_it_fails(stage: Stage, made: list[Hub]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for number in range(len(made)):
            tell_end_of_log(os.path.join(stage.folder, f"hub{number}.log"))
        raise


def tell_end_of_log(path: str) -> None:
    with open(path) as file:
        lines = [line for line in file if '"level": "info"' not in line]
    print("".join(lines[-10:]), file=sys.stderr, flush=True)


def end_pods(folder: Path) -> None:
    """Those of hubs that have ended. A pod whose start was cut off says itself, a moment later, which process it is."""
    if not folder.is_dir():
        return
    pids = [pid for path in folder.iterdir() if path.name != AUTHORITY and (pid := pid_of(path))]
    for start in range(0, len(pids), ENDS):
        part = pids[start : start + ENDS]
        for pid in part:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        wait_until(lambda part=part: not any(map(_is_there, part)), "the end of pods", 600)  # type: ignore[misc]


def pid_of(pod: Path) -> int:
    """0 when there is none."""
    deadline = time.monotonic() + COMES_UP_S
    while time.monotonic() < deadline:
        try:
            return int((pod / "pid").read_text())
        except (FileNotFoundError, ValueError):
            pass
        try:
            return int(json.loads((pod / "home/address.json").read_bytes())["pid"])
        except (FileNotFoundError, ValueError):
            time.sleep(0.05)
    return 0


def _is_there(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def begin(hubs: list[Hub], count: int, name: str = "s") -> None:
    """So many sessions more, in turns at both hubs."""

    def run(number: int) -> None:
        check_memory()
        order = {"command": [program(), "sleep"], "folder": "/", "runtime": "pod", "name": f"{name}{number}"}
        hubs[number % len(hubs)].ask("POST", "/api/sessions", order)

    with ThreadPoolExecutor(STARTS) as pool:
        list(pool.map(run, range(count)))


def check_memory() -> None:
    """A machine that has no more of it would end processes of others."""
    with open("/proc/meminfo") as file:
        found = {line.split(":")[0]: int(line.split()[1]) for line in file}
    if found["MemAvailable"] < SPARE_KB:
        raise MemoryError(f"only {found['MemAvailable'] >> 10} MB of memory are left")


def settled(hubs: list[Hub], count: int) -> None:
    """Until every hub shows all of them running, and has a link to each."""

    def is_so() -> bool:
        for hub in hubs:
            shown = hub.ask("GET", "/api/sessions")
            if sum(each["status"] in ("running", "quiet") for each in shown) < count:
                return False
        return True

    deadline = time.monotonic() + 300
    while not is_so():
        if time.monotonic() > deadline:
            shown = hubs[-1].ask("GET", "/api/sessions")
            raise TimeoutError(f"not all are running: {sorted({each['label'] for each in shown})}")
        time.sleep(0.5)


@dataclass(slots=True)
class Idle:
    """What a while without any work costs."""

    seconds: float
    statements: list[str]
    cpu_s: list[float]

    @property
    def per_s(self) -> float:
        return len(self.statements) / self.seconds


def idle(server: Server, hubs: list[Hub], seconds: float) -> Idle:
    log = server.folder / "log"
    with server.connect(SUPERUSER) as asking:
        asking.execute("alter system set log_statement = 'all'")
        asking.execute("select pg_reload_conf()")
    time.sleep(1.0)
    start, began = log.stat().st_size, time.monotonic()
    used = [cpu_s(hub.process.pid) for hub in hubs]
    time.sleep(seconds)
    used = [cpu_s(hub.process.pid) - before for hub, before in zip(hubs, used, strict=True)]
    took_s = time.monotonic() - began
    with open(log, "rb") as file:
        file.seek(start)
        lines = file.read().decode("utf-8", "replace").splitlines()
    with server.connect(SUPERUSER) as asking:
        asking.execute("alter system reset log_statement")
        asking.execute("select pg_reload_conf()")
    return Idle(took_s, [found.group(1) for line in lines if (found := STATEMENT.search(line))], used)


def listings(hub: Hub, path: str, count: int) -> list[float]:
    """From the request to the last byte of the answer."""
    took = []
    for _ in range(count):
        with hub_client.connect(hub.home, 60) as peer:
            began = time.perf_counter()
            peer.sendall(f"GET {path} HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n".encode())
            first = peer.recv(1 << 20)
            assert first.startswith(b"HTTP/1.1 200"), first[:200]
            while peer.recv(1 << 20):
                pass
            took.append((time.perf_counter() - began) * 1000)
    return took


def listed(hubs: list[Hub], path: str, count: int, idle: Idle) -> tuple[dict[float, float], float]:
    """Percentiles at the slower hub, and the processor time that one listing takes beside what an idle hub does: that
    is the same on a machine that others use, too."""
    shares: dict[float, float] = {0.5: 0.0, 0.99: 0.0}
    spent_ms = 0.0
    for hub, idle_s in zip(hubs, idle.cpu_s, strict=True):
        used, began = cpu_s(hub.process.pid), time.monotonic()
        took = listings(hub, path, count)
        anyway_s = idle_s / idle.seconds * (time.monotonic() - began)
        spent_ms = max(spent_ms, (cpu_s(hub.process.pid) - used - anyway_s) * 1000 / count)
        shares = {share: max(worst, percentile(took, share)) for share, worst in shares.items()}
    return shares, spent_ms


def connections(server: Server, database: str) -> int:
    with server.connect(SUPERUSER) as asking:
        row = asking.execute("select count(*) from pg_stat_activity where datname = %s", (database,)).fetchone()
    assert row is not None
    return int(row[0])


def stored_bytes(server: Server, database: str) -> int:
    with server.connect(SUPERUSER, database) as asking:
        row = asking.execute("select pg_database_size(current_database())").fetchone()
    assert row is not None
    return int(row[0])


def measure(*, quick: bool, anchor_ms: float | None = None, counts: tuple[int, ...] = (100, 300, 1000)) -> list[Row]:
    counts = (4,) if quick else counts
    warm.share()
    with (
        Stage(quick=quick) as stage,
        own_server() as server,
        server.fresh() as database,
        hubs(stage, server, database) as made,
    ):
        return grown(server, database, made, counts, quick=quick, anchor_ms=anchor_ms)


def grown(
    server: Server,
    database: str,
    made: list[Hub],
    counts: tuple[int, ...],
    *,
    quick: bool,
    anchor_ms: float | None,
) -> list[Row]:
    """The same figures with more and more keepers, and what each of them adds."""
    rows: list[Row] = []
    begun, empty_mb, empty = 0, max(rss_mb(hub.process.pid) for hub in made), stored_bytes(server, database)
    for count in counts:
        began = time.monotonic()
        try:
            begin(made, count - begun, f"s{count}-")
        except MemoryError as error:
            print(f"bench: {count} keepers are not measured: {error}", file=sys.stderr, flush=True)
            break
        starts_s = time.monotonic() - began
        settled(made, count)
        print(f"bench: {count - begun} started in {starts_s:.0f} s", file=sys.stderr, flush=True)
        rows += figures(server, database, made, count, quick=quick, anchor_ms=anchor_ms)
        rows.append(
            Row("sessions started per second", f"{count - begun} more keepers, {STARTS} at once",
                (count - begun) / starts_s, "/s")
        )  # fmt: skip
        begun = count
    most_mb = max(rss_mb(hub.process.pid) for hub in made)
    sample = f"{begun} keepers"
    return [
        *rows,
        Row("memory of a hub for each session", sample, (most_mb - empty_mb) * 1000 / begun, "kB"),
        Row(
            "PostgreSQL's disk for each session", sample, (stored_bytes(server, database) - empty) / begun / 1000, "kB"
        ),
    ]


def figures(
    server: Server,
    database: str,
    made: list[Hub],
    count: int,
    *,
    quick: bool,
    anchor_ms: float | None,
    what: str = "keepers",
) -> list[Row]:
    """Of hubs that have so many sessions, and nothing to do."""
    sample = f"{count} {what}, {len(made)} hubs"
    time.sleep(1.0 if quick else SETTLE_S)
    found = idle(server, made, 2.0 if quick else IDLE_S)
    tell(found)
    count_of = 10 if quick else LISTINGS
    table, table_cpu_ms = listed(made, TABLE, count_of, found)
    shapes, shapes_cpu_ms = listed(made, SHAPES, count_of, found)
    memory = max(rss_mb(hub.process.pid) for hub in made)
    limits = (at_most(100, "ms"), at_most(300, "MB"), at_most(50, "/s"))
    return [
        Row("hitch ps at the slower hub, p50", sample, table[0.5], "ms", anchor_ms, ANCHOR),
        Row("hitch ps at the slower hub, p99", sample, table[0.99], "ms", None, "", limits[0]),
        Row("hitch ps, processor time of the hub", sample, table_cpu_ms, "ms"),
        Row("all sessions as JSON, processor time of the hub", sample, shapes_cpu_ms, "ms"),
        Row("all sessions as JSON at the slower hub, p50", sample, shapes[0.5], "ms", anchor_ms, ANCHOR),
        Row("all sessions as JSON at the slower hub, p99", sample, shapes[0.99], "ms", None, "", limits[0]),
        Row("memory of the larger hub", sample, memory, "MB", None, "", limits[1]),
        Row("statements at PostgreSQL while idle", sample, found.per_s, "/s", None, "", limits[2]),
        Row("processor of the busier hub while idle", sample, max(found.cpu_s) / found.seconds * 100, "%"),
        Row("connections to PostgreSQL", sample, connections(server, database), ""),
    ]


def tell(found: Idle) -> None:
    """Which statements they were, the most frequent first."""
    from collections import Counter

    kinds = Counter(statement[:70] for statement in found.statements)
    for statement, count in kinds.most_common(8):
        print(f"bench:   {count / found.seconds:6.1f}/s {statement}", file=sys.stderr, flush=True)
