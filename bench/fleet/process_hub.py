"""A hub of a fleet whose pods are plain processes: ``python -m bench.fleet.process_hub FOLDER HOST PORT``.

Everything else is the product's: PostgreSQL, links, certificates, keepers. FOLDER has a folder for each pod, and the
authority. All hubs of a fleet are given the same one.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
from pathlib import Path

from hitchpost.fleet.identity import Authority
from hitchpost.fleet.link import OpenStream, tcp
from hitchpost.fleet.links import Links
from hitchpost.fleet.pods import Pods
from hitchpost.fleet.tls import Identity
from hitchpost.fleet.view import utc_now
from hitchpost.hub import __main__ as hub_process
from hitchpost.hub import pods as hub_pods
from hitchpost.model import facts, pods
from hitchpost.runtimes import pod as runtime
from hitchpost.runtimes.base import Health, Started
from hitchpost.runtimes.pod_file import read_pod, write_pod
from tests.fleet.processes import Pod

HERE = "127.0.0.1"
NODE = "this-machine"


class Place:
    """``fleet.pods.Place`` on this machine. What is known of a pod is written down as with a cluster."""

    def __init__(self, folder: Path, links: Links, authority: Authority) -> None:
        self.folder, self.links, self.authority = folder, links, authority
        self._writing = threading.Lock()

    def start(self, order: runtime.Order) -> Started:
        spec = order.spec
        pod = Pod(self.folder / spec.session, spec.session, self.authority)
        pod.begin()
        assert pod.process is not None
        (pod.folder / "pid").write_text(str(pod.process.pid))
        made = facts.Pod(f"process-{spec.session}", spec.session, phase=pods.RUNNING, since=utc_now(), node=NODE)
        with self._writing:
            write_pod(spec.session_folder, pods.given(made, spec.run))
        return self.links.start(spec, self.stream(spec.session))

    def stream(self, session: str) -> OpenStream:
        path = self.folder / session / "home" / "address.json"

        async def opened() -> socket.socket:
            try:
                port = json.loads(await asyncio.to_thread(path.read_bytes))["port"]
            except FileNotFoundError:
                raise ConnectionRefusedError("the pod does not serve yet") from None
            return await tcp(HERE, port)

        return opened

    def note_link(self, session_folder: str, *, up: bool) -> bool:
        with self._writing:
            stored = read_pod(session_folder)
            if stored is None:
                return False
            now = pods.handle(stored, pods.LinkUp(utc_now()) if up else pods.LinkDown(utc_now()))
            if now != stored:
                write_pod(session_folder, now)
            return now != stored

    def refresh(self, session_folder: str) -> bool:
        return False

    def health(self, session_folder: str, run: int) -> Health:
        return runtime.health_of(session_folder, run)

    def explain(self, session_folder: str, run: int) -> list[tuple[str, str, str]]:
        return []

    def tear_down(self, session_folder: str) -> None:
        raise NotImplementedError("the measurement ends all processes itself")

    clear_away = abandon = tear_down

    def check(self) -> None:
        """There is always a loopback."""


class ProcessPods(hub_pods.HubPods):
    folder: Path

    async def open(self) -> None:
        self._why_not = ""
        self._authority = await asyncio.to_thread(Authority.in_folder, str(self.folder / "authority"))
        await asyncio.to_thread(self._renew)
        identity = Identity(self._folder, is_pod=False)
        made = Pods(self.mirror, identity, self._live, self.registry.observer.request)
        made.place = Place(self.folder, made.links, self._authority)
        runtime.connect(made)
        self.pods = made
        self._tasks.start(made.run())


if __name__ == "__main__":
    ProcessPods.folder = Path(sys.argv.pop(1))
    os.makedirs(ProcessPods.folder, mode=0o700, exist_ok=True)
    hub_pods.HubPods = ProcessPods  # type: ignore[misc]
    hub_process.main()
