"""Background work with an owner: no task is lost, and no error of one goes unseen."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog

T = TypeVar("T")
log = structlog.get_logger()


class Tasks:
    """The tasks of one owner.

    Unlike an ``asyncio.TaskGroup``, one that fails does not end the others: its error is logged with the owner's name.
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self._running: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._finished)
        return task

    def cancel(self) -> None:
        """Cancel every task. Each is kept until it has ended."""
        for task in list(self._running):
            task.cancel()

    async def close(self) -> None:
        """Cancel every task and wait until all have ended."""
        self.cancel()
        if others := self._running - {asyncio.current_task()}:
            await asyncio.wait(others)

    async def settle(self, timeout_s: float) -> None:
        """Wait until every task has ended by itself. Those that have not by then are cancelled."""
        if self._running:
            await asyncio.wait(self._running, timeout=timeout_s)
        await self.close()

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed", owner=self.owner, error=repr(error), exc_info=error)
