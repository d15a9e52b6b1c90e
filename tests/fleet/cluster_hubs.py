"""Hubs over the real cluster and a real PostgreSQL, each with a home of its own."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.fleet.kubernetes import SMALL
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.kube import images
from tests.kube.cluster import Cluster
from tests.support import eventually

WORDS = ("label", "headline", "state", "record", "run", "name", "index", "node")
ECHO = 'stty -echo; echo ready; while read line; do echo "<$line>"; done'


@dataclass
class Hubs:
    ground: Ground
    cluster: Cluster
    database: str
    namespace: str

    @contextmanager
    def one_more(self) -> Iterator[HubProcess]:
        """A hub with a home of its own, which is empty at first."""
        hub = HubProcess(replace(self.ground, home=Path(tempfile.mkdtemp(prefix="hub-"))))
        try:
            self.start(hub)
            yield hub
        finally:
            assert hub.process is not None
            if hub.process.poll() is None:
                hub.stop()

    def start(self, hub: HubProcess, **where: Any) -> None:
        kubeconfig = str(self.cluster.kubeconfig)
        hub.start(HITCHPOST_HOME=hub.home, HITCHPOST_FLEET=self.database, KUBECONFIG=kubeconfig, **where)
        eventually(lambda: not hub.ask("GET", "/api/health")["problems"], what="the cluster and PostgreSQL")

    def run(self, hub: HubProcess, script: str, **more: Any) -> str:
        body = {"command": ["sh", "-c", script], "folder": "/", "runtime": "pod", **more}
        return hub.ask("POST", "/api/sessions", body)["session"]["id"]


@contextmanager
def hubs_over(ground: Ground, cluster: Cluster, database: str, settings: str = "") -> Iterator[Hubs]:
    """``settings`` are for the top of the file."""
    with cluster.namespace() as namespace:
        profile = "\n".join(f"{key} = {json.dumps(text)}" for key, text in SMALL.items())
        image = f'namespace = "{namespace}"\nimage = "{images.HITCHPOST}"'
        ground.configure(f"{settings}\n[fleet]\n{image}\n[fleet.profiles.default]\n{profile}\n")
        yield Hubs(ground, cluster, database, namespace)


@contextmanager
def two_of(hubs: Hubs) -> Iterator[tuple[HubProcess, HubProcess]]:
    with ExitStack() as stack:
        first, second = (stack.enter_context(hubs.one_more()) for _ in range(2))
        yield first, second


def shown(hub: HubProcess, session: str) -> dict[str, Any]:
    found = hub.ask("GET", f"/api/sessions/{session}")
    return {name: found.get(name) for name in WORDS}


def output(hub: HubProcess, session: str, run: int = 1) -> bytes:
    return Truth(Path(hub.home), session).output(run)
