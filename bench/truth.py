"""Exits of all kinds, many at once: how many of them were told as they were."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor

from bench.stage import Session, Stage, program
from bench.table import Row, exactly
from hitchpost.model import run as runs
from hitchpost.store import files, statefile

AT_ONCE = 10
SIGNALS = [
    number
    for number in signal.Signals
    if number not in (signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH)
    and number not in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
]


def measure(*, quick: bool, runtime: str = "local") -> list[Row]:
    count = 20 if quick else 1_000
    # every third exit is a signal's, so a small sample has both
    kinds = [-SIGNALS[n // 3 % len(SIGNALS)] if n % 3 == 2 else (n - n // 3) % 256 for n in range(count)]
    with Stage(quick=quick) as stage:
        sessions = [stage.session(program(), "leave", "0", runtime=runtime) for _ in range(AT_ONCE)]

        def right(lane: int) -> int:
            return sum(is_told(sessions[lane], how) for how in kinds[lane::AT_ONCE])

        with ThreadPoolExecutor(AT_ONCE) as pool:
            told = sum(pool.map(right, range(AT_ONCE)))
    what = "exits told as they were" if runtime == "local" else f"exits told as they were, {runtime}"
    return [Row(what, f"{count} exits, {AT_ONCE} at once", told, "", None, "", exactly(count))]


def is_told(session: Session, how: int) -> bool:
    """Whether an exit with code ``how``, or by signal ``-how``, is in every file that tells of it."""
    session.start(program(), "leave", str(how))
    session.wait_for_keeper_to_leave()
    end = files.read_object(os.path.join(session.run_folder, "exit.json"))
    status = files.read_bytes(os.path.join(session.run_folder, "exit_status"))
    state = statefile.read_state(session.folder)
    by_signal = how < 0
    return (end["code"], end["signal_number"], end["intent"], status, state["run"], state["state"]) == (
        None if by_signal else how,
        -how if by_signal else None,
        None,
        b"%d\n" % (128 - how if by_signal else how),
        session.run,
        runs.COMPLETED if how == 0 else runs.FAILED,
    )
