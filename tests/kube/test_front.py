"""The server in front of the API server, which can be slow, refuse and break off."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from lightkube import Client, KubeConfig
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Node

from tests.kube.cluster import Cluster
from tests.kube.front import Fault, Front, front_of
from tests.support import LeakWatch


@pytest.fixture
def front(cluster: Cluster, leak_watch: LeakWatch) -> Iterator[Front]:
    with front_of(cluster, Path(leak_watch.scratch)) as made:
        yield made


@pytest.fixture
def client(front: Front) -> Iterator[Client]:
    made = Client(config=KubeConfig.from_file(str(front.kubeconfig)), trust_env=False)
    yield made
    made._client._client.close()


def test_what_it_gives_on_is_what_the_api_server_says(front: Front, client: Client) -> None:
    assert [node.metadata.name for node in client.list(Node) if node.metadata] == ["n1", "n2"]
    assert [request.partition("?")[0] for request in front.requests] == ["GET /api/v1/nodes"]


def test_it_refuses_as_often_as_it_was_told_to(front: Front, client: Client) -> None:
    front.add(Fault(code=429, times=2, methods=("GET",), part="/nodes", retry_after_s=1))
    for _ in range(2):
        with pytest.raises(ApiError) as refused:
            list(client.list(Node))
        assert refused.value.status.code == 429
        assert refused.value.response.headers["retry-after"] == "1"
    assert len(list(client.list(Node))) == 2


def test_it_is_as_slow_as_it_was_told_to_be(front: Front, client: Client) -> None:
    front.add(Fault(slow_s=0.5, part="/nodes"))
    began = time.monotonic()
    list(client.list(Node))
    assert time.monotonic() - began >= 0.5
    front.mend()
    front.add(Fault(slow_s=60, part="/namespaces"))
    list(client.list(Node))
    assert time.monotonic() - began < 60


def test_a_watch_is_told_that_the_past_is_gone_and_is_broken_off(front: Front, client: Client) -> None:
    fault = front.add(Fault(code=410, in_stream=True, times=1, part="watch=true"))
    with pytest.raises(ApiError) as gone:
        next(iter(client.watch(Node)))
    assert (gone.value.status.code, fault.times) == (410, 0)
    watch = iter(client.watch(Node))
    assert next(watch)[0] == "ADDED"
    front.break_off()
    with pytest.raises(httpx2.HTTPError):
        for _ in watch:
            pass
