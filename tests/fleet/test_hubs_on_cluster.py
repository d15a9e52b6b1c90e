"""Two hubs over the real cluster and a real PostgreSQL: any of them answers, none of them is missed."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

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

    def start(self, hub: HubProcess) -> None:
        kubeconfig = str(self.cluster.kubeconfig)
        hub.start(HITCHPOST_HOME=hub.home, HITCHPOST_FLEET=self.database, KUBECONFIG=kubeconfig)
        eventually(lambda: not hub.ask("GET", "/api/health")["problems"], what="the cluster and PostgreSQL")

    def run(self, hub: HubProcess, script: str, **more: Any) -> str:
        body = {"command": ["sh", "-c", script], "folder": "/", "runtime": "pod", **more}
        return hub.ask("POST", "/api/sessions", body)["session"]["id"]


@pytest.fixture
def hubs(ground: Ground, cluster: Cluster, cluster_database: str) -> Iterator[Hubs]:
    with cluster.namespace() as namespace:
        profile = "\n".join(f"{key} = {json.dumps(text)}" for key, text in SMALL.items())
        image = f'namespace = "{namespace}"\nimage = "{images.HITCHPOST}"'
        ground.configure(f"[fleet]\n{image}\n[fleet.profiles.default]\n{profile}\n")
        yield Hubs(ground, cluster, cluster_database, namespace)


@pytest.fixture
def two(hubs: Hubs) -> Iterator[tuple[HubProcess, HubProcess]]:
    with ExitStack() as stack:
        first, second = (stack.enter_context(hubs.one_more()) for _ in range(2))
        yield first, second


def shown(hub: HubProcess, session: str) -> dict[str, Any]:
    found = hub.ask("GET", f"/api/sessions/{session}")
    return {name: found.get(name) for name in WORDS}


def output(hub: HubProcess, session: str) -> bytes:
    return Truth(Path(hub.home), session).output()


def test_a_session_of_one_hub_is_shown_driven_and_stopped_by_the_other(
    hubs: Hubs, two: tuple[HubProcess, HubProcess]
) -> None:
    first, second = two
    session = hubs.run(first, ECHO, name="dev")
    eventually(lambda: b"ready" in output(first, session), what="its output")
    eventually(lambda: shown(first, session) == shown(second, session), what="the same words")
    assert shown(second, session)["node"] in hubs.cluster.nodes
    second.ask("POST", f"/api/sessions/{session}/prompt", {"text": "hello"})
    for hub in two:
        eventually(lambda hub=hub: b"<hello>" in output(hub, session), what="the answer")  # type: ignore[misc]
    second.ask("POST", f"/api/sessions/{session}/stop")
    for hub in two:
        eventually(lambda hub=hub: shown(hub, session)["label"] == "stopped", what="its end")  # type: ignore[misc]
    story = [line["event"] for line in first.ask("GET", f"/api/sessions/{session}/story")]
    assert story.count("state") == 4
    assert not hubs.cluster.exists("pod", f"hitch-{session}", hubs.namespace)


def test_a_hub_that_is_killed_takes_nothing_along_and_a_new_one_knows_everything(
    hubs: Hubs, two: tuple[HubProcess, HubProcess]
) -> None:
    first, second = two
    session = hubs.run(first, f"seq 2000; {ECHO}", name="dev")
    eventually(lambda: b"ready" in output(second, session), what="its output")
    first.kill()
    second.ask("POST", f"/api/sessions/{session}/prompt", {"text": "after"})
    eventually(lambda: b"<after>" in output(second, session), what="the answer")
    assert shown(second, session)["state"] == "running"
    hubs.start(first)
    eventually(lambda: shown(first, session) == shown(second, session), what="the same words")
    eventually(lambda: output(first, session) == output(second, session), what="the same output")
    second.ask("POST", f"/api/sessions/{session}/stop")
    whole = output(second, session)
    with hubs.one_more() as third:
        eventually(lambda: shown(third, session)["label"] == "stopped", what="what became of it")
        third.ask("GET", f"/api/sessions/{session}/screen")
        assert output(third, session) == whole
        assert whole.startswith(b"1\r\n2\r\n3\r\n")
        assert os.listdir(os.path.join(third.home, "sessions")) == [session]
