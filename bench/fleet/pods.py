"""Sessions in real pods, beside ``kubectl run`` and ``kubectl exec`` on the same cluster, in turns.

The cluster is that of the tests: a control plane and two nodes on this machine, which share its cores with everything
else. So a ratio says more than a figure.
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import time
import tty
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import websockets

from bench.fleet.keepers import Hub, figures
from bench.hub import OUTPUT, event, say
from bench.stage import Stage, median, percentile, wait_until
from bench.table import Row, Wanted, at_least_share, at_most, at_most_times, exactly
from hitchpost.hub import client as hub_client
from hitchpost.system.shortpath import ShortPath
from tests.kube import images
from tests.kube.cluster import STORAGE, Cluster
from tests.postgres import Server, own_server
from tests.undisturbed import undisturbed

MB = 1_000_000
LINE = "0123456789abcdef" * 4
PROFILE = {"cpu": "10m", "cpu_limit": "2", "memory": "128Mi", "storage": "64Mi", "storage_class": STORAGE}
TOLD_S, CUT_S, MOVED_S = 0.1, 5.0, 3.0
STARTS = 4
DEAD = ("failed", "stopped", "completed", "orphaned")


@dataclass(frozen=True, slots=True)
class Session:
    id: str


class Fleet:
    """Two hubs over a cluster, and its ``kubectl``."""

    def __init__(self, stage: Stage, cluster: Cluster, server: Server, database: str, namespace: str) -> None:
        self.stage, self.cluster, self.server, self.database = stage, cluster, server, database
        self.namespace = namespace
        self.hubs: list[Hub] = []
        self._names = 0

    @contextmanager
    def opened(self, count: int = 2) -> Iterator[None]:
        config = Path(self.stage.folder, "config.toml")
        profile = "\n".join(f"{key} = {json.dumps(text)}" for key, text in PROFILE.items())
        place = f'namespace = "{self.namespace}"\nimage = "{images.HITCHPOST}"'
        config.write_text(
            f"sessions_max = 1000\nreap_idle_minutes = 0\n[fleet]\n{place}\n[fleet.profiles.default]\n{profile}\n"
        )
        try:
            for number in range(count):
                self._begin(number, config)
            yield
        finally:
            with undisturbed():
                for hub in self.hubs:
                    hub.process.terminate()
                for hub in self.hubs:
                    hub.process.wait()

    def _begin(self, number: int, config: Path) -> None:
        home = os.path.join(self.stage.folder, f"hub{number}")
        os.mkdir(home, 0o700)
        env = {**os.environ, "HITCHPOST_HOME": home, "HITCHPOST_CONFIG": str(config)}
        env |= {"HITCHPOST_FLEET": self.server.address(self.database), "KUBECONFIG": str(self.cluster.kubeconfig)}
        with open(os.path.join(self.stage.folder, f"hub{number}.log"), "wb") as log:
            argv = [sys.executable, "-m", "hitchpost.hub", "127.0.0.1", "0"]
            process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        hub = Hub(home, process)
        self.hubs.append(hub)
        wait_until(lambda: os.path.exists(os.path.join(home, hub_client.FILE)), "a hub")
        wait_until(lambda: not hub.ask("GET", "/api/health")["problems"], "the cluster")

    def run(self, script: str, hub: int = 0) -> Session:
        self._names += 1
        order = {"command": ["sh", "-c", script], "folder": "/", "runtime": "pod", "name": f"s{self._names}"}
        return Session(self.hubs[hub].ask("POST", "/api/sessions", order)["session"]["id"])

    def shape(self, session: Session, hub: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self.hubs[hub].ask("GET", f"/api/sessions/{session.id}")
        return found

    def act(self, session: Session, what: str, body: object = None, hub: int = 0) -> Any:
        return self.hubs[hub].ask("POST", f"/api/sessions/{session.id}/{what}", body or {})

    def remove(self, session: Session) -> None:
        self.act(session, "stop", {"grace_s": 0})
        self.hubs[0].ask("DELETE", f"/api/sessions/{session.id}")

    def kubectl(self, *words: str) -> list[str]:
        return [str(self.cluster.folder / "kubectl"), "-n", self.namespace, *words]

    @asynccontextmanager
    async def client(self, hub: int = 0) -> AsyncIterator[Any]:
        with ShortPath(self.hubs[hub].home, hub_client.SOCKET) as path:
            made = await websockets.unix_connect(path, "ws://hub/ws", max_size=None, compression=None)
        try:
            yield made
        finally:
            await made.close()


class Phases:
    """Follows the phases of pods with one ``kubectl get --watch``, so that nobody waits for a poll."""

    def __init__(self, fleet: Fleet) -> None:
        columns = "custom-columns=N:.metadata.name,P:.status.phase"
        self._kubectl = subprocess.Popen(
            fleet.kubectl("get", "pods", "--watch", "--no-headers", "-o", columns), stdout=subprocess.PIPE
        )

    def until(self, name: str, *phases: str) -> float:
        """When that pod was told to be in one of these phases."""
        assert self._kubectl.stdout is not None
        for line in self._kubectl.stdout:
            words = line.decode().split()
            if words[0] == name and words[1] in phases:
                return time.perf_counter()
        raise RuntimeError("kubectl get --watch has ended")

    def close(self) -> None:
        self._kubectl.kill()
        self._kubectl.wait()
        assert self._kubectl.stdout is not None
        self._kubectl.stdout.close()


def kubectl_run(fleet: Fleet, phases: Phases, name: str) -> float:
    """Seconds until a pod with the same image is told to be running."""
    began = time.perf_counter()
    words = ("run", name, f"--image={images.HITCHPOST}", "--restart=Never", "--", "sleep", "100000")
    subprocess.run(fleet.kubectl(*words), check=True, capture_output=True)
    return phases.until(name, "Running") - began


def kubectl_delete(fleet: Fleet, name: str) -> None:
    subprocess.run(
        fleet.kubectl("delete", "pod", name, "--grace-period=0", "--force", "--wait=false"),
        check=True,
        capture_output=True,
    )


async def attached(connection: Any, session: Session) -> None:
    await say(connection, "session.attach", sessionId=session.id)
    await event(connection, "session.attached", session.id)


async def until_shown(connection: Any, text: bytes) -> None:
    seen = b""
    while text not in seen:
        message = await connection.recv()
        if isinstance(message, bytes):
            seen = seen[-len(text) :] + message[13:]


# figures --------------------------------------------------------------------------------------------------------------


def starts(fleet: Fleet, count: int) -> tuple[list[Row], float]:
    async def ours() -> float:
        async with fleet.client() as connection:
            began = time.perf_counter()
            session = await asyncio.to_thread(fleet.run, "echo hello; exec sleep 100000")
            await attached(connection, session)
            await until_shown(connection, b"hello")
            took_s = time.perf_counter() - began
        await asyncio.to_thread(fleet.remove, session)
        return took_s

    phases = Phases(fleet)
    mine, theirs = [], []
    try:
        for number in range(count):
            theirs.append(kubectl_run(fleet, phases, f"start{number}"))
            mine.append(asyncio.run(ours()))
            kubectl_delete(fleet, f"start{number}")
    finally:
        phases.close()
    anchor = median(theirs)
    row = Row("start → first output in a pod", f"median of {count}", median(mine), "s", anchor, "kubectl run → Running",
              at_most_times(1.5))  # fmt: skip
    return [row], anchor


def echoes(fleet: Fleet, count: int) -> list[Row]:
    session = fleet.run("stty raw -echo; echo ready; exec cat")

    async def ours() -> list[float]:
        took_ms = []
        async with fleet.client() as connection:
            await attached(connection, session)
            await until_shown(connection, b"ready")
            for number in range(count):
                byte = chr(97 + number % 26)
                began = time.perf_counter()
                await say(connection, "terminal.input", sessionId=session.id, data=byte)
                await until_shown(connection, byte.encode())
                took_ms.append((time.perf_counter() - began) * 1000)
        return took_ms

    words = fleet.kubectl("exec", "-i", f"hitch-{session.id}", "--", "cat")
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as kubectl:
        assert kubectl.stdin is not None
        assert kubectl.stdout is not None
        theirs = []
        for number in range(count + 1):
            byte = bytes([97 + number % 26])
            began = time.perf_counter()
            kubectl.stdin.write(byte)
            assert kubectl.stdout.read(1) == byte
            theirs.append((time.perf_counter() - began) * 1000)
        kubectl.kill()
    mine = asyncio.run(ours())
    fleet.remove(session)
    anchor = median(theirs[1:])  # the first one waits for kubectl
    both = Wanted("≤ 3 ms and ≤ 3 × anchor", lambda ours, anchor: ours <= 3 and ours <= 3 * anchor)
    sample = f"{count} bytes"
    return [
        Row("echo in a pod, p50", sample, percentile(mine, 0.5), "ms", anchor, "kubectl exec", both),
        Row("echo in a pod, p99", sample, percentile(mine, 0.99), "ms", percentile(theirs[1:], 0.99), "kubectl exec"),
    ]


def floods(fleet: Fleet, size: int, rounds: int) -> list[Row]:
    size = size // (len(LINE) + 1) * (len(LINE) + 1)
    flood = f"yes {LINE} | head -c {size}"

    async def ours(session: Session) -> tuple[float, float]:
        """Bytes that came, per second; and the whole, per second, when its end was there."""
        async with fleet.client() as connection:
            await attached(connection, session)
            await until_shown(connection, b"ready")
            began = time.perf_counter()
            await say(connection, "terminal.input", sessionId=session.id, data="\r")
            reached = delivered = 0
            while reached < size:
                message = await connection.recv()
                if isinstance(message, bytes):
                    is_output = message[0] == OUTPUT
                    reached = int.from_bytes(message[5:13], "big") + (len(message) - 13 if is_output else 0)
                    delivered += len(message) - 13 if is_output else 0
            took_s = time.perf_counter() - began
        return delivered / took_s / MB, reached / took_s / MB

    sent, ends, piped, terminals = [], [], [], []
    for _ in range(rounds):
        session = fleet.run(f"stty -opost -echo; echo ready; read x; {flood}; exec sleep 100000")
        pod = f"hitch-{session.id}"
        piped.append(exec_rate(fleet.kubectl("exec", pod, "--", "sh", "-c", flood), size))
        raw = f"stty -opost; {flood}"
        terminals.append(exec_rate(fleet.kubectl("exec", "-it", pod, "--", "sh", "-c", raw), size, terminal=True))
        bytes_sent, end = asyncio.run(ours(session))
        sent.append(bytes_sent)
        ends.append(end)
        fleet.remove(session)
    sample = f"median of {rounds} × {size // MB} MB"
    return [
        Row("flood in a pod, bytes at the client", sample, median(sent), "MB/s", median(terminals), "kubectl exec -it",
            at_least_share(1.0)),
        Row("flood in a pod, its end at the client", sample, median(ends), "MB/s", median(piped),
            "kubectl exec, no terminal"),
    ]  # fmt: skip


def exec_rate(words: list[str], size: int, *, terminal: bool = False) -> float:
    """MB/s through ``kubectl exec``; with a terminal as a session has one, here and in the pod."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    if terminal:
        tty.setraw(theirs)
    began = time.perf_counter()
    with subprocess.Popen(
        words, stdin=theirs if terminal else None, stdout=theirs, stderr=subprocess.DEVNULL
    ) as kubectl:
        os.close(theirs)
        count = 0
        while count < size:
            count += len(os.read(ours, 1 << 16))
        took_s = time.perf_counter() - began
        os.close(ours)
        kubectl.kill()
    return size / took_s / MB


