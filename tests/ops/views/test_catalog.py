"""What can be started where."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hitchpost.ops.views import catalog
from hitchpost.runtimes import pod


@pytest.fixture
def nowhere() -> Iterator[None]:
    yield
    pod.connect(None)


@pytest.mark.usefixtures("nowhere")
def test_a_hub_that_waits_for_its_cluster_offers_pods_and_says_why_none_can_start() -> None:
    pod.connect(None, "it has not been asked yet")
    (offered,) = catalog.runtimes()
    assert (offered.name, offered.available) == ("pod", False)
    assert "the cluster cannot be used: it has not been asked yet" in offered.missing
    pod.connect(None)
    assert [runtime.name for runtime in catalog.runtimes()] == ["local", "tmux", "docker"]
