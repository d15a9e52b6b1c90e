"""What pods tell, brought into PostgreSQL while it comes: files at once, output at most a second later.

Nothing is held for it: what is to be brought is in the copy, and is read there. So a PostgreSQL that is away costs no
memory, slows no pod down, and gets the rest when it is back.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import structlog

from hitchpost import wire
from hitchpost.errors import FAILURES, DatabaseAway, NoSuchSession
from hitchpost.fleet.mirror import Mirror
from hitchpost.store import locks
from hitchpost.store.home import run_folder, session_folder

TOGETHER_S = 1.0
"""Output that comes within so long is one part."""
AGAIN_S = 1.0
PART_BYTES = 1 << 20
MOST_AT_ONCE = 4 << 20
"""Of one run: a session that floods its terminal keeps no other waiting for long."""
LEAVE_S = 5.0

log = structlog.get_logger()
Run = tuple[str, int]
T = TypeVar("T")


class Bringing:
    """``refresh`` is called with a session before its files are brought: what else is to be written down of it.

    What waits is a name for each session and run that has changed, so there is no more of it than there are of those.
    """

    def __init__(self, mirror: Mirror, refresh: Callable[[str], None]) -> None:
        self.mirror, self.refresh = mirror, refresh
        self._sessions: dict[str, float] = {}
        self._runs: dict[Run, float] = {}
        self._since: dict[Run, float] = {}
        """Since when a run has output that PostgreSQL does not."""
        self._ends: dict[Run, dict[str, int]] = {}
        self.shipped_bytes = 0
        """Of output, before it is compressed, since the hub began."""
        self._moved = threading.Condition()
        self._is_leaving = False
        turns = self._bring_files, self._bring_output
        self._threads = [threading.Thread(target=turn, daemon=True) for turn in turns]

    def open(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """What has not been brought by then comes when another replica has a link to the pod."""
        with self._moved:
            self._is_leaving = True
            self._moved.notify_all()
        for thread in self._threads:
            thread.join(LEAVE_S)

    def files_of(self, session: str) -> None:
        self._is_due(self._sessions, session, 0)

    def output_of(self, session: str, run: int, *, now: bool = False) -> None:
        with self._moved:
            self._since.setdefault((session, run), time.monotonic())
        self._is_due(self._runs, (session, run), 0 if now else TOGETHER_S)

    def _is_due(self, waiting: dict[T, float], what: T, in_s: float) -> None:
        """Nobody is woken for what waits already: a flood tells of itself many times in a second."""
        with self._moved:
            at = time.monotonic() + in_s
            if at < waiting.get(what, math.inf):
                waiting[what] = at
                self._moved.notify_all()

    @property
    def waiting(self) -> int:
        """How many sessions and runs have something that PostgreSQL does not."""
        with self._moved:
            return len(self._sessions) + len(self._runs)

    def _next(self, waiting: dict[T, float]) -> T | None:
        """What has been due for longest, once something is; None when this hub leaves."""
        with self._moved:
            while not self._is_leaving:
                due = min(waiting, key=waiting.__getitem__, default=None)
                left_s = None if due is None else waiting[due] - time.monotonic()
                if due is not None and left_s is not None and left_s <= 0:
                    del waiting[due]
                    return due
                self._moved.wait(left_s)
            return None

    @property
    def lag_s(self) -> float:
        """For how long the oldest output waits that PostgreSQL does not have."""
        with self._moved:
            return max((time.monotonic() - since for since in self._since.values()), default=0.0)

    def _bring_files(self) -> None:
        while (session := self._next(self._sessions)) is not None:
            try:
                self.refresh(session)
                self.mirror.tell(session)
            except (locks.Removed, NoSuchSession):
                continue
            except Exception as error:
                self._again("files", session, error)
                self._is_due(self._sessions, session, AGAIN_S)

    def _bring_output(self) -> None:
        while (due := self._next(self._runs)) is not None:
            session, run = due
            began = time.monotonic()
            try:
                is_all = self.bring(session, run, MOST_AT_ONCE)
            except NoSuchSession:
                continue
            except Exception as error:
                self._ends.pop(due, None)
                self._again("output", session, error)
                self._is_due(self._runs, due, AGAIN_S)
            else:
                if not is_all:  # others have their turn first
                    self._is_due(self._runs, due, 0)
                self._brought(due, began)

    def _brought(self, run: Run, began: float) -> None:
        """What has come meanwhile waits since then."""
        with self._moved:
            if run in self._runs:
                self._since[run] = began
            else:
                self._since.pop(run, None)

    def bring(self, session: str, run: int, most_bytes: int | None = None) -> bool:
        """What the copy has of a run's output and PostgreSQL has not, ``most_bytes`` of it; whether that is all.

        Raises ``DatabaseAway`` or ``OSError``.
        """
        folder = os.path.join(run_folder(session_folder(self.mirror.home, session), run), wire.OUTPUT)
        ends = self._ends.get((session, run))
        if ends is None:
            ends = self._ends[session, run] = self.mirror.output.shipped(session, run)
        try:
            names = sorted(os.listdir(folder))
        except FileNotFoundError:
            return True
        left = most_bytes
        for name in names:
            if name == wire.TIMES or wire.segment_offset(name) is not None:
                brought = self._bring_file(session, run, os.path.join(folder, name), name, ends, left)
                left = None if left is None else left - brought
                if left is not None and left <= 0:
                    return False
        return True

    def _bring_file(
        self, session: str, run: int, path: str, name: str, ends: dict[str, int], most_bytes: int | None
    ) -> int:
        """How many bytes there were. A part of the log that was dropped meanwhile is gone."""
        brought = 0
        try:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_size < ends.get(name, 0):
                    ends[name] = 0  # the index of times is rewritten now and then
                file.seek(ends.get(name, 0))
                while (most_bytes is None or brought < most_bytes) and (part := file.read(PART_BYTES)):
                    self.mirror.ship(session, run, name, file.tell() - len(part), part)
                    ends[name] = file.tell()
                    brought += len(part)
                    self.shipped_bytes += len(part)
        except FileNotFoundError:
            return brought
        return brought

    def forget(self, session: str) -> None:
        """It is gone, or another replica watches it."""
        for run in [run for run in self._ends if run[0] == session]:
            self._ends.pop(run, None)
        with self._moved:
            for run in [run for run in self._since if run[0] == session and run not in self._runs]:
                del self._since[run]

    def _again(self, what: str, session: str, error: Exception) -> None:
        """One session that fails keeps no other waiting; a database that is away does."""
        if isinstance(error, DatabaseAway):  # that is told elsewhere, once
            with self._moved:
                self._moved.wait_for(lambda: self._is_leaving, AGAIN_S)
        elif isinstance(error, FAILURES):
            log.warning("cannot be brought into PostgreSQL yet", what=what, session_id=session, error=str(error))
        else:
            log.error("cannot be brought into PostgreSQL", what=what, session_id=session, exc_info=error)
