"""A cluster comes, stands beside others, and leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kube import machines
from tests.kube.cluster import Cluster
from tests.kube.fixtures import why_not
from tests.kube.programs import ROOT
from tests.support import Process, eventually

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(why_not()), reason=f"no cluster: {why_not()}")]

only_long = pytest.mark.skipif("LONG" not in os.environ, reason="a cluster of its own: script/faults --long")
"""Each takes a cluster's time. What users have depends on none of it."""
WITH_A_POD = """
import signal
from tests.kube.cluster import Cluster
from tests.support import eventually
cluster = Cluster.start(nodes=1)
cluster.run_pod("stays", "sleep", "1000")
eventually(lambda: cluster.phase("stays") == "Running", what="the pod")
print(cluster.mark, flush=True)
signal.pause()
"""


def left_of(mark: str) -> list[str]:
    """All that carries the mark."""
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if mark in line]
    places = [*machines.NAMESPACES.glob(f"{mark}*"), *machines.CGROUPS.glob(f"*/{mark}"), machines.FOLDERS / mark]
    links = [Path("/sys/class/net") / mark]
    named = [process for process in Process.all() if any(mark in word for word in process.argv)]
    routes = [line for line in machines.run("ip", "route").splitlines() if mark in line]
    found = [str(place) for place in (*places, *links) if place.exists()]
    return [*mounts, *found, *map(str, named), *map(str, machines.processes(mark)), *routes]


def settings() -> dict[str, str]:
    """Of the machine, which kubelet would change."""
    paths = [Path("/proc/sys", name) for name in machines.SETTINGS]
    return {path.name: path.read_text() for path in paths if path.exists()}


@only_long
def test_a_cluster_leaves_nothing_when_it_is_closed(cluster: Cluster) -> None:
    """Beside another one, which does not notice."""
    before = settings()
    own = Cluster.start(nodes=1)
    try:
        assert own.network.base != cluster.network.base
        assert [own.ready("n1"), cluster.ready("n1")] == ["True", "True"]
        assert len(left_of(own.mark)) > 10
        assert settings() == before
    finally:
        own.close()
    assert left_of(own.mark) == []
    assert cluster.ready("n1") == "True"


def test_a_cluster_whose_owner_was_killed_is_reaped_with_its_pods() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WITH_A_POD], cwd=ROOT, env=machines.clean(), stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        mark = owner.stdout.readline().strip()
        assert mark.startswith(machines.PREFIX)
        owner.kill()
    eventually(lambda: not left_of(mark), what=f"the end of {mark}")


@only_long
def test_what_an_owner_and_its_guard_have_left_is_removed_by_the_next(cluster: Cluster) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WITH_A_POD], cwd=ROOT, env=machines.clean(), stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        mark = owner.stdout.readline().strip()
        guard = machines.marked(machines.FOLDERS / mark / "guard")
        assert guard is not None
        subprocess.run(["kill", "-9", str(guard.pid)], check=True)
        owner.kill()
    assert left_of(mark)
    assert mark in machines.sweep()
    assert left_of(mark) == []
    assert cluster.ready("n1") == "True"
