"""A cluster without Kubernetes: each session's pod is ``hitchpost.pod`` as a plain process on loopback.

Keepers, agents, links and certificates are the real ones. The processes are forked from one that has imported all, so a
thousand of them share their memory.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import uvloop

from hitchpost.errors import EndedAtOnce
from hitchpost.fleet.identity import Authority
from hitchpost.fleet.link import PodLink, tcp
from hitchpost.fleet.links import Links
from hitchpost.fleet.news import News
from hitchpost.fleet.tls import Identity
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.start import start
from hitchpost.ops.sessions.stop import stop
from hitchpost.runtimes import pod as runtime
from hitchpost.runtimes.base import Health, Started
from hitchpost.settings import Settings
from hitchpost.store.locks import is_held
from hitchpost.system import process
from tests.ground import ENDED, Ground, Truth
from tests.support import Hitch, eventually
from tests.warm import Process, spawn

uvloop.new_event_loop().close()  # the first one of a process opens a pipe for good: before any test is looked at

Address = Callable[[int], tuple[str, int]]


class Pod:
    """One process in the place of a pod. ``home`` is its volume: it stays when the process is gone."""

    def __init__(self, folder: Path, session: str, authority: Authority) -> None:
        self.folder, self.session, self.authority = folder, session, authority
        self.home, self.identity = folder / "home", folder / "identity"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.through: Address | None = None
        self.process: Process | None = None
        self.port = 0

    @property
    def truth(self) -> Truth:
        """The session as the pod has it."""
        return Truth(self.home, self.session)

    def begin(self, *, warm: bool = True, **env: str) -> None:
        address = self.home / "address.json"
        address.unlink(missing_ok=True)
        self.authority.for_session(self.session).write(str(self.identity))
        words = [self.session, "127.0.0.1", str(self.port), str(self.identity)]
        whole = {**Hitch.environment(), "HITCHPOST_HOME": str(self.home), **env}
        with open(self.folder / "log", "ab") as log, open(os.devnull) as nothing:
            standard = (nothing.fileno(), log.fileno(), log.fileno())
            self.process = spawn("hitchpost.pod", words, whole, standard, session=True, warm=warm)

    def address(self) -> int:
        """The port that it serves hubs at, once it does."""
        if not self.port:
            self.port = eventually(self._port, what=f"the pod to serve; {self.log()}")
        return self.port

    def _port(self) -> int:
        try:
            return json.loads((self.home / "address.json").read_bytes())["port"]
        except FileNotFoundError:
            return 0

    async def open_stream(self) -> socket.socket:
        port = self.port or await asyncio.to_thread(self.address)
        return await tcp(*((self.through or _here)(port)))

    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text() if path.exists() else ""

    @property
    def server(self) -> int:
        """The process that hubs are linked to."""
        return json.loads((self.home / "address.json").read_bytes())["pid"]

    def kill(self) -> None:
        """As a machine that is switched off: nothing of it has a chance to say anything."""
        if self.process is None:
            return
        if self.process.poll() is None:
            everything = [self.process.pid, *process.below(self.process.pid)]
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in everything:
                    with suppress(ProcessLookupError):
                        os.kill(pid, number)
                everything = [self.process.pid, *{*everything[1:], *process.below(self.process.pid)}]
            left = everything[1:]
            eventually(lambda: not any(map(process.has_live_thread, left)), what="the end of all its processes")
        self.process.wait(60)
        self.process = None

    def end(self, timeout_s: float = 60) -> int:
        """SIGTERM, as a cluster ends a pod."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout_s)
        self.process = None
        return code


def _here(port: int) -> tuple[str, int]:
    return "127.0.0.1", port


