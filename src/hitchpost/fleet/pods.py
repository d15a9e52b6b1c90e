"""The pods of a hub: links to all that live, and those that this replica watches.

Every replica has a link to each live pod, for its output and its keeper. One of them watches it: that one has the pod's
files from it, and brings what it tells into PostgreSQL. The others have the files from there.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import structlog

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

log = structlog.get_logger()


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
        for session in live:
            try:
                await self._follow(session)
            except Exception as error:  # one that fails keeps no other from being followed
                log.error("a pod could not be looked after", session_id=session, exc_info=error)
        for folder in [folder for folder in self.links.by_folder if os.path.basename(folder) not in live]:
            await self._let_go(folder)

    def watches(self, session: str) -> bool:
        return session in self.mirror.claims.watched

    async def _follow(self, session: str) -> None:
        folder = session_folder(self.mirror.home, session)
        run, is_live, is_gone = await asyncio.to_thread(_known, folder)
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
        session = os.path.basename(folder)
        try:
            if not self.place.note_link(folder, up=False):
                return
        except FAILURES as error:  # a later look finds the link down, too
            log.warning("that a pod is not reached could not be written down", session_id=session, error=str(error))
            self._loop.call_soon_threadsafe(self._loop.call_later, TURN_S, self._is_down, folder)
            return
        self.bringing.files_of(session)
        self._loop.call_soon_threadsafe(self.on_change, session)

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
        is_ours = self.mirror.watch(session)
        started = self.place.start(order)
        if not is_ours and (link := self.links.by_folder.get(folder)) is not None:
            asyncio.run_coroutine_threadsafe(link.want(frames.OUTPUT), self._loop)
        return started

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
                self.links.ask(session_folder, {"op": "ping"}, REACH_S)  # its answer comes behind all that it has told
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


def _known(folder: str) -> tuple[int, bool, bool]:
    """The newest run that was given to the pod, whether it is live, and whether the pod is known to be gone."""
    pod = read_pod(folder)
    try:
        state = read_state(folder)
    except files.CannotRead:
        return 0, False, False
    given = state.run if pod is None else min(state.run, pod.run)
    is_live = state.run == given and state.state in runs.LIVE
    return given, is_live, pod is not None and pod.ended