def kills(fleet: Fleet, count: int) -> list[Row]:
    """The agent is killed on its node; the anchor is when a watch of Kubernetes tells that its pod has ended."""
    mark = "100000.125"
    session = fleet.run(f"exec sleep {mark}")

    async def ours() -> list[float]:
        took_ms = []
        async with fleet.client() as connection:
            for _ in range(count):
                pid = agent_of(mark)
                began = time.perf_counter()
                os.kill(pid, signal.SIGKILL)
                await event(connection, "terminal.exit", session.id)
                took_ms.append((time.perf_counter() - began) * 1000)
                await asyncio.to_thread(fleet.act, session, "restart")
        return took_ms

    mine = asyncio.run(ours())
    fleet.remove(session)
    theirs = []
    phases = Phases(fleet)
    try:
        for number in range(3):
            name, mark = f"kill{number}", f"200000.{number}"
            words = ("run", name, f"--image={images.HITCHPOST}", "--restart=Never", "--", "sleep", mark)
            subprocess.run(fleet.kubectl(*words), check=True, capture_output=True)
            phases.until(name, "Running")
            began = time.perf_counter()
            os.kill(agent_of(mark), signal.SIGKILL)
            theirs.append((phases.until(name, "Failed") - began) * 1000)
            kubectl_delete(fleet, name)
    finally:
        phases.close()
    sample, anchor = f"{count} kills", median(theirs)
    return [
        Row(f"agent killed in a pod → client told, p{share * 100:g}", sample, percentile(mine, share), "ms", anchor,
            "kubectl get --watch, median of 3", at_most(TOLD_S * 1000, "ms") if share > 0.5 else None)
        for share in (0.5, 0.99)
    ]  # fmt: skip


