"""The pods of a hub: links to all that live, and those that this replica watches.

Every replica has a link to each live pod, for its output and its keeper. One of them watches it: that one has the pod's
files from it, and brings what it tells into PostgreSQL. The others have the files from there, and a flood of output
slowly, unless somebody looks at it there.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import structlog

from hitchpost import wire
from hitchpost.errors import FAILURES
from hitchpost.fleet import frames
from hitchpost.fleet.bringing import Bringing
from hitchpost.fleet.link import OpenStream
from hitchpost.fleet.links import Links
from hitchpost.fleet.mirror import Mirror
from hitchpost.fleet.news import DOWN, OUTPUT, OVER, UP, News
from hitchpost.fleet.tls import Identity
from hitchpost.model import run as runs
from hitchpost.ops.sessions.lost_tail import note_lost_tail
from hitchpost.runtimes.base import Health, Started
from hitchpost.runtimes.pod import Order
from hitchpost.runtimes.pod_file import read_pod
from hitchpost.store import files
from hitchpost.store.home import run_folder, session_folder
from hitchpost.store.session import read_state

TURN_S = 1.0
DOWN_S = 0.7
REACH_S = 5.0
CAUGHT_UP_S = 3.0
NOTICED_S = 10.0
"""By then a hub has looked at a session that was started there."""

log = structlog.get_logger()
Stamp = tuple[int, ...]
Known = tuple[int, bool, bool, bool]


class Place(Protocol):
    """Where the pods are: a ``runtimes.pod.Cluster`` that also says how each is reached."""

    def start(self, order: Order) -> Started: ...
    def health(self, session_folder: str, run: int) -> Health: ...
    def explain(self, session_folder: str, run: int) -> list[tuple[str, str, str]]: ...
    def tear_down(self, session_folder: str) -> None: ...
    def clear_away(self, session_folder: str) -> None: ...
    def abandon(self, session_folder: str) -> None: ...
    def check(self) -> None: ...
    def stream(self, session: str) -> OpenStream: ...
    def refresh(self, session_folder: str) -> bool:
        """Write down what is new of the pod; the caller brings it into PostgreSQL."""

    def note_link(self, session_folder: str, *, up: bool) -> bool: ...


class Pods:
    """A ``runtimes.pod.Cluster`` for the operations of a hub. Made in its event loop; ``place`` is set before ``run``.

    ``live`` gives the sessions that may have a pod. ``on_change`` is called with a session that is to be looked at, in
    the event loop.
    """

    place: Place

    def __init__(
        self, mirror: Mirror, identity: Identity, live: Callable[[], Iterable[str]], on_change: Callable[[str], None]
    ) -> None:
        self.mirror, self.live, self.on_change = mirror, live, on_change
        self.links = Links(identity, self._heard)
        self.bringing = Bringing(mirror, self._refresh)
        self._loop = asyncio.get_running_loop()
        self._watched: set[str] = set()
        """Sessions of which everything was brought that came before they were watched here."""
        self._seen: dict[str, tuple[Stamp, Known]] = {}
        self._starting: Counter[str] = Counter()
        """Sessions that operations start just now: the hub may not have looked at them yet."""
        self._begun: dict[str, float] = {}
        """Sessions that were started since the hub has looked, and until when it will have."""

    async def run(self) -> None:
        """For ever: an error is logged, and the next turn comes all the same."""
        self.bringing.open()
        while True:
            try:
                await self.turn()
            except Exception as error:
                log.error("the pods could not be looked after", error=repr(error))
            await asyncio.sleep(TURN_S)

    async def close(self) -> None:
        await self.links.close()
        await asyncio.to_thread(self.bringing.close)

    # links ----------------------------------------------------------------------------------------------------------

    async def turn(self) -> None:
        """Have a link to each pod that lives, with all that it tells where this replica watches it."""
        live = set(self.live())
        for session, until in list(self._begun.items()):
            if session in live or time.monotonic() >= until:
                self._begun.pop(session, None)
        by_session = await asyncio.to_thread(self._look_at, live)
        for session, known in by_session.items():
            try:
                if not self._is_followed(session, known):
                    await self._follow(session)
                await self._put_right(session, known[3])
            except Exception as error:  # one that fails keeps no other from being followed
                log.error("a pod could not be looked after", session_id=session, exc_info=error)
        for folder in list(self.links.by_folder):
            session = os.path.basename(folder)
            if session not in live and not self.is_starting(session):
                await self._let_go(folder)

    def watches(self, session: str) -> bool:
        return session in self.mirror.claims.watched

    def _look_at(self, sessions: set[str]) -> dict[str, Known]:
        """What is written down of each. Files that are as they were are not read again: there may be thousands."""
        before, self._seen = self._seen, {}
        for session in sessions:
            folder = session_folder(self.mirror.home, session)
            stamp = _stamp(folder)
            seen = before.get(session)
            self._seen[session] = seen if seen is not None and seen[0] == stamp else (stamp, _known(folder))
        return {session: known for session, (_, known) in self._seen.items()}

    def _is_followed(self, session: str, known: Known) -> bool:
        """Whether ``_follow`` would find everything as it should be."""
        folder = session_folder(self.mirror.home, session)
        run, is_live, is_gone, _ = known
        link = self.links.by_folder.get(folder)
        if link is None:
            return is_gone or not run
        if (
            is_gone
            or link.wants != self._wanted(session, folder)
            or self.watches(session) != (session in self._watched)
        ):
            return False
        return not is_live or run in link.over or self.links.stands_in(folder, run)

    async def _follow(self, session: str) -> None:
        folder = session_folder(self.mirror.home, session)
        run, is_live, is_gone, _ = await asyncio.to_thread(_known, folder)
        if is_gone:
            await self._let_go(folder)
            return
        if not run:
            return
        wants = self._wanted(session, folder)
        link = self.links.open(folder, self.place.stream(session), wants=wants)
        self._begin_to_watch(session, run)
        await link.want(wants)
        if is_live and run not in link.over:
            is_new = not self.links.stands_in(folder, run)
            try:
                await self.links.stand_in(link, run)
                if is_new:
                    self.on_change(session)  # it can be watched from now on
            except FAILURES as error:
                log.info("nobody stands in for the keeper yet", session_id=session, run=run, why=str(error))

    def _wanted(self, session: str, folder: str) -> str:
        """All that the pod tells, for who watches it. While PostgreSQL is away nobody knows who does: all stays as it
        was, and who had it has it then."""
        link = self.links.by_folder.get(folder)
        if link is not None and self.mirror.database.away is not None:
            return link.wants
        return frames.ALL if self.watches(session) else frames.OUTPUT

    def _begin_to_watch(self, session: str, run: int) -> None:
        """What came before this replica watched the session is brought, too: there may be no more news of it."""
        if not self.watches(session):
            self._watched.discard(session)
        elif session not in self._watched:
            self._watched.add(session)
            self.bringing.files_of(session)
            self.bringing.output_of(session, run, now=True)

    async def _let_go(self, folder: str) -> None:
        session = os.path.basename(folder)
        self._watched.discard(session)
        if folder in self.links.by_folder:
            await self.links.let_go(folder)
            self.on_change(session)
        self.bringing.forget(session)

    # what is heard: in threads --------------------------------------------------------------------------------------

    def _heard(self, folder: str, news: News) -> None:
        session = os.path.basename(folder)
        if not self.watches(session):
            return
        if news.kind == DOWN:
            self._loop.call_soon_threadsafe(self._loop.call_later, DOWN_S, self._is_down, folder)
            return
        if news.kind == UP:
            self.place.note_link(folder, up=True)
        if news.kind in (OUTPUT, OVER):
            self.bringing.output_of(session, news.run, now=news.kind == OVER)
        if news.kind != OUTPUT:
            self.bringing.files_of(session)
            self._loop.call_soon_threadsafe(self.on_change, session)

    def _is_down(self, folder: str) -> None:
        """A link that was made again at once was never down for anybody."""
        link = self.links.by_folder.get(folder)
        if link is not None and link.down_since is not None:
            self._loop.run_in_executor(None, self._note_down, folder)

    def _note_down(self, folder: str) -> None:
        try:
            self._note(folder, up=False)
        except FAILURES as error:  # a later look finds the link down, too
            session = os.path.basename(folder)
            log.warning("that a pod is not reached could not be written down", session_id=session, error=str(error))
            self._loop.call_soon_threadsafe(self._loop.call_later, TURN_S, self._is_down, folder)

    def _note(self, folder: str, *, up: bool) -> None:
        if self.place.note_link(folder, up=up):
            self.bringing.files_of(os.path.basename(folder))
            self._loop.call_soon_threadsafe(self.on_change, os.path.basename(folder))

    async def _put_right(self, session: str, is_unreached: bool) -> None:
        """A link that was made again while its end was being written down, or before this replica watched it, is up
        all the same."""
        folder = session_folder(self.mirror.home, session)
        link = self.links.by_folder.get(folder)
        if is_unreached and self.watches(session) and link is not None and link.up_since is not None:
            await asyncio.to_thread(lambda: self._note(folder, up=True))

    def changed(self, session: str) -> None:
        """The cluster has told something of the session's pod. For any thread; returns at once."""
        if self.watches(session):
            self.bringing.files_of(session)

    def _refresh(self, session: str) -> None:
        """What the cluster says of the pod is written down before files are brought. Its end ends the link."""
        folder = session_folder(self.mirror.home, session)
        if not self.place.refresh(folder):
            return
        pod = read_pod(folder)
        if pod is not None and pod.ended:
            if note_lost_tail(run_folder(folder, pod.run)):
                self.bringing.output_of(session, pod.run, now=True)
            asyncio.run_coroutine_threadsafe(self._let_go(folder), self._loop)
        self._loop.call_soon_threadsafe(self.on_change, session)

    # what operations ask for: blocking, from their threads ----------------------------------------------------------

    def start(self, order: Order) -> Started:
        session, folder = order.spec.session, order.spec.session_folder
        self._starting[session] += 1
        try:
            is_ours = self.mirror.watch(session)
            started = self.place.start(order)
            if started.kept:
                self._begun[session] = time.monotonic() + NOTICED_S
        finally:
            self._starting[session] -= 1
        if not is_ours and (link := self.links.by_folder.get(folder)) is not None:
            asyncio.run_coroutine_threadsafe(link.want(frames.OUTPUT), self._loop)
        return started

    def is_starting(self, session: str) -> bool:
        """Whether an operation starts it just now, or has, and the hub has not looked at it yet."""
        return bool(self._starting[session]) or session in self._begun

    async def caught_up(self, session_folder: str) -> None:
        """Somebody looks at the output here: what the pod has of it is in the copy."""
        if (link := self.links.by_folder.get(session_folder)) is not None:
            await link.caught_up(CAUGHT_UP_S)

    def reach(self, session: str) -> None:
        """See to it that somebody stands in for the session's keeper here, where it has one."""
        folder = session_folder(self.mirror.home, session)
        if read_pod(folder) is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._follow(session), self._loop).result(REACH_S)
        except TimeoutError:
            log.info("nobody stands in for the keeper in time", session_id=session)

    def health(self, session_folder: str, run: int) -> Health:
        return self.place.health(session_folder, run)

    def explain(self, session_folder: str, run: int) -> list[tuple[str, str, str]]:
        return self.place.explain(session_folder, run)

    def tear_down(self, session_folder: str) -> None:
        self._hear_the_rest(session_folder)
        self.place.tear_down(session_folder)

    def _hear_the_rest(self, session_folder: str) -> None:
        """Before the pod goes: where no replica watches it just now, this one takes what it has told last."""
        session, link = os.path.basename(session_folder), self.links.by_folder.get(session_folder)
        if link is None or not self.links.is_up(session_folder):
            return
        try:
            if self.mirror.watch(session):
                asyncio.run_coroutine_threadsafe(link.want(frames.ALL), self._loop).result(REACH_S)
                self.links.ask(session_folder, {"op": "rest"}, REACH_S)  # its answer comes behind all that it has told
        except (*FAILURES, TimeoutError) as error:
            log.warning("what a pod has told last may not be here", session_id=session, error=str(error))

    def clear_away(self, session_folder: str) -> None:
        self.place.clear_away(session_folder)

    def abandon(self, session_folder: str) -> None:
        self.place.abandon(session_folder)

    def check(self) -> None:
        self.place.check()

    def ask(self, session_folder: str, request: dict[str, object]) -> dict[str, Any]:
        """Of the pod itself, such as what has changed in its folder. Raises ``Silent`` when it cannot be reached."""
        return self.links.ask(session_folder, request)


def _stamp(folder: str) -> Stamp:
    """Of the files that ``_known`` reads. They are never changed in place."""
    found: list[int] = []
    for name in (wire.POD, files.STATE):
        try:
            at = os.stat(os.path.join(folder, name))
        except OSError:
            found += (0, 0)
        else:
            found += (at.st_ino, at.st_mtime_ns)
    return tuple(found)


def _known(folder: str) -> Known:
    """The newest run that was given to the pod, whether it is live, whether the pod is known to be gone, and whether it
    is written down that nobody reaches it."""
    pod = read_pod(folder)
    try:
        state = read_state(folder)
    except files.CannotRead:
        return 0, False, False, False
    given = state.run if pod is None else min(state.run, pod.run)
    is_live = state.run == given and state.state in runs.LIVE
    return given, is_live, pod is not None and pod.ended, pod is not None and pod.unreachable_since is not None
