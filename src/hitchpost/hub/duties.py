"""What a hub does without being asked: telling people, ending idle processes, deleting old records.

On one machine the hub does that. In a fleet one of the hubs does, and another one when that one is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from hitchpost.errors import FAILURES
from hitchpost.hub.core import Hub
from hitchpost.hub.janitor import Janitor
from hitchpost.hub.notifier import Notifier, opened
from hitchpost.hub.tasks import Tasks
from hitchpost.settings import Settings

RETRY_S = 1.0
log = structlog.get_logger()


class Duties:
    """``show`` is called with the notifier that can be asked from now on. ``page`` is for links."""

    def __init__(self, hub: Hub, settings: Settings, page: str, show: Callable[[Notifier], None]) -> None:
        self.hub, self.settings, self.page, self.show = hub, settings, page, show
        self._notifier: Notifier | None = None
        self._janitor: Janitor | None = None
        self._tasks = Tasks("duties")
        self._switching = asyncio.Lock()

    async def open(self) -> None:
        replica = self.hub.replica
        if replica is None:
            return await self._begin()
        await self._stand_by()
        replica.on_lead, replica.on_shared = self._on_lead, self._on_shared
        await self._switch()

    async def close(self) -> None:
        if self.hub.replica is not None:
            self.hub.replica.on_lead, self.hub.replica.on_shared = _ignore_lead, _ignore
        await self._tasks.close()
        if self._notifier is not None:
            await self._notifier.close()
        if self._janitor is not None:
            await self._janitor.shut_down()

    def _on_lead(self, leads: bool) -> None:
        self._tasks.start(self._switch())

    def _on_shared(self) -> None:
        self._tasks.start(self._hear())

    async def _begin(self) -> None:
        self._notifier = await opened(self.hub, self.settings, self.page)
        self.show(self._notifier)
        self._janitor = Janitor(self.hub, self.settings)
        self._janitor.start()

    async def _stand_by(self) -> None:
        """Another hub does it. This one can be asked what that one does."""
        if self._janitor is not None:
            await self._janitor.close()
            self._janitor = None
        if self._notifier is not None:
            await self._notifier.close(leaves=False)
        self._notifier = Notifier(self.hub, self.settings, self.page)
        try:
            await self._notifier.load()
        except FAILURES as error:
            log.error("what was chosen for notifications cannot be read", error=str(error))
        self.show(self._notifier)

    async def _switch(self) -> None:
        """Begin or cease to lead, with what the hub before has left."""
        replica = self.hub.replica
        assert replica is not None
        async with self._switching:
            while replica.leads != (self._janitor is not None):
                try:
                    if replica.leads:
                        await replica.catch_up()
                        await self._retire_notifier()
                        await self._begin()
                    else:
                        await self._stand_by()
                except FAILURES as error:
                    log.warning("the regular jobs wait", error=str(error))
                    await asyncio.sleep(RETRY_S)

    async def _retire_notifier(self) -> None:
        if self._notifier is not None:
            await self._notifier.close(leaves=False)
            self._notifier = None

    async def _hear(self) -> None:
        """Another hub has told somebody, or something else was chosen there."""
        async with self._switching:
            if self._notifier is not None:
                await self._notifier.load()


def _ignore_lead(leads: bool) -> None:
    """The hub leaves."""


def _ignore() -> None:
    """The hub leaves."""
