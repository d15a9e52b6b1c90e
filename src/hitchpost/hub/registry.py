"""The table of sessions, kept up to date: what the kernel and the keepers report is looked at and announced."""

from __future__ import annotations

import os

from hitchpost import wire
from hitchpost.hub.adoption import Adoption
from hitchpost.hub.announcements import Announcements
from hitchpost.hub.changes import Changes
from hitchpost.hub.events import Events
from hitchpost.hub.observer import Observer
from hitchpost.hub.rescan import Rescan
from hitchpost.hub.session import HubSession
from hitchpost.hub.session_table import SessionTable
from hitchpost.hub.tasks import Tasks
from hitchpost.store import files, records
from hitchpost.store.home import is_id, sessions_folder
from hitchpost.store.session import CHANGES, SEEN

WATCHED_FILES = (files.STATE, records.RECORD, SEEN, CHANGES, wire.POD)


class Registry(SessionTable):
    """``events`` tells what becomes of the sessions."""

    def __init__(self, home: str) -> None:
        super().__init__()
        self.home = home
        self.events = Events()
        self.announcements = Announcements(self.events)
        self._changes = Changes(self._changed)
        self.observer = Observer(home, self, self.announcements, self._changes)
        self.rescan = Rescan(home, self.observer, self._changes, self.refresh)
        self._tasks = Tasks("registry")

    async def open(self) -> None:
        """Adopt every session, and follow them from now on."""
        self._changes.open()
        self.observer.open()
        adoption = Adoption(self.home, self.observer, self._changes)
        index = await adoption.run()
        self._tasks.start(self.rescan.run())
        self._tasks.start(adoption.finish(index))

    async def close(self) -> None:
        await self._tasks.close()
        await self.observer.close()
        self._changes.close()

    @property
    def problems(self) -> list[str]:
        """What keeps the hub from its work, for people."""
        return [*self.rescan.problems, *self.observer.run_ends.problems]

    async def look_at(self, session_id: str) -> HubSession | None:
        """Bring a session up to date now. None when it is gone."""
        return await self.observer.look_at(session_id)

    async def load(self, name: str) -> None:
        """See to it that ``get`` and ``find`` know all of a session as it is now. Whoever asks finds out if there is
        none."""
        await self.observer.catch_up()
        session = self.find_unopened(name)
        if session is None:
            return
        if session.latest is None and session.line:
            await self.look_at(session.id)
        await self.observer.refresh((session,))

    async def refresh(self) -> None:
        """Give every session the words that hold now. Call it before you read them."""
        await self.observer.catch_up()
        await self.observer.refresh(tuple(self.by_id.values()))

    def _changed(self, folder: str, name: str) -> None:
        if folder == "":  # reports were lost
            self._tasks.start(self.rescan.request_new_and_removed())
            for session_id in list(self.by_id):
                self.observer.request(session_id)
        elif folder == sessions_folder(self.home):
            if is_id(name):
                self.observer.request(name)
        elif name in WATCHED_FILES:
            self.observer.request(os.path.basename(folder))