class Processes:
    """A ``runtimes.pod.Cluster`` of such pods."""

    def __init__(self, folder: Path, links: Links, authority: Authority) -> None:
        self.folder, self.links, self.authority = folder, links, authority
        self.pods: dict[str, Pod] = {}

    def pod(self, session_folder: str) -> Pod:
        session = os.path.basename(session_folder)
        if session not in self.pods:
            self.pods[session] = Pod(self.folder / session, session, self.authority)
        return self.pods[session]

    def start(self, order: runtime.Order) -> Started:
        pod = self.pod(order.spec.session_folder)
        if pod.process is None:
            pod.begin()
        return self.links.start(order.spec, pod.open_stream)

    def health(self, session_folder: str, run: int) -> Health:
        return runtime.health_of(session_folder, run)

    def explain(self, session_folder: str, run: int) -> list[tuple[str, str, str]]:
        answer = self.links.ask(session_folder, {"op": "explain", "run": run})
        return [(fact, value, source) for fact, value, source in answer.get("rows", [])]

    def tear_down(self, session_folder: str) -> None:
        pod = self.pods.get(os.path.basename(session_folder))
        if pod is not None and pod.process is not None:
            pod.end()

    def clear_away(self, session_folder: str) -> None:
        self.tear_down(session_folder)
        self.links.forget(session_folder)
        if (pod := self.pods.pop(os.path.basename(session_folder), None)) is not None:
            shutil.rmtree(pod.folder)

    def abandon(self, session_folder: str) -> None:
        raise NotImplementedError("a process can always be ended")

    def ask(self, session_folder: str, request: dict[str, object]) -> dict[str, Any]:
        return self.links.ask(session_folder, request)

    def check(self) -> None:
        """There is always a loopback."""

    def close(self) -> None:
        for pod in self.pods.values():
            pod.kill()
            print(f"--- pod of {pod.session}\n{pod.log()}")


class Fleet:
    """A home that is a copy, the links of its hub in an event loop of their own, and a cluster of processes."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.home = str(ground.home)
        os.makedirs(os.path.join(self.home, "sessions"), mode=0o700, exist_ok=True)
        self.news: list[tuple[str, News]] = []
        self.authority = Authority.make()
        self.identity = ground.watch.scratch / "hub-identity"
        self.authority.for_hub().write(str(self.identity))
        self.loop = uvloop.new_event_loop()  # as in a hub
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self.links = self.do(self._links())
        self.cluster = Processes(ground.watch.scratch / "pods", self.links, self.authority)
        runtime.connect(self.cluster)

    async def _links(self) -> Links:
        return Links(Identity(str(self.identity), is_pod=False), self._on_news)

    def _on_news(self, session_folder: str, news: News) -> None:
        self.news.append((os.path.basename(session_folder), news))

    def do(self, work: Any, timeout_s: float = 60) -> Any:
        """Something in the event loop of the links."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout_s)

    def create(self, *argv: str, place: Path | None = None, settings: Settings | None = None) -> Truth:
        spec = SessionSpec(str(place or self.ground.place), command=argv, runtime="pod")
        return Truth(self.ground.home, create(self.home, spec, settings or Settings(), actor="test").id)

    def begin(self, *argv: str, place: Path | None = None, settings: Settings | None = None, **more: Any) -> Truth:
        session = self.create(*argv, place=place, settings=settings)
        self.start(session, settings, **more)
        return session

    def sh(self, script: str, *argv: str, **more: Any) -> Truth:
        return self.begin("sh", "-c", script, "agent", *argv, **more)

    def start(self, session: Truth, settings: Settings | None = None, **more: Any) -> None:
        with suppress(EndedAtOnce):
            start(self.home, session.id, settings or Settings(), caller=Hitch.environment(), actor="test", **more)

    def stop(self, session: Truth, **more: Any) -> None:
        stop(self.home, session.id, actor="test", **more)

    def ended(self, session: Truth, run: int = 1) -> str:
        """Wait until the end of the run is known in the copy, and nobody stands in for its keeper; the final state."""
        lock = str(session.run(run) / "keeper.lock")

        def final() -> str:
            value = session.state_file()
            assert value["run"] == run
            return value["state"] if value["state"] in ENDED and is_held(lock) is False else ""

        return eventually(final, what=f"the end of run {run}")

    def pod(self, session: Truth) -> Pod:
        return self.cluster.pods[session.id]

    def link(self, session: Truth) -> PodLink:
        return self.links.by_folder[str(session.folder)]

    def cut(self, session: Truth) -> None:
        """End the connection to its pod, as it is now."""
        pipe = self.link(session)._pipe
        assert pipe is not None
        self.loop.call_soon_threadsafe(pipe.abort)

    def close(self) -> None:
        runtime.connect(None)
        try:
            self.do(self.links.close())
            self.do(_turns())
            self.cluster.close()
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.close()


async def _turns() -> None:
    """What was closed is gone a turn of the loop later."""
    for _ in range(10):
        await asyncio.sleep(0)


@contextmanager
def fleet_of(ground: Ground) -> Iterator[Fleet]:
    made = Fleet(ground)
    try:
        yield made
    finally:
        made.close()
