"""The server of a pod that has never had a run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOOK = """
import asyncio, sys
from hitchpost.fleet.tls import Identity
from hitchpost.pod.server import Server
server = Server(sys.argv[1], "abcdefghijkl", Identity(sys.argv[1], is_pod=True))
asyncio.run(server._find_run())
print(*sorted(name for name in sys.modules if name in ("hitchpost.pod.runs", "hitchpost.pod.requests")))
"""


def test_it_serves_before_it_loads_what_a_run_takes(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LOOK, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
