"""Work that is done in order for each session, while no session waits for another."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

import structlog

from hitchpost.hub.tasks import Tasks

Work = Callable[[], Awaitable[None]]
log = structlog.get_logger()


class Lanes:
    """A lane for each session that has work. When ``most`` pieces are in it, ``put`` takes no more."""

    def __init__(self, tasks: Tasks, most: int) -> None:
        self._tasks, self._most = tasks, most
        self._lanes: dict[str, deque[Work]] = {}

    def is_busy(self, session_id: str) -> bool:
        return session_id in self._lanes

    def put(self, session_id: str, work: Work) -> bool:
        """Do the work after all that is in the session's lane. False, and it is not done, when the lane is full."""
        lane = self._lanes.get(session_id)
        if lane is None:
            self._lanes[session_id] = lane = deque([work])
            self._tasks.start(self._work_off(session_id, lane))
        elif len(lane) >= self._most:
            return False
        else:
            lane.append(work)
        return True

    async def _work_off(self, session_id: str, lane: deque[Work]) -> None:
        try:
            while lane:
                try:
                    await lane[0]()
                except Exception as error:  # the next piece of work is not to blame
                    log.error("a message failed", session_id=session_id, error=repr(error), exc_info=error)
                lane.popleft()
        finally:
            del self._lanes[session_id]