def agent_of(mark: str) -> int:
    """The process on this machine that sleeps for so long."""
    found: list[int] = []

    def is_there() -> bool:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"sleep", mark.encode()]:
                found.append(int(path.parts[2]))
        return bool(found)

    wait_until(is_there, "the agent")
    return found[0]


def cuts(fleet: Fleet, count: int) -> list[Row]:
    session = fleet.run("exec sleep 100000")
    node = fleet.shape(session)["node"]
    took_s, back_s, dead = [], [], 0

    def seen() -> list[dict[str, Any]]:
        return [fleet.shape(session, hub) for hub in range(len(fleet.hubs))]

    for _ in range(count):
        wait_until(lambda: all(each["status"] == "running" for each in seen()), "both hubs to see it")
        began = time.perf_counter()
        fleet.cluster.cut(node)
        try:
            wait_until(lambda: all(each["status"] == "unknown" for each in seen()), "unknown")
            took_s.append(time.perf_counter() - began)
        finally:
            fleet.cluster.heal(node)
        began = time.perf_counter()
        wait_until(lambda: all(map(is_decided, seen())), "the session to be back")
        back_s.append(time.perf_counter() - began)
        dead += any(each["state"] in DEAD or each["run"] != 1 for each in seen())
    fleet.cluster.until_ready()
    fleet.remove(session)
    sample = f"{count} cuts, both hubs"
    return [
        Row("node cut → unknown, slowest", sample, max(took_s), "s", None, "", at_most(CUT_S, "s")),
        Row("node cut → unknown, median", sample, median(took_s), "s"),
        Row("sessions told dead that were not", sample, dead, "", None, "", exactly(0)),
        Row("node healed → running again, median", sample, median(back_s), "s"),
    ]


