"""The cluster of a run of the tests, which all its workers share.

Tests that only use it run side by side. One that does something to its machines or daemons has it alone, and it is
mended afterwards.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import postgres, runs
from tests.kube import programs
from tests.kube.cluster import Cluster


def why_not() -> str:
    return programs.why_not() or postgres.why_not()


def _shared() -> tuple[Cluster, postgres.Server]:
    if why := why_not():
        pytest.skip(f"no cluster: {why}")
    found = runs.shared("tests.kube")
    kept = found["postgres"]
    server = postgres.Server(Path(kept["folder"]), port=kept["port"], password=kept["password"])
    return Cluster.at(Path(found["cluster"])), server


@contextmanager
def used(alone: bool = False) -> Iterator[Cluster]:
    """Who wants it alone waits until nobody uses it, and lets nobody begin meanwhile."""
    cluster, _ = _shared()
    turn, use = (os.open(cluster.folder / name, os.O_RDONLY | os.O_CREAT, 0o600) for name in ("turn", "use"))
    try:
        fcntl.flock(turn, fcntl.LOCK_EX)
        fcntl.flock(use, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        if not alone:
            fcntl.flock(turn, fcntl.LOCK_UN)
        try:
            yield cluster
        finally:
            if alone:
                cluster.mend()
    finally:
        os.close(turn)
        os.close(use)


@contextmanager
def fresh_database() -> Iterator[str]:
    """The address of a database that this machine, the cluster's machines and its pods reach."""
    cluster, server = _shared()
    with server.fresh() as name:
        yield server.address(name, cluster.network.host)
