"""A measurement that is interrupted leaves nothing behind, also in the middle of its clean-up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bench.interrupted import SESSIONS
from tests.postgres import why_not
from tests.support import eventually
from tests.undisturbed import ASKING, ended_by, undisturbed

ROOT = Path(__file__).parents[2]
PAUSE_S = 0.02


def processes_of(folder: Path) -> list[int]:
    """Of pods, their keepers and agents."""
    found = [int(path.read_text()) for path in folder.glob("pods/*/pid")]
    for path in folder.glob("pods/*/home/sessions/*/runs/1/run.json"):
        run = json.loads(path.read_bytes())
        found += [run[which]["pid"] for which in ("keeper", "agent")]
    return found


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.parametrize("is_told", [True, False], ids=["in the clean-up", "in the middle"])
def test_keepers_end_with_the_measurement_however_often_it_is_interrupted(is_told: bool) -> None:
    words = [sys.executable, "-m", "tests.bench.interrupted"]
    left: list[int] = []
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as bench:
        assert bench.stdin is not None
        assert bench.stdout is not None
        try:
            folder, server = map(Path, bench.stdout.readline().split())
            left = eventually(lambda: found if len(found := processes_of(folder)) == 3 * SESSIONS else [], what="all")
            if is_told:
                bench.stdin.write("\n")
                bench.stdin.flush()
                assert bench.stdout.readline() == "leaving\n"
            asked = 0
            while bench.poll() is None:
                bench.send_signal(ASKING[asked % 2])
                asked += 1
                time.sleep(PAUSE_S)
            assert asked > 5
            # when all is done, a last signal may meet Python without our handlers
            assert bench.returncode in (128 + ASKING[0], *(-number for number in ASKING))
            assert [pid for pid in left if is_there(pid)] == []
            assert not folder.exists()
            assert not server.exists()
        finally:
            bench.kill()
            for pid in left:
                if is_there(pid):
                    os.kill(pid, signal.SIGKILL)


def test_what_is_begun_undisturbed_is_done_before_a_signal_counts() -> None:
    done = []

    def work() -> None:
        with undisturbed():
            signal.raise_signal(signal.SIGTERM)
            done.append("all of it")

    before = signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        with pytest.raises(KeyboardInterrupt), ended_by(lambda: done.append("the end")):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert done == ["all of it", "the end"]
