from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fleet.cluster_hubs import Hubs, hubs_over, two_of
from tests.fleet.processes import Fleet, fleet_of
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.kube.cluster import Cluster


@pytest.fixture
def fleet(ground: Ground) -> Iterator[Fleet]:
    """Sessions in pods that are plain processes, and the links of a hub to them."""
    with fleet_of(ground) as made:
        yield made


@pytest.fixture
def hubs(ground: Ground, cluster: Cluster, cluster_database: str) -> Iterator[Hubs]:
    with hubs_over(ground, cluster, cluster_database) as made:
        yield made


@pytest.fixture
def two(hubs: Hubs) -> Iterator[tuple[HubProcess, HubProcess]]:
    with two_of(hubs) as made:
        yield made
