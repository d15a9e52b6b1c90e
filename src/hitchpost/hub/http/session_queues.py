"""Work that is done in order for each session, while no session waits for another."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import structlog

from hitchpost.hub.tasks import Tasks

Work = Callable[[], Awaitable[None]]
log = structlog.get_logger()


class SessionQueue:
    def __init__(self) -> None:
        self.work: deque[tuple[Work, int]] = deque()
        self.weight = 0


class SessionQueues:
    """A queue for each session that has work. When ``most`` pieces are in it, or pieces that weigh ``most_weight``,
    ``put`` takes no more."""

    def __init__(self, tasks: Tasks, most: int, most_weight: int | None = None) -> None:
        self._tasks, self._most, self._most_weight = tasks, most, most_weight
        self._queues: dict[str, SessionQueue] = {}
        self._weight = 0
        self._done = asyncio.Event()

    def is_busy(self, session_id: str) -> bool:
        return session_id in self._queues

    async def wait_for_room(self, most_queues: int, most_weight: int) -> None:
        """Until fewer queues are busy, and all that is in them weighs less."""
        while len(self._queues) >= most_queues or self._weight >= most_weight:
            self._done.clear()
            await self._done.wait()

    def put(self, session_id: str, work: Work, weight: int = 0) -> bool:
        """Do the work after all that is in the session's queue. False, and it is not done, when the queue is full."""
        queue = self._queues.get(session_id)
        if queue is None:
            self._queues[session_id] = queue = SessionQueue()
            self._tasks.start(self._work_off(session_id, queue))
        elif len(queue.work) >= self._most or (self._most_weight is not None and queue.weight >= self._most_weight):
            return False
        queue.work.append((work, weight))
        queue.weight += weight
        self._weight += weight
        return True

    async def _work_off(self, session_id: str, queue: SessionQueue) -> None:
        try:
            while queue.work:
                work, weight = queue.work[0]
                try:
                    await work()
                except Exception as error:  # the next piece of work is not to blame
                    log.error("a message failed", session_id=session_id, error=repr(error), exc_info=error)
                queue.work.popleft()
                queue.weight -= weight
                self._weight -= weight
                self._done.set()
        finally:
            del self._queues[session_id]
            self._weight -= queue.weight
            self._done.set()