def is_decided(shape: dict[str, Any]) -> bool:
    return shape["status"] == "running" or shape["state"] in DEAD


def moves(fleet: Fleet, count: int, anchor: float) -> list[Row]:
    session = fleet.run("echo hello; exec sleep 100000")

    async def ours() -> float:
        node = fleet.shape(session)["node"]
        await asyncio.to_thread(fleet.cluster.cordon, node)
        await asyncio.to_thread(fleet.act, session, "stop", {"grace_s": 0})  # the cluster has confirmed its end then
        async with fleet.client() as connection:
            began = time.perf_counter()
            await asyncio.to_thread(fleet.act, session, "restart")
            await attached(connection, session)
            await until_shown(connection, b"hello")
            took_s = time.perf_counter() - began
        await asyncio.to_thread(fleet.cluster.uncordon, node)
        assert fleet.shape(session)["node"] != node
        return took_s

    took_s = [asyncio.run(ours()) for _ in range(count)]
    fleet.remove(session)
    return [
        Row("old pod gone → first output on another node", f"median of {count}", median(took_s), "s", anchor,
            "kubectl run → Running", at_most(MOVED_S, "s")),
    ]  # fmt: skip


def crowd(fleet: Fleet, count: int, *, quick: bool) -> tuple[list[Row], float]:
    """So many pods at once. The anchor is ``kubectl get pods`` of the same, for a thousand keepers, too."""
    began = time.monotonic()
    with ThreadPoolExecutor(STARTS) as pool:
        list(pool.map(lambda number: fleet.run("exec sleep 100000", number % 2), range(count)))
    starts_s = time.monotonic() - began
    for hub in fleet.hubs:
        _wait_for_all(lambda hub=hub: hub.ask("GET", "/api/sessions"), count)  # type: ignore[misc]
    theirs = []
    for _ in range(3 if quick else 10):
        asked = time.perf_counter()
        subprocess.run(fleet.kubectl("get", "pods", "-o", "json"), check=True, capture_output=True)
        theirs.append((time.perf_counter() - asked) * 1000)
    anchor_ms = median(theirs)
    rows = figures(fleet.server, fleet.database, fleet.hubs, count, quick=quick, anchor_ms=anchor_ms, what="real pods")
    rows.append(Row("pods started per second", f"{count} real pods, {STARTS} at once", count / starts_s, "/s"))
    return rows, anchor_ms


def _wait_for_all(shown: Callable[[], list[dict[str, Any]]], count: int) -> None:
    wait_until(lambda: sum(each["state"] == "running" for each in shown()) >= count, f"{count} sessions", 300)


def measure(*, quick: bool) -> tuple[list[Row], float]:
    """The rows, and how long ``kubectl get pods`` takes, in milliseconds."""
    rows: list[Row] = []
    cluster = Cluster.start()
    try:
        with (
            Stage(quick=quick) as stage,
            own_server(also=(cluster.network.host,)) as server,
            server.fresh() as database,
            cluster.namespace() as namespace,
        ):
            fleet = Fleet(stage, cluster, server, database, namespace)
            with fleet.opened():
                found, run_s = starts(fleet, 2 if quick else 10)
                rows += found
                rows += echoes(fleet, 20 if quick else 500)
                rows += floods(fleet, MB if quick else 50 * MB, 1 if quick else 3)
                rows += kills(fleet, 3 if quick else 100)
                rows += cuts(fleet, 1 if quick else 20)
                rows += moves(fleet, 1 if quick else 5, run_s)
                found, anchor_ms = crowd(fleet, 4 if quick else 100, quick=quick)
                rows += found
    finally:
        with undisturbed():
            cluster.close()
    return rows, anchor_ms
