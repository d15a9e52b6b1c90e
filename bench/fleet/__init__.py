"""Sessions in pods beside ``kubectl``, and a thousand keepers under two hubs."""

from __future__ import annotations

import sys

from bench.fleet import keepers, pods
from bench.table import Row
from tests.kube import programs


def measure(*, quick: bool) -> list[Row]:
    rows: list[Row] = []
    anchor_ms: float | None = None
    if why := programs.why_not():
        print(f"bench: no cluster can be measured: {why}", file=sys.stderr)
    else:
        rows, anchor_ms = pods.measure(quick=quick)
    return rows + keepers.measure(quick=quick, anchor_ms=anchor_ms)
