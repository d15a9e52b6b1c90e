"""A record changes beside a run that starts: real processes, each pair let go at the same moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest

from tests.ground import Ground, Truth, alive
from tests.support import Hitch

PAIRS = 12
RACER = """
import os, sys, time
from hitchpost.errors import HitchpostError
from hitchpost.ops.sessions.cancel import cancel
from hitchpost.ops.sessions.remove import archive, remove
from hitchpost.ops.sessions.restart import restart
from hitchpost.ops.sessions.resume import resume
from hitchpost.settings import Settings
from hitchpost.store import files, locks

home, deed = sys.argv[1:]
starts = {"resume": resume, "restart": restart}
closes = {"archive": archive, "cancel": cancel, "rm": remove}
for line in sys.stdin:
    session, at = line.split()
    while time.monotonic() < float(at):
        pass
    try:
        if deed in starts:
            starts[deed](home, session, Settings(), actor="test", caller=os.environ)
        else:
            closes[deed](home, session, actor="test")
        print("done", flush=True)
    except (HitchpostError, locks.Removed) as error:
        print("refused:", error, flush=True)
"""


@contextmanager
def racers(ground: Ground, *deeds: str) -> Iterator[Race]:
    """Processes that do these deeds at the same time. A traceback of any fails the test."""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", RACER, str(ground.home), deed],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=Hitch.environment(),
                    text=True,
                )
            )
            for deed in deeds
        ]
        yield Race(processes)


@dataclass(slots=True)
class Race:
    processes: list[subprocess.Popen[str]]

    def both(self, session: Truth, ahead_s: float) -> list[str]:
        """What each says. The first one begins ``ahead_s`` later than the second."""
        start = time.monotonic() + 0.05
        for one, at in zip(self.processes, (start + ahead_s, start), strict=True):
            assert one.stdin is not None
            one.stdin.write(f"{session.id} {at}\n")
            one.stdin.flush()
        said = [one.stdout.readline().strip() for one in self.processes if one.stdout is not None]
        assert all(text == "done" or text.startswith("refused: ") for text in said)
        return said


def lives(session: Truth) -> bool:
    return any(alive(session.agent_pid(int(run))) for run in os.listdir(session.folder / "runs") if ran(session, run))


def ran(session: Truth, run: str) -> bool:
    return (session.run(int(run)) / "run.json").exists()


@pytest.mark.parametrize("starts", ["resume", "restart"])
@pytest.mark.parametrize("closes", ["archive", "cancel"])
@pytest.mark.ids("D-12")
def test_what_is_archived_never_runs(ground: Ground, closes: str, starts: str) -> None:
    with racers(ground, closes, starts) as race:
        for pair in range(PAIRS):
            again = ground.place / f"again{pair}"
            dev = ground.begin_sh(f"[ -e {again} ] && exec sleep 1000; exit 0", name=f"dev{pair}")
            dev.ended()
            again.touch()
            closed, started = race.both(dev, pair * 0.004)
            record = json.loads((dev.folder / "session.json").read_bytes())["record"]
            if record == "archived":
                assert closed == "done"
                assert dev.state in ("completed", "stopped")
                assert not lives(dev)
            else:
                assert (record, dev.state, started) == ("active", "running", "done")
                assert closed.startswith("refused: ")
                ground.end(dev)


@pytest.mark.parametrize("starts", ["resume", "restart"])
@pytest.mark.ids("D-5")
def test_the_folder_of_a_run_that_lives_is_never_erased(ground: Ground, starts: str) -> None:
    with racers(ground, "rm", starts) as race:
        for pair in range(PAIRS):
            again, pid = ground.place / f"again{pair}", ground.place / f"pid{pair}"
            dev = ground.begin_sh(f"[ -e {again} ] || exit 0; echo $$ > {pid}; exec sleep 1000", name=f"dev{pair}")
            dev.ended()
            again.touch()
            removed, started = race.both(dev, pair * 0.004)
            if removed == "done":
                assert started.startswith("refused: ")
                assert not dev.folder.exists()
                assert not pid.exists()
            else:
                assert started == "done"
                assert dev.state == "running"
                assert alive(int(ground.said(pid.name)))
                ground.end(dev)
