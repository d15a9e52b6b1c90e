from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.boxes import DOCKER, Engine, why_not
from tests.support import eventually

ROOT = Path(__file__).parents[1]
NEEDS_AN_ENGINE = """
import signal
from tests.boxes import Engine, begun
engine, held = begun(Engine)
print(engine.folder, flush=True)
signal.pause()
"""


def test_an_engine_ends_with_the_worker_that_began_it_whatever_ended_that():
    if why := why_not(DOCKER):
        pytest.skip(f"no container engine: {why}")
    with subprocess.Popen(
        [sys.executable, "-c", NEEDS_AN_ENGINE], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        engine = Engine(Path(worker.stdout.readline().strip()))
        try:
            assert {"dockerd", "containerd"} <= {Path(process.argv[0]).name for process in engine.processes()}
        finally:
            worker.kill()
    eventually(lambda: not engine.folder.exists(), 60, "the end of the engine")
    assert engine.processes() == []
    assert str(engine.folder) not in Path("/proc/mounts").read_text()
