"""Work that is done in order for each session, while no session waits for another."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import structlog

from hitchpost.hub.tasks import Tasks

Work = Callable[[], Awaitable[None]]
log = structlog.get_logger()


class Lane:
    def __init__(self) -> None:
        self.work: deque[tuple[Work, int]] = deque()
        self.weight = 0


class Lanes:
    """A lane for each session that has work. When ``most`` pieces are in it, or pieces that weigh ``most_weight``,
    ``put`` takes no more."""

    def __init__(self, tasks: Tasks, most: int, most_weight: int | None = None) -> None:
        self._tasks, self._most, self._most_weight = tasks, most, most_weight
        self._lanes: dict[str, Lane] = {}
        self._weight = 0
        self._done = asyncio.Event()

    def is_busy(self, session_id: str) -> bool:
        return session_id in self._lanes

    async def wait_for_room(self, most_lanes: int, most_weight: int) -> None:
        """Until fewer lanes are busy, and all that is in them weighs less."""
        while len(self._lanes) >= most_lanes or self._weight >= most_weight:
            self._done.clear()
            await self._done.wait()

    def put(self, session_id: str, work: Work, weight: int = 0) -> bool:
        """Do the work after all that is in the session's lane. False, and it is not done, when the lane is full."""
        lane = self._lanes.get(session_id)
        if lane is None:
            self._lanes[session_id] = lane = Lane()
            self._tasks.start(self._work_off(session_id, lane))
        elif len(lane.work) >= self._most or (self._most_weight is not None and lane.weight >= self._most_weight):
            return False
        lane.work.append((work, weight))
        lane.weight += weight
        self._weight += weight
        return True

    async def _work_off(self, session_id: str, lane: Lane) -> None:
        try:
            while lane.work:
                work, weight = lane.work[0]
                try:
                    await work()
                except Exception as error:  # the next piece of work is not to blame
                    log.error("a message failed", session_id=session_id, error=repr(error), exc_info=error)
                lane.work.popleft()
                lane.weight -= weight
                self._weight -= weight
                self._done.set()
        finally:
            del self._lanes[session_id]
            self._weight -= lane.weight
            self._done.set()
