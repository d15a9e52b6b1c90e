"""Looking at sessions: reading their files in threads, and following their keepers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

import structlog

from hitchpost.errors import FAILURES, HitchpostError, NoSuchSession
from hitchpost.hub.announcements import Announcements
from hitchpost.hub.changes import Changes
from hitchpost.hub.events import Event
from hitchpost.hub.pools import run_in
from hitchpost.hub.run_ends import RunEnds
from hitchpost.hub.session import HubSession
from hitchpost.hub.session_table import SessionTable
from hitchpost.hub.still_runs import StillRuns
from hitchpost.hub.tasks import Tasks
from hitchpost.hub.watching import Watch
from hitchpost.model import run as runs
from hitchpost.ops.views.listing import foreign, is_settled
from hitchpost.ops.views.observe import Observation, as_it_was, ended, exit_of, observe, with_activity
from hitchpost.ops.views.session_types import Session as SessionJson
from hitchpost.store import locks
from hitchpost.store.home import session_folder
from hitchpost.values import replace

RETRY_S = 0.25
LONGEST_WAIT_S = 1.0
"""For looks at what has just changed. One that takes longer, on a disk that hangs, does not hold up the others."""
LOOK_EVENTS = ("state", "exit", "attention", "closed")
"""Of a keeper: after these its session is looked at."""

log = structlog.get_logger()


class Observer:
    """At most one look at a session runs and one more waits: a look that has not begun will see every change so far.

    So what waits is bounded by the number of sessions, and nothing is dropped.
    """

    def __init__(self, home: str, table: SessionTable, announcements: Announcements, changes: Changes) -> None:
        self.home, self.table, self.announcements, self.changes = home, table, announcements, changes
        self.threads = ThreadPoolExecutor(8, "look")
        self._activity_thread = ThreadPoolExecutor(1, "activity")
        self._still = StillRuns(changes)
        self._refreshing = asyncio.Lock()
        self.run_ends = RunEnds(home, self.threads)
        self.look: Callable[[str, str], Observation] = observe
        self.on_look: Callable[[str], None] = lambda session_id: None
        """Called after each look."""
        self.may_write_end: Callable[[str], bool] = lambda session_id: True
        self.follows: Callable[[Observation], bool] = lambda observation: True
        """Whether there is a keeper here to follow."""
        self.lost_inside: dict[str, int] = {}
        """Runs in containers that were looked for inside, and are not there."""
        self._tasks = Tasks("looks")
        self._requested: set[str] = set()
        self._delayed: set[str] = set()
        self._under_way: dict[str, asyncio.Task[HubSession | None]] = {}

    def open(self) -> None:
        self._still.open()

    async def close(self) -> None:
        await self._tasks.close()
        self._still.close()
        for session in self.table.by_id.values():
            if session.watch is not None:
                session.watch.close()
        self.threads.shutdown(wait=False)
        self._activity_thread.shutdown(wait=False)

    # when ---------------------------------------------------------------------------------------------------------

    def request(self, session_id: str, *, quiet: bool = False) -> None:
        """Look soon. The end of a run is reported by its keeper and by three files: one look sees all of it."""
        if session_id not in self._requested:
            self._requested.add(session_id)
            task = self._under_way[session_id] = self._tasks.start(self.look_at(session_id, quiet=quiet))
            task.add_done_callback(partial(self._done, session_id))

    def _done(self, session_id: str, task: asyncio.Task[HubSession | None]) -> None:
        if self._under_way.get(session_id) is task:
            del self._under_way[session_id]
            self._requested.discard(session_id)

    def request_after(self, delay_s: float, session_id: str) -> None:
        """What failed for want of a descriptor or a lock may work in a moment, and nothing else would tell of it."""
        if session_id not in self._delayed:
            self._delayed.add(session_id)
            asyncio.get_running_loop().call_later(delay_s, self._request_delayed, session_id)

    def _request_delayed(self, session_id: str) -> None:
        self._delayed.discard(session_id)
        self.request(session_id)

    async def catch_up(self) -> None:
        """See what others have written by now: the kernel reports it before they hear that it worked."""
        self.changes.read()
        if under_way := list(self._under_way.values()):
            await asyncio.wait(under_way, timeout=LONGEST_WAIT_S)

    # looking ------------------------------------------------------------------------------------------------------

    async def look_at(self, session_id: str, *, quiet: bool = False) -> HubSession | None:
        """Bring a session up to date and announce what is new. None when it is gone."""
        session = self.table.by_id.get(session_id)
        if session is None:
            session = self.table.by_id[session_id] = HubSession(session_id)
            # first the watch, then the look: what changes in between is reported
            await run_in(self.threads, self.changes.watch, session_folder(self.home, session_id))
        async with session.lock:
            self._requested.discard(session_id)
            try:
                observation = await run_in(self.threads, self.look, self.home, session_id)
            except NoSuchSession:
                self._remove(session)
                return None
            except FAILURES as error:
                await self._failed(session, error)
                return session
            self.table.unreadable.pop(session_id, None)
            if is_late(session, observation):
                return session  # the next look is requested already
            self._forget_run_before(session, observation)
            reported = session.exit_reported_for(observation.facts.run)
            observation, keeper_lost = self._completed(observation, reported)
            self.announcements.update(session, observation, quiet=quiet)
            self._follow(session, observation)
        self.on_look(session_id)
        if keeper_lost and self.may_write_end(session_id):
            self._tasks.start(self._write_end(observation, reported, quiet=quiet))
        return session

    def _forget_run_before(self, session: HubSession, found: Observation) -> None:
        before = session.latest
        if before is not None and (before.run_folder != found.run_folder or is_settled(found)):
            self._still.forget(before)

    async def _failed(self, session: HubSession, error: HitchpostError | OSError) -> None:
        log.warning("cannot look at a session", session_id=session.id, error=str(error))
        passes = isinstance(error, OSError | locks.LockTimeout)
        if passes:
            self.request_after(RETRY_S, session.id)
        if not passes or session.latest is None:  # what passes changes nothing about what the last look saw
            self.table.unreadable[session.id] = await run_in(self.threads, foreign, self.home, session.id, error)

    def _completed(self, observation: Observation, reported: dict[str, object]) -> tuple[Observation, bool]:
        """With what only the hub knows, and whether a live run has lost its keeper."""
        facts = observation.facts
        if self.lost_inside.get(observation.record.id) == facts.run and facts.state == runs.RUNNING:
            facts = replace(facts, session_alive=False)
        keeper_lost = facts.keeper_alive is False and facts.state in runs.LIVE
        if keeper_lost and facts.exit is None:
            facts = replace(facts, exit=exit_of(reported))
        return (observation if facts is observation.facts else replace(observation, facts=facts)), keeper_lost

    async def _write_end(self, observation: Observation, reported: dict[str, object], *, quiet: bool) -> None:
        """The end is announced already: nobody who asks for it waits for a lock or a disk."""
        look_after_s = await self.run_ends.write(observation, reported)
        if look_after_s == 0:
            await self.look_at(observation.record.id, quiet=quiet)
        elif look_after_s is not None:
            self.request_after(look_after_s, observation.record.id)

    def _remove(self, session: HubSession) -> None:
        if self.table.by_id.pop(session.id, None) is None:
            return
        if session.watch is not None:
            session.watch.close()
        self.changes.forget(session_folder(self.home, session.id))
        if session.latest is not None:
            self._still.forget(session.latest)
        self.run_ends.forget(session.id)
        self.table.unreadable.pop(session.id, None)
        self.announcements.removed(session)

    async def refresh(self, sessions: Sequence[HubSession]) -> None:
        """Look up what nobody reports: an agent's output, a process that a signal stops, a keeper that just died."""
        async with self._refreshing:
            moved = await self._refresh(sessions)
        await asyncio.gather(*map(self.look_at, moved))

    async def _refresh(self, sessions: Sequence[HubSession]) -> list[str]:
        """Those that have to be looked at. Words are derived anew where facts have changed, or it is time to."""
        self._still.read()
        before = [(session, seen) for session in sessions if (seen := session.latest) and not is_settled(seen)]
        moving = [seen for _, seen in before if not self._still.has(seen)]
        after = await run_in(self._activity_thread, lambda: list(map(self._seen_again, moving))) if moving else []
        fresh_of = {seen.folder: fresh for seen, fresh in zip(moving, after, strict=True)}
        now = datetime.now(UTC)
        moved: list[str] = []
        for session, seen in before:
            fresh = fresh_of.get(seen.folder, seen)
            if fresh is None:
                moved.append(session.id)
            elif session.latest is seen:
                if fresh is not seen or not session.pass_on_to(now):
                    words = _words(session.shape)
                    session.update(fresh, now)
                    if _words(session.shape) != words:
                        self.announcements.reworded(session)
                if seen.folder in fresh_of:
                    self._still.add(fresh)
            elif seen.folder in fresh_of:  # a look has forgotten it, perhaps before the thread watched it
                self._still.forget(seen)
        return moved

    def _seen_again(self, seen: Observation) -> Observation | None:
        """With the time of its last output; None when the session has to be looked at."""
        self._still.watch(seen)
        return with_activity(seen) if as_it_was(seen) else None

    # following ----------------------------------------------------------------------------------------------------

    def _follow(self, session: HubSession, observation: Observation) -> None:
        """Keep a connection to the keeper of the current run, as long as there is one."""
        facts = observation.facts
        if session.watch is not None and (session.watch.run != facts.run or session.watch.over):
            session.watch.close()
            session.watch = None
        if session.watch is None and facts.keeper_alive is True and self.follows(observation):
            on_event = partial(self._on_keeper_event, session, facts.run)
            session.watch = Watch(observation.run_folder, facts.run, on_event)

    def _on_keeper_event(self, session: HubSession, run: int, event: Event) -> None:
        """The files have it already, or will in a moment."""
        kind = event.get("event")
        if kind == "exit":
            session.reported_exit = (run, event["exit"])
            self._announce_reported_end(session, run, event)
        if kind == "resize":
            self.announcements.resized(session, event["cols"], event["rows"])
        if kind in LOOK_EVENTS:
            self.request(session.id)

    def _announce_reported_end(self, session: HubSession, run: int, event: Event) -> None:
        """A keeper writes a run's end before it reports it. The look that finds the files takes longer."""
        before = session.latest
        if before is not None and before.facts.run == run and (observation := ended(before, event)) is not None:
            self.announcements.update(session, observation)


def is_late(session: HubSession, observation: Observation) -> bool:
    """Whether a look began before the keeper reported the run's end, and was done after it."""
    facts = observation.facts
    reported = session.reported_exit is not None and session.reported_exit[0] == facts.run
    return reported and facts.state in runs.LIVE and facts.keeper_alive is True


def _words(shape: SessionJson) -> tuple[str, str, str, int, str | None]:
    """What time and output change of a session's words. How long it has been quiet, whoever reads the words counts."""
    return shape["attention"], shape["quiet_since"] or shape["label"], shape["detail"], shape["rank"], shape["since"]
