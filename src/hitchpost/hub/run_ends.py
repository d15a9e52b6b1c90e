"""Writing down how a run ended when its keeper is gone and could not."""

from __future__ import annotations

import errno
import os
from concurrent.futures import Executor
from typing import Any

import structlog

from hitchpost.errors import FAILURES, DatabaseAway, NoSuchSession
from hitchpost.hub.pools import run_in
from hitchpost.model.status import lives_on
from hitchpost.ops.sessions.recover import recover
from hitchpost.ops.sessions.takeover import NotTakenOver
from hitchpost.ops.views.observe import Observation
from hitchpost.store import locks, runfiles

RETRY_S = 0.25
RETRY_TAKEOVER_S = 3.0
DISK_ERRORS = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EACCES, errno.EPERM)

log = structlog.get_logger()


class RunEnds:
    """``unwritten`` has the sessions whose disk takes no writes, and why."""

    def __init__(self, home: str, threads: Executor) -> None:
        self.home = home
        self.unwritten: dict[str, str] = {}
        self._threads = threads
        self._writing: set[str] = set()

    async def write(self, observation: Observation, reported: dict[str, Any]) -> float | None:
        """Write the end of the run. Returns after how many seconds the session is to be looked at again.

        None when nothing is left to do now: another write is under way, or the disk takes none.
        """
        session_id = observation.record.id
        if session_id in self._writing:
            return None
        self._writing.add(session_id)
        try:
            await run_in(self._threads, _write, self.home, observation, reported)
            self.unwritten.pop(session_id, None)
        except (FileNotFoundError, NoSuchSession):
            return 0.0  # the look will find that out too
        except FAILURES as error:
            number = error.errno if isinstance(error, OSError) else None
            if isinstance(error, DatabaseAway):
                return RETRY_TAKEOVER_S  # the hub says so already
            if number not in DISK_ERRORS:
                log.warning("cannot write down yet what became of a run", session_id=session_id, error=str(error))
                return RETRY_TAKEOVER_S if isinstance(error, NotTakenOver) else RETRY_S
            if session_id not in self.unwritten:
                log.error("cannot write down how a run ended", session_id=session_id, error=str(error))
            self.unwritten[session_id] = os.strerror(number).lower()
            return None
        finally:
            self._writing.discard(session_id)
        return 0.0

    def forget(self, session_id: str) -> None:
        self.unwritten.pop(session_id, None)

    @property
    def problems(self) -> list[str]:
        if not self.unwritten:
            return []
        why = " and ".join(sorted(set(self.unwritten.values())))
        return [f"{len(self.unwritten)} runs have ended and that cannot be written down ({why}); see hitch doctor"]


def _write(home: str, observation: Observation, reported: dict[str, Any]) -> None:
    """Write the exit that the keeper reported and could not write, then the run's final state."""
    if reported:
        with locks.SessionLock(observation.folder):
            if not runfiles.has_exit(observation.run_folder):
                runfiles.write_exit(observation.run_folder, reported)
    recovered = recover(home, observation.record.id, actor="hub")
    if lives_on(recovered.facts):
        raise NotTakenOver(recovered.record)
