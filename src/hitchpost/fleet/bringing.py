"""What pods tell, brought into PostgreSQL while it comes: files at once, output at most a second later.

Nothing is held for it: what is to be brought is in the copy, and is read there. So a PostgreSQL that is away costs no
memory, slows no pod down, and gets the rest when it is back.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import structlog

from hitchpost import wire
from hitchpost.errors import FAILURES, DatabaseAway
from hitchpost.fleet.mirror import Mirror
from hitchpost.store import locks
from hitchpost.store.home import run_folder, session_folder

TOGETHER_S = 1.0
"""Output that comes within so long is one part."""
AGAIN_S = 1.0
PART_BYTES = 1 << 20
LEAVE_S = 5.0

log = structlog.get_logger()
Run = tuple[str, int]


class Bringing:
    """``refresh`` is called with a session before its files are brought: what else is to be written down of it.

    What waits is a name for each session and run that has changed, so there is no more of it than there are of those.
    """

    def __init__(self, mirror: Mirror, refresh: Callable[[str], None]) -> None:
        self.mirror, self.refresh = mirror, refresh
        self._sessions: dict[str, None] = {}
        self._runs: dict[Run, float] = {}
        self._since: dict[Run, float] = {}
        """Since when a run has output that PostgreSQL does not."""
        self._ends: dict[Run, dict[str, int]] = {}
        self.shipped_bytes = 0
        """Of output, before it is compressed, since the hub began."""
        self._moved = threading.Condition()
        self._is_leaving = False
        self._threads = [threading.Thread(target=turn, daemon=True) for turn in (self._bring_files, self._bring_output)]

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
        with self._moved:
            self._sessions[session] = None
            self._moved.notify_all()

    def output_of(self, session: str, run: int, *, now: bool = False) -> None:
        with self._moved:
            at = time.monotonic() + (0 if now else TOGETHER_S)
            self._since.setdefault((session, run), time.monotonic())
            self._runs[session, run] = min(at, self._runs.get((session, run), at))
            self._moved.notify_all()

    @property
    def waiting(self) -> int:
        """How many sessions and runs have something that PostgreSQL does not."""
        with self._moved:
            return len(self._sessions) + len(self._runs)

    @property
    def lag_s(self) -> float:
        """For how long the oldest output waits that PostgreSQL does not have."""
        with self._moved:
            return max((time.monotonic() - since for since in self._since.values()), default=0.0)

    # files ----------------------------------------------------------------------------------------------------------

    def _bring_files(self) -> None:
        while (session := self._next_session()) is not None:
            try:
                self.refresh(session)
                self.mirror.tell(session)
            except locks.Removed:
                continue
            except FAILURES as error:
                self._again("files", session, error)
                self.files_of(session)

    def _next_session(self) -> str | None:
        with self._moved:
            self._moved.wait_for(lambda: self._sessions or self._is_leaving)
            if self._is_leaving:
                return None
            session = next(iter(self._sessions))
            del self._sessions[session]
            return session

    # output ---------------------------------------------------------------------------------------------------------

    def _bring_output(self) -> None:
        while (due := self._next_run()) is not None:
            session, run = due
            began = time.monotonic()
            try:
                self.bring(session, run)
                self._brought(due, began)
            except FAILURES as error:
                self._ends.pop(due, None)
                self._again("output", session, error)
                self.output_of(session, run)

    def _next_run(self) -> Run | None:
        with self._moved:
            while not self._is_leaving:
                if self._runs:
                    due = min(self._runs, key=self._runs.__getitem__)
                    left_s = self._runs[due] - time.monotonic()
                    if left_s <= 0:
                        del self._runs[due]
                        return due
                    self._moved.wait(left_s)
                else:
                    self._moved.wait()
            return None

    def _brought(self, run: Run, began: float) -> None:
        """What has come meanwhile waits since then."""
        with self._moved:
            if run in self._runs:
                self._since[run] = began
            else:
                self._since.pop(run, None)

    def bring(self, session: str, run: int) -> None:
        """All that the copy has of a run's output and PostgreSQL has not. Raises ``DatabaseAway`` or ``OSError``."""
        folder = os.path.join(run_folder(session_folder(self.mirror.home, session), run), wire.OUTPUT)
        ends = self._ends.get((session, run))
        if ends is None:
            ends = self._ends[session, run] = self.mirror.output.shipped(session, run)
        try:
            names = sorted(os.listdir(folder))
        except FileNotFoundError:
            return
        for name in names:
            if name == wire.TIMES or wire.segment_offset(name) is not None:
                self._bring_file(session, run, os.path.join(folder, name), name, ends)

    def _bring_file(self, session: str, run: int, path: str, name: str, ends: dict[str, int]) -> None:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size < ends.get(name, 0):
                ends[name] = 0  # the index of times is rewritten now and then
            file.seek(ends.get(name, 0))
            while part := file.read(PART_BYTES):
                self.mirror.ship(session, run, name, file.tell() - len(part), part)
                ends[name] = file.tell()
                self.shipped_bytes += len(part)

    def forget(self, session: str) -> None:
        """It is gone, or another replica watches it."""
        for run in [run for run in self._ends if run[0] == session]:
            self._ends.pop(run, None)
        with self._moved:
            for run in [run for run in self._since if run[0] == session and run not in self._runs]:
                del self._since[run]

    def _again(self, what: str, session: str, error: BaseException) -> None:
        if not isinstance(error, DatabaseAway):  # that is told elsewhere, once
            log.warning("cannot be brought into PostgreSQL yet", what=what, session_id=session, error=str(error))
        with self._moved:
            self._moved.wait_for(lambda: self._is_leaving, AGAIN_S)
