"""This hub as one of several over a fleet's PostgreSQL: its home is a copy, kept up to date, of what all of them share.

It hears of changes and brings them into the copy, tells what was written here, watches sessions that no other hub
watches, and leads if no other does. While PostgreSQL is away, what is shown comes from the copy, and nothing can be
changed.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import structlog

from hitchpost import wire
from hitchpost.errors import FAILURES, DatabaseAway
from hitchpost.fleet.copied import HOME
from hitchpost.fleet.database import Database
from hitchpost.fleet.marker import mark
from hitchpost.fleet.mirror import Claim, Mirror
from hitchpost.hub.pools import run_in
from hitchpost.hub.registry import Registry
from hitchpost.hub.session import HubSession
from hitchpost.hub.tasks import Tasks
from hitchpost.model import run as runs
from hitchpost.model.facts import KEPT_BY_ANOTHER_HUB
from hitchpost.model.people import NO_QUOTA, Amounts, Quota
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.runtimes.kept import is_copied, lock_path
from hitchpost.store import locks
from hitchpost.store.home import is_copy, is_id, run_folder
from hitchpost.store.runfiles import read_run
from hitchpost.values import replace

TURN_S = 1.0
"""How often it is looked for sessions that nobody watches: a hub that dies is replaced within that."""
AGAIN_S = 0.25
TELLERS = 4
MOST_BROUGHT = 10_000
LONGEST_HOST = 40
IN_PODS = "pod"

log = structlog.get_logger()
T = TypeVar("T")
Ends = dict[str, int]


class Replica:
    """``on_watch`` and ``on_unwatch`` are called with sessions that this hub watches from now on, or no longer;
    ``on_lead`` when it begins or ceases to lead; ``on_shared`` when other hubs have changed what all share."""

    def __init__(self, home: str, address: str) -> None:
        self.home, self.name = home, replica_name()
        self.database = Database(address, name=self.name)
        self.mirror = Mirror(home, self.database)
        self.on_watch: Callable[[str], None] = lambda session_id: None
        self.on_unwatch: Callable[[str], None] = lambda session_id: None
        self.on_lead: Callable[[bool], None] = lambda leads: None
        self.on_shared: Callable[[], None] = lambda: None
        self.quota_of: Callable[[str], Quota] = lambda person: NO_QUOTA
        self.mirror.quotas.quota_of = lambda person: self.quota_of(person)
        self.reach: Callable[[str], None] = lambda session_id: None
        """Called in the thread of an operation, before it: whoever keeps the session's run can be spoken to then."""
        self.is_told: Callable[[str, int], bool] = is_kept_here
        """Whether the output of a run comes into the copy by itself."""
        self.caught_up_with: Callable[[str], Awaitable[None]] = _nothing_comes
        """Called before somebody looks at output: what comes into the copy by itself has come then."""
        self.wants: Callable[[HubSession], bool] = is_live
        """Whether a session needs somebody who watches it."""
        self.is_starting: Callable[[str], bool] = lambda session_id: False
        """Whether an operation of this hub starts it just now: it is watched, whatever the last look at it has seen."""
        self._unwanted: set[str] = set()
        """At the last turn. What is new may not have been looked at by then."""
        self._registry: Registry | None = None
        self._watched: set[str] = set()
        self._leads = False
        self._is_open = False
        self._is_fresh = False
        """Whether the connection of the claims is new: who watched before comes first."""
        self._changed = asyncio.Event()
        self._news: dict[str, None] = {}
        self._is_telling: set[str] = set()
        self._brought: dict[tuple[str, int], Ends] = {}
        """How much of the output of runs was brought from PostgreSQL."""
        self._tasks = Tasks("replica")
        self._threads = ThreadPoolExecutor(TELLERS + 2, "fleet")

    # its life -----------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Bring the copy up to date. Raises ``HomeRefused``, or ``DatabaseAway`` where there is no copy yet."""
        try:
            await self._do(self._connect)
        except DatabaseAway as error:
            if not is_copy(self.home):
                raise
            log.error("PostgreSQL is away; what is shown may be old", why=error.why)
        self.mirror.open()

    def _connect(self) -> None:
        """Migrations and the mark come first: nothing is touched in a home that is not this fleet's."""
        self.database.open()
        mark(self.home, self.database.fleet, self.database.where)
        self.mirror.catch_up()
        self._is_open = True

    def attach(self, registry: Registry) -> None:
        """Look at sessions as one of several hubs does."""
        self._registry, observer = registry, registry.observer
        observer.look, observer.on_look, observer.follows = self.look, self.tell_soon, self.follows
        observer.may_write_end = self.watches

    def start(self) -> None:
        """Follow the changes of others, and take part in the work."""
        loop = asyncio.get_running_loop()
        self.database.listen(lambda session_id, revision: _call(loop, self._changed.set), 0)
        self._changed.set()
        self._tasks.start(self._follow())
        self._tasks.start(self._take_turns())

    async def close(self) -> None:
        """Give everything up: others take over at once."""
        await self._tasks.close()
        await self._do(self.mirror.close)
        await self._do(self.database.close)
        self._threads.shutdown(wait=False)

    async def _do(self, call: Callable[..., T], *args: Any) -> T:
        return await run_in(self._threads, call, *args)

    @property
    def leads(self) -> bool:
        return self._leads

    @property
    def problems(self) -> list[str]:
        away = self.database.away
        if away is None and self._is_open:
            return []
        since_s, why = away or (time.time(), "not heard yet")
        problem = (
            f"PostgreSQL at {self.database.where} has been away for {time.time() - since_s:.0f} s ({why}); sessions go"
            " on, what is shown may be old, and nothing can be changed until it is back"
        )
        return [problem]

    # hearing ------------------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """For ever: what others have changed comes into the copy, and is looked at."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self.catch_up()
            except FAILURES as error:
                log.warning("the copy could not be brought up to date", error=str(error))
                self._later()
            except Exception as error:
                log.error("the copy could not be brought up to date", error=repr(error), exc_info=error)
                self._later()

    async def catch_up(self) -> None:
        """The copy has every change that was committed before this call. Raises ``DatabaseAway``."""
        changed = await self._do(self.mirror.catch_up if self._is_open else self._connect_and_catch_up)
        assert self._registry is not None
        for session_id in changed:
            if is_id(session_id):
                self._registry.observer.request(session_id)
            else:
                self.on_shared()
        if self.mirror.is_late:
            self._later()

    async def caught_up(self) -> bool:
        """Bring the copy up to date, and look at what is new. False when that cannot be done now."""
        try:
            await self.catch_up()
        except DatabaseAway:
            return False
        assert self._registry is not None
        await self._registry.observer.catch_up()
        return True

    def _connect_and_catch_up(self) -> list[str]:
        self._connect()
        return list(self._registry.by_id) if self._registry is not None else []

    def _later(self) -> None:
        asyncio.get_running_loop().call_later(AGAIN_S, self._changed.set)

    # changing -----------------------------------------------------------------------------------------------------

    def operate(self, session_id: str, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """An operation, in its thread: on files as PostgreSQL has them, and what it leaves is told at its end.

        Its session is locked in the fleet whenever it is locked here, and not while it waits for an agent.
        Raises ``DatabaseAway`` before anything is done.
        """
        self.mirror.refresh(session_id)
        self.reach(session_id)
        try:
            return call(*args, **named)
        finally:
            self._tell(session_id)

    def shared(self) -> AbstractContextManager[None]:
        """Around a change of what all hubs share beside sessions: it is the newest there is, and is told to all at the
        end. Raises ``DatabaseAway``."""
        return self.mirror.working(HOME)

    def used_by(self, people: list[str]) -> dict[str, Amounts]:
        """What each person uses. Raises ``DatabaseAway``."""
        with self.database.connections.connection() as asking:
            return self.mirror.quotas.used(asking, people)

    def check(self) -> None:
        """Raises ``DatabaseAway`` when nothing can be changed now."""
        self.database.revision()

    def making(self, session_id: str) -> AbstractContextManager[Claim]:
        return self.mirror.making(session_id)

    async def share(self) -> None:
        """Tell the others what was written beside sessions. Where that cannot be done now, it is done later."""
        await self._do(self._tell, HOME)

    async def tidy(self) -> None:
        """For who leads, now and then. Raises ``DatabaseAway``."""
        await self.share()
        await self._do(self.mirror.forget_gone)

    def _tell(self, session_id: str) -> None:
        """What cannot be told now is told later: it is written down, and undoes nothing."""
        try:
            self.mirror.tell(session_id)
        except FileNotFoundError:
            return
        except FAILURES as error:
            log.warning("not told to the other hubs yet", session_id=session_id, error=str(error))
            self._news[session_id] = None

    # telling ------------------------------------------------------------------------------------------------------

    def tell_soon(self, session_id: str) -> None:
        """Something may have changed in the copy: tell the others. At most one turn of a session waits."""
        self._news[session_id] = None
        self._tell_next()

    def _tell_next(self) -> None:
        waiting = [session_id for session_id in list(self._news) if session_id not in self._is_telling]
        for session_id in waiting[: max(0, TELLERS - len(self._is_telling))]:
            del self._news[session_id]
            self._is_telling.add(session_id)
            self._tasks.start(self._tell_one(session_id))

    async def _tell_one(self, session_id: str) -> None:
        is_done = True
        try:
            await self._do(self.mirror.tell, session_id)
        except FileNotFoundError:
            pass
        except (DatabaseAway, locks.LockTimeout):
            is_done = False
        except FAILURES as error:
            log.warning("not told to the other hubs", session_id=session_id, error=str(error))
        finally:
            self._is_telling.discard(session_id)
        if is_done:
            self._tell_next()
        else:
            self._news[session_id] = None  # the next turn tries again

    # watching and leading -----------------------------------------------------------------------------------------

    def watches(self, session_id: str) -> bool:
        return session_id in self._watched

    @property
    def watching(self) -> int:
        """How many sessions it watches."""
        return len(self._watched)

    async def watch(self, session_id: str) -> None:
        """Watch a session that was begun here, unless another hub was faster."""
        try:
            await self._do(self.mirror.watch, session_id)
        except DatabaseAway:
            return
        self._compare()

    async def _take_turns(self) -> None:
        while True:
            try:
                await self._turn()
            except DatabaseAway:
                self._is_fresh = True  # what it had it has no more, as soon as somebody else wants it
            except Exception as error:
                log.error("no turn was taken", error=repr(error), exc_info=error)
            await asyncio.sleep(TURN_S)

    async def _turn(self) -> None:
        assert self._registry is not None
        if not self._is_open:
            await self.catch_up()
        wanted = [session.id for session in self._registry.by_id.values() if self.wants(session)]
        if self._is_fresh:
            wanted, self._is_fresh = [each for each in wanted if each in self._watched], False
        await self._do(self.mirror.claims.turn, wanted)
        before = self._unwanted
        self._unwanted = {each for each in list(self.mirror.claims.watched) if not self._is_wanted(each)}
        await self._do(self.mirror.claims.unwatch, self._unwanted & before)
        self._compare()
        self._tell_next()

    def _is_wanted(self, session_id: str) -> bool:
        if self.is_starting(session_id):
            return True
        session = self._registry.by_id.get(session_id) if self._registry is not None else None
        return session is not None and self.wants(session)

    def _compare(self) -> None:
        """Say what is different since the last turn."""
        now = set(self.mirror.claims.watched)
        new, lost, self._watched = now - self._watched, self._watched - now, now
        assert self._registry is not None
        for session_id in new:
            self._registry.observer.request(session_id)
            self.on_watch(session_id)
        for session_id in lost:
            self.on_unwatch(session_id)
        if self._leads != self.mirror.claims.leads:
            self._leads = not self._leads
            log.info("this hub leads" if self._leads else "this hub leads no longer")
            self.on_lead(self._leads)

    # output -------------------------------------------------------------------------------------------------------

    async def bring_output(self, seen: Observation, run: int) -> None:
        """Have the output of a run in the copy, as far as PostgreSQL has it. What is written here already stays so."""
        await self.caught_up_with(seen.folder)
        key = seen.record.id, run
        try:
            found = await self._do(self._bring_output, seen, run, self._brought.get(key))
        except DatabaseAway:
            return  # what is here is shown
        if found is not None:
            self._brought[key] = found
            if len(self._brought) > MOST_BROUGHT:
                del self._brought[next(iter(self._brought))]

    def _bring_output(self, seen: Observation, run: int, had: Ends | None) -> Ends | None:
        """How far it is there now. Its last part may come long after the end of the run is known: while PostgreSQL was
        away, or nobody reached the pod."""
        if self.is_told(seen.folder, run):
            return None
        there = self.mirror.output.shipped(seen.record.id, run)
        if there != had:
            self.mirror.fetch_output(seen.record.id, run)
        return there

    # looking ------------------------------------------------------------------------------------------------------

    def look(self, home: str, session_id: str) -> Observation:
        """As ``observe``. Of a run that another hub has, the keeper cannot be seen from here: that is no sign of its
        end. Only who watches a run may say that its keeper is gone."""
        seen = observe(home, session_id)
        facts = seen.facts
        is_gone = facts.state in runs.LIVE and facts.keeper_alive is False
        if not is_gone or seen.record.runtime == IN_PODS or self.watches(session_id):
            return seen
        unknown = replace(
            facts, keeper_alive=None, probe_failed=True, doubt=KEPT_BY_ANOTHER_HUB, left=0, lost="", exit=None
        )
        return replace(seen, facts=unknown)

    def follows(self, seen: Observation) -> bool:
        """Whether somebody answers at the keeper's socket in this copy."""
        return os.path.exists(os.path.join(seen.run_folder, wire.SOCKET))


def replica_name() -> str:
    """By which it is known to people, in the log and to PostgreSQL: in a cluster, that of its pod comes first."""
    return f"{socket.gethostname()[:LONGEST_HOST]}/{os.getpid()}"


def is_kept_here(session_folder: str, run: int) -> bool:
    return locks.is_held(lock_path(run_folder(session_folder, run))) is not False


async def _nothing_comes(session_folder: str) -> None:
    """Where there is no link to any pod."""


def is_live(session: HubSession) -> bool:
    """A session with a run that somebody has to watch. On this machine's own runtimes only its own hub can."""
    if not session.lives or session.latest is None:
        return False
    if session.latest.record.runtime == IN_PODS:
        return True
    run = read_run(session.latest.run_folder)
    return run is None or not is_copied(run.home, session.latest.folder)


def _call(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        return  # the hub has left
