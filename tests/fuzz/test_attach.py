"""``hitch attach`` on a real terminal that changes its size at every moment, while the agent prints what none should.

``FUZZ_SECONDS`` says how long; ``FUZZ_SEED`` plays one visit again. Attach must not die, hang, or leave the terminal
with anything that the agent has set.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import termios
import threading
import time
from itertools import chain, count
from pathlib import Path

import pytest

from tests.fuzz.streams import SIDES, Maker, Piece
from tests.fuzz.test_terminal import PATIENCE_S, SECONDS, attached
from tests.ground import Ground
from tests.support import eventually

VISITS, MOST_S = 9, 15.0
"""Without a time: so many, or as many as begin within so long."""
FOUND = (550233921802,)
"""Seeds that have found a fault. They are played first."""
WAYS = ("detach", "the agent's end", "a signal")
DETACH = b"\x02d"
JUDGED_S = 60


def restless(seed: int) -> list[Piece]:
    """A stream with another size of the terminal around every second piece."""
    maker, chance = Maker(seed), random.Random(seed)
    made: list[Piece] = [(1, 1)]
    for piece in maker.stream(40):
        made.append(piece)
        if chance.random() < 0.5:
            made.append((chance.choice((*SIDES, 0)), chance.choice((*SIDES, 0))))
    return made


class Terminal:
    """The other side of attach's terminal: takes all that it prints, at once, and knows the sizes in between."""

    def __init__(self, master: int) -> None:
        self.master, self.shown, self.over = master, list[Piece](), threading.Event()
        self.before = termios.tcgetattr(master)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        """Until it is over, and nothing is left."""
        while True:
            over = self.over.is_set()
            try:
                self.shown.append(os.read(self.master, 1 << 16))
            except BlockingIOError:
                if over:
                    return
                self.over.wait(0.001)

    def resize(self, cols: int, rows: int, pid: int) -> None:
        termios.tcsetwinsize(self.master, (rows, cols))
        self.shown.append((cols, rows))
        os.kill(pid, signal.SIGWINCH)

    def is_raw(self) -> bool:
        return not termios.tcgetattr(self.master)[3] & termios.ICANON

    def close(self) -> None:
        self.over.set()
        self.reader.join()

    @property
    def printed(self) -> bytes:
        return b"".join(piece for piece in self.shown if isinstance(piece, bytes))


def visited(seed: int, ground: Ground, way: str) -> Terminal:
    """One visit, ended in one of the ways."""
    pipe = str(ground.place / f"pipe-{seed}")
    os.mkfifo(pipe)
    session = ground.begin_sh(f"stty raw -echo; exec cat '{pipe}'", name=f"visit-{seed}")
    feed = os.open(pipe, os.O_WRONLY)
    try:
        with attached(session) as (master, process):
            terminal = Terminal(master)
            try:
                eventually(terminal.is_raw, PATIENCE_S, what="attach")
                for piece in restless(seed):
                    if isinstance(piece, bytes):
                        os.write(feed, piece)
                    else:
                        terminal.resize(*piece, process.pid)
                if way == "detach":
                    os.write(master, DETACH)
                elif way == "a signal":
                    process.send_signal(signal.SIGTERM)
                else:
                    os.close(feed)
                    feed = -1
                code = process.wait(PATIENCE_S)
            finally:
                terminal.close()
            assert code == (128 + signal.SIGTERM if way == "a signal" else 0), terminal.printed[-2000:]
            assert termios.tcgetattr(master) == terminal.before
    finally:
        if feed >= 0:
            os.close(feed)
    ground.hitch("rm", "--force", session.id)
    return terminal


def left_behind(shown: list[Piece], file: Path) -> list[str] | None:
    """None when the emulator has died of it."""
    file.write_text(json.dumps([[piece.hex()] if isinstance(piece, bytes) else piece for piece in shown]))
    argv = [sys.executable, "-m", "tests.fuzz.left_behind", str(file)]
    done = subprocess.run(argv, capture_output=True, check=False, timeout=JUDGED_S)
    if done.returncode < 0:
        return None
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.ids("S8")
@pytest.mark.timeout(PATIENCE_S * 4 + SECONDS)
def test_attach_outlives_any_output_at_any_size_and_leaves_nothing_behind(ground: Ground, tmp_path: Path) -> None:
    first = int(os.environ.get("FUZZ_SEED") or random.SystemRandom().randrange(1 << 40))
    print(f"the first seed is {first}")
    began, judged = time.monotonic(), 0
    again = () if "FUZZ_SEED" in os.environ else FOUND
    for visits, seed in enumerate(chain(again, count(first)), 1):
        try:
            terminal = visited(seed, ground, WAYS[seed % len(WAYS)])
            assert b"Traceback" not in terminal.printed, terminal.printed[-2000:]
            left = left_behind(terminal.shown, tmp_path / str(seed))
            assert not left, left
        except BaseException:
            print(f"FUZZ_SEED={seed} plays it again")
            raise
        judged += left is not None
        passed_s = time.monotonic() - began
        enough = passed_s > SECONDS if SECONDS else visits >= VISITS or (visits > len(again) and passed_s > MOST_S)
        if enough or "FUZZ_SEED" in os.environ:
            break
    print(f"{visits} visits, {judged} judged")
    assert judged or "FUZZ_SEED" in os.environ
