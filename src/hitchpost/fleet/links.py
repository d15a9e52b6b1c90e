"""All links of a hub, and the stand-ins on them. Operations call from their threads; the event loop does the work."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from hitchpost.errors import FAILURES
from hitchpost.fleet import frames
from hitchpost.fleet.link import OpenStream, PodLink
from hitchpost.fleet.news import News
from hitchpost.fleet.standin import StandIn
from hitchpost.fleet.tls import Identity
from hitchpost.runspec import RunSpec
from hitchpost.runtimes.base import Started
from hitchpost.runtimes.link import Silent
from hitchpost.store import files, records
from hitchpost.store.session import Session
from hitchpost.store.statefile import read_state
from hitchpost.values import asdict, replace

T = TypeVar("T")
START_S = 60.0
ASK_S = 10.0
LOOK_S = 0.01
THREADS = 4
OF_PLACE = ("folder", "branch", "base")
"""What a pod may say of where it works. Which repository that is a clone of is not its to say: the next pod clones what
stands in the record, with the team's credentials."""
LONGEST_WORDS = 4096


class Links:
    """Made in the event loop. ``on_news`` is called with a session's folder and what is new of it, in a thread."""

    def __init__(self, identity: Identity, on_news: Callable[[str, News], None]) -> None:
        self.identity, self.on_news = identity, on_news
        self.by_folder: dict[str, PodLink] = {}
        self._standins: dict[str, dict[int, StandIn]] = {}
        self._taking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Of sessions whose keeper's place is just being taken."""
        self._past_reconnects = 0
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(THREADS, "links")

    # in the event loop --------------------------------------------------------------------------------------------

    def open(self, session_folder: str, open_stream: OpenStream, *, wants: str = frames.ALL) -> PodLink:
        """The link to the session's pod, which is made when there is none."""
        link = self.by_folder.get(session_folder)
        if link is None:
            link = self.by_folder[session_folder] = PodLink(
                session_folder,
                open_stream,
                lambda news: self.on_news(session_folder, news),
                identity=self.identity,
                wants=wants,
                pool=self._pool,
            )
            link.open()
        else:
            link.open_stream = open_stream
        return link

    async def stand_in(self, link: PodLink, run: int, lock_fd: int | None = None) -> StandIn:
        """In the keeper's place from now on. With ``lock_fd``, who starts the run has the keeper's lock already.

        Who tries at the same time comes after: one that is refused the lock takes nobody else's place along.
        """
        async with self._taking.setdefault(link.session_folder, asyncio.Lock()):
            standins = self._standins.setdefault(link.session_folder, {})
            if self.stands_in(link.session_folder, run):
                return standins[run]
            standin = standins[run] = StandIn(link, run)
            try:
                await self._loop.run_in_executor(self._pool, standin.hold, lock_fd)
                await standin.listen()
            except BaseException:
                standin.end()
                raise
            return standin

    def stands_in(self, session_folder: str, run: int) -> bool:
        standin = self._standins.get(session_folder, {}).get(run)
        return standin is not None and not standin.is_over

    async def let_go(self, session_folder: str) -> None:
        """The cluster says that the pod is gone, or the session is removed: whatever ran there does not run now."""
        for standin in self._standins.pop(session_folder, {}).values():
            standin.end()
        if (link := self.by_folder.pop(session_folder, None)) is not None:
            self._past_reconnects += link.reconnects
            await link.close()

    async def close(self) -> None:
        for session_folder in [*self.by_folder]:
            await self.let_go(session_folder)
        self._pool.shutdown(wait=False)

    # from the threads of operations -------------------------------------------------------------------------------

    def _wait(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return waiting.result(timeout_s)
        except TimeoutError:
            waiting.cancel()
            raise Silent("the hub's links do not answer in time") from None

    def ask(self, session_folder: str, request: dict[str, object], timeout_s: float = ASK_S) -> dict[str, Any]:
        """Raises ``Silent`` when the pod cannot be reached, or there is no link to it."""
        link = self.by_folder.get(session_folder)
        if link is None:
            raise Silent("there is no link to the pod")
        return self._wait(link.ask(request, timeout_s), timeout_s + ASK_S)

    @property
    def reconnects(self) -> int:
        """How often a link was made again that had been up, since the hub began."""
        return self._past_reconnects + sum(link.reconnects for link in self.by_folder.values())

    def is_up(self, session_folder: str) -> bool:
        link = self.by_folder.get(session_folder)
        return link is not None and link.up_since is not None

    def forget(self, session_folder: str) -> None:
        self._wait(self.let_go(session_folder), ASK_S)

    def start(
        self,
        spec: RunSpec,
        open_stream: OpenStream,
        timeout_s: float = START_S,
        given_up: Callable[[], str] = lambda: "",
    ) -> Started:
        """Begin a run in its session's pod, which is there or will be soon. The order may be given again: a pod begins
        a run once.

        ``kept`` is False in the answer when the pod has not begun it, or has ended. ``given_up`` says why it never will
        answer, once that is known.
        """
        session_folder = spec.session_folder
        deadline = time.monotonic() + timeout_s
        try:
            order = _order(spec)
            link, standin = self._wait(self._prepare(spec, open_stream), timeout_s)
        except FAILURES as error:
            return Started(None, str(error), kept=False, field=getattr(error, "field", ""))
        while True:
            while not self.is_up(session_folder) and not link.is_closed and time.monotonic() < deadline:
                if why := given_up():
                    self._wait(_end(standin), ASK_S)
                    return Started(None, why, kept=False)
                time.sleep(LOOK_S)
            try:
                answer = self.ask(session_folder, order, max(0.1, deadline - time.monotonic()))
                break
            except Silent as error:
                if time.monotonic() >= deadline or link.is_closed:
                    return self._unanswered(link, standin, given_up() or str(error))
        if answer.get("ok") is True:
            _note_place(session_folder, answer.get("place"))
            pid = answer.get("pid")
            return Started(pid if isinstance(pid, int) else 0)
        why, kept = str(answer.get("error"))[:LONGEST_WORDS], answer.get("kept") is not False
        if not kept:
            self._wait(_end(standin), ASK_S)
        return Started(None, why, kept=kept, field=str(answer.get("field") or ""))

    async def _prepare(self, spec: RunSpec, open_stream: OpenStream) -> tuple[PodLink, StandIn]:
        link = self.open(spec.session_folder, open_stream)
        return link, await self.stand_in(link, spec.run, spec.lock_fd)

    def _unanswered(self, link: PodLink, standin: StandIn, why: str) -> Started:
        """A pod that was never reached has begun nothing. One that was may have: then that is not known."""
        if not link.was_up:
            self._wait(_end(standin), ASK_S)
            return Started(None, why, kept=False)
        return Started(None, why)


def _note_place(session_folder: str, told: object) -> None:
    """Where the session works in its pod, for those who show it."""
    if not isinstance(told, dict):
        return
    found = {name: told[name] for name in OF_PLACE if _is_word(told.get(name))}
    if not str(found.get("folder", "/")).startswith("/"):
        return
    stored = Session(session_folder, actor="pod")
    with stored.lock():
        record = stored.record()
        if any(getattr(record, name) != text for name, text in found.items()):
            stored.save(replace(record, **found))


def _is_word(told: object) -> bool:
    return isinstance(told, str) and 0 < len(told) <= LONGEST_WORDS and "\0" not in told


async def _end(standin: StandIn) -> None:
    standin.end()


def _order(spec: RunSpec) -> dict[str, object]:
    """What a pod needs to know of a run. The environment is in it, and goes nowhere but through the link."""
    folder = spec.session_folder
    return {
        "op": "start",
        "run": spec.run,
        "record": {"schema": files.SCHEMA, **asdict(records.read(folder))},
        "state": read_state(folder),
        "argv": [os.fsdecode(word) for word in spec.argv],
        "env": {os.fsdecode(name): os.fsdecode(text) for name, text in spec.env.items()},
        "size": [spec.cols, spec.rows],
        "log_cap_bytes": spec.log_cap_bytes,
        "pids_max": spec.pids_max,
        "memory_max_bytes": spec.memory_max_bytes,
    }
