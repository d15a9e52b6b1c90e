"""What the hub can do for its clients: sessions, operations on them, and their streams."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from hitchpost import settings as config
from hitchpost.errors import FAILURES, HitchpostError, NoSuchSession, Refused
from hitchpost.hub.chats import Chats
from hitchpost.hub.containers import Containers
from hitchpost.hub.pools import ENDS, GIT, LOOKS, STARTS, WAITS, Pools
from hitchpost.hub.registry import Registry
from hitchpost.hub.screens import Screens
from hitchpost.hub.session import HubSession
from hitchpost.hub.streams import Keys, Viewer
from hitchpost.hub.tasks import Tasks
from hitchpost.hub.trees import Trees
from hitchpost.hub.watching import Watch
from hitchpost.model import run as runs
from hitchpost.model.facts import is_elsewhere
from hitchpost.model.people import NO_QUOTA, Amounts, Quota
from hitchpost.model.status import rests
from hitchpost.ops.sessions.cancel import cancel
from hitchpost.ops.sessions.fork import fork
from hitchpost.ops.sessions.go_on import go_on
from hitchpost.ops.sessions.launch import launch
from hitchpost.ops.sessions.prompt import prompt
from hitchpost.ops.sessions.remove import archive, remove, unarchive
from hitchpost.ops.sessions.restart import restart
from hitchpost.ops.sessions.resume import resume
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.start import Begun
from hitchpost.ops.sessions.stop import stop
from hitchpost.ops.views.find import output_of
from hitchpost.store.home import session_folder
from hitchpost.store.index import owner_of
from hitchpost.store.session import Session
from hitchpost.terminal.emulators import Emulators
from hitchpost.terminal.screen import Losses
from hitchpost.text import readable

if TYPE_CHECKING:
    from hitchpost.hub.pods import HubPods
    from hitchpost.hub.replica import Replica

log = structlog.get_logger()
T = TypeVar("T")
ACTOR = "hub"
"""Who did it, in the story of a session, when the hub acted by itself."""
SPARE_DESCRIPTORS = 32
WARM_UP_AFTER_S = 0.3
REACH_S, WATCH_LOOK_S = 3.0, 0.05
MOST_SCREENS, MOST_REPLAYS = 16, 4


def check_room() -> None:
    """Raises ``OSError`` when few descriptors are left: a run is not begun that could not be begun to its end."""
    spare: list[int] = []
    try:
        while len(spare) < SPARE_DESCRIPTORS:
            spare.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise OSError(error.errno, f"{why}: the hub has no room for new work; close sessions or viewers") from None
    finally:
        for fd in spare:
            os.close(fd)


def _log_loss(output_folder: str, count: int, why: str) -> None:
    session, run = output_folder.split(os.sep)[-4:-1:2]
    log.warning("screen lost", session_id=session, run=int(run), losses=count, why=why)


class Hub:
    """``replica`` is there where several hubs share their sessions: then the home is a copy, and what changes a session
    is done in the whole fleet."""

    def __init__(self, home: str, replica: Replica | None = None) -> None:
        self.home, self.replica = home, replica
        self.pods: HubPods | None = None
        self.registry = Registry(home)
        if replica is not None:
            replica.attach(self.registry)
        self.containers = Containers(self.registry)
        self.emulators = Emulators()
        self.lost_screens = Losses(_log_loss)
        self.screens = Screens("screen", MOST_SCREENS, self.emulators, self.lost_screens)
        self.replays = Screens("replay", MOST_REPLAYS, self.emulators, self.lost_screens)
        self.trees = Trees(home, self.look_at_files_of)
        self.chats = Chats(self.do)
        self.began = time.monotonic()
        self.failing: dict[str, str] = {}
        """Regular jobs that could not be done the last time, and why."""
        self.quota_of: Callable[[str], Quota] = lambda person: NO_QUOTA
        """What a person may use; asked in threads."""
        if replica is not None:
            replica.quota_of = lambda person: self.quota_of(person)
        self._beginning: dict[str, asyncio.Lock] = {}
        """Of people with a quota: held while a run of theirs begins."""
        self._keys: dict[tuple[str, int], Keys] = {}
        self._pools = Pools()
        self._starts = Tasks("starts")
        self._warm_up: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        if self.replica is not None:
            await self.replica.open()
        await self.registry.open()
        if self.replica is not None:
            from hitchpost.hub.pods import HubPods

            self.replica.start()
            self.pods = HubPods(self.home, self.replica, self.registry)
            self.pods.start()
        self.containers.start()

    async def close(self) -> None:
        if self._warm_up is not None:
            self._warm_up.cancel()
        await self._starts.close()
        await self.containers.close()
        for keys in self._keys.values():
            keys.close()
        self.trees.close()
        self.chats.close()
        if self.pods is not None:
            await self.pods.close()
        if self.replica is not None:
            await self.replica.close()
        await self.registry.close()
        self.screens.close()
        self.replays.close()
        self.emulators.close()
        self._pools.close()

    def expect_viewers(self) -> None:
        """Somebody is there, and will look at a terminal soon: make an emulator ready, which takes half a second."""
        if self._warm_up is None:
            self._warm_up = asyncio.get_running_loop().call_later(WARM_UP_AFTER_S, self.screens.warm_up)

    @property
    def problems(self) -> list[str]:
        """What keeps the hub from its work, for people."""
        jobs = [f"{job} failed and will be tried again: {why}" for job, why in self.failing.items()]
        away = [] if self.replica is None else self.replica.problems
        away += [] if self.pods is None else self.pods.problems
        return [*away, *self.registry.problems, *jobs]

    # operations -------------------------------------------------------------------------------------------------

    async def do(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """Something that looks at files, in a thread: it waits for disks and locks."""
        return await self._pools.do(LOOKS, call, *args, **named)

    async def change(self, session: str, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """As ``do``, for what changes a session."""
        return await self._pools.do(LOOKS, self._operation(session, call), *args, **named)

    async def _start(self, session: str, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """What begins a run, or may. Raises ``QuotaReached``."""
        known = self.registry.get(session)
        async with self._room(known.observation.record.owner, is_running=known.lives):
            return await self._begin(session, call, *args, **named)

    async def _begin(self, session: str, call: Callable[..., T], *args: Any, **named: Any) -> T:
        await self._check_place(self.registry.get(session).observation.record.runtime)
        operation = self._operation(session, call)
        try:
            return await self._pools.do_for(session, STARTS, operation, self.home, session, *args, **named)
        finally:
            await self._watch(session)

    async def _end(self, session: str, call: Callable[..., T], **named: Any) -> T:
        return await self._pools.do_for(session, ENDS, self._operation(session, call), self.home, session, **named)

    def _operation(self, session: str, call: Callable[..., T]) -> Callable[..., T]:
        """In a fleet: on the session as it is there, and told to all before it is answered."""
        return call if self.replica is None else partial(self.replica.operate, session, call)

    async def _watch(self, session: str) -> None:
        """What was begun here is watched from here."""
        if self.replica is not None:
            await self.replica.watch(session)

    def watches(self, session: str) -> bool:
        """Whether what happens to the session is this hub's business: in a fleet, one hub's."""
        return self.replica is None or self.replica.watches(session)

    async def tidy(self) -> None:
        """What retention has written is known to all hubs of the fleet, and what all of them know to be gone, goes."""
        if self.replica is not None:
            await self.replica.tidy()

    async def share(self) -> None:
        """What was written beside sessions, such as what people were told, is known to all hubs of the fleet."""
        if self.replica is not None:
            await self.replica.share()

    async def look_at_files(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """What asks git, in threads of its own: agents decide how long that takes, and nothing else waits for it."""
        return await self._pools.do(GIT, call, *args, **named)

    async def look_at_files_of(self, session: str, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """The same, in the session's turn: its looks do not take all of those threads."""
        return await self._pools.do_for(session, GIT, call, *args, **named)

    async def change_files_of(self, session: str, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """The same, for what changes the session, too."""
        return await self._pools.do_for(session, GIT, self._operation(session, call), *args, **named)

    async def wait(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """What waits for a session, for a short time: who wants to wait longer asks again."""
        return await self._pools.do(WAITS, call, *args, **named)

    async def find(self, name: str) -> HubSession:
        """As ``registry.find``. One that this hub does not know may just have been made at another one of the fleet."""
        try:
            return self.registry.find(name)
        except NoSuchSession:
            if not await self.is_caught_up():
                raise
        return self.registry.find(name)

    async def is_caught_up(self) -> bool:
        """In a fleet: look for what was made at other hubs. False where there are none, or when that cannot be done."""
        return self.replica is not None and await self.replica.caught_up()

    async def after(self, session: str) -> HubSession:
        """The session as it is at this moment, after an operation or before it. Raises ``NoSuchSession``."""
        await self.registry.look_at(session)
        return self.registry.get(session)

    async def create(
        self,
        spec: SessionSpec,
        *,
        actor: str,
        until_ready: bool = True,
        begun: Callable[[str], None] = lambda session: None,
    ) -> tuple[HubSession, list[str]]:
        """``begun`` is called in a thread, with the session's id, when its run has begun."""
        await self._check_place(spec.runtime)
        await self._check_most()
        how: dict[str, Any] = {"actor": actor, "caller": os.environ, "until_ready": until_ready, "begun": begun}
        if self.replica is not None:
            how["making"] = self.replica.making
        async with self._room(spec.owner):
            seen, notes = await self._pools.do(STARTS, launch, self.home, spec, **how)
            await self._watch(seen.record.id)
            return await self.after(seen.record.id), notes

    async def create_in_steps(
        self, spec: SessionSpec, *, actor: str
    ) -> tuple[HubSession, asyncio.Task[tuple[HubSession, list[str]] | HitchpostError | OSError]]:
        """The session once its run has begun, and what becomes of it until its agent is ready, however long its client
        waits. Raises what ``create`` raises before."""
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[str] = loop.create_future()

        def take(session: str) -> None:
            if not begun.done():
                begun.set_result(session)

        def tell(session: str) -> None:
            loop.call_soon_threadsafe(take, session)

        async def create() -> tuple[HubSession, list[str]] | HitchpostError | OSError:
            try:
                return await self.create(spec, actor=actor, begun=tell)
            except FAILURES as error:
                return error

        work = self._starts.start(create())
        await asyncio.wait((begun, work), return_when=asyncio.FIRST_COMPLETED)
        if not begun.done():
            begun.cancel()
            done = work.result()
            if isinstance(done, Exception):
                raise done
            return done[0], work
        await self._watch(begun.result())
        return await self.after(begun.result()), work

    async def fork(self, session: str, *, name: str | None, actor: str) -> tuple[HubSession, list[str]]:
        await self._check_most()
        made: dict[str, Any] = {} if self.replica is None else {"making": self.replica.making}
        async with self._room(self.registry.get(session).observation.record.owner):
            seen, notes = await self._begin(session, fork, name=name, actor=actor, caller=os.environ, **made)
            await self._watch(seen.record.id)
            return await self.after(seen.record.id), notes

    @asynccontextmanager
    async def _room(self, owner: str, *, is_running: bool = False) -> AsyncIterator[None]:
        """While a run of the owner's begins. Those of one person begin one after the other, where they are counted.

        Raises ``QuotaReached``. In a fleet, PostgreSQL counts, when the start is told to all.
        """
        quota = await self.do(self.quota_of, owner) if owner and not is_running and self.replica is None else NO_QUOTA
        if not quota.is_any:
            yield
            return
        async with self._beginning.setdefault(owner, asyncio.Lock()):
            quota.check(owner, self._used_here(owner), Amounts(sessions=1))
            yield

    def _used_here(self, owner: str) -> Amounts:
        """On one machine: sessions that run. What else is counted, pods have."""
        sessions = self.registry.by_id.values()
        return Amounts(sessions=sum(session.lives for session in sessions if owner_of(session.line) == owner))

    async def used_by(self, people: list[str]) -> dict[str, Amounts]:
        """What counts against the quota of each person now."""
        if self.replica is not None:
            return await self.do(self.replica.used_by, people)
        await self.registry.refresh()
        return {person: self._used_here(person) for person in people}

    async def _check_place(self, runtime: str) -> None:
        """Raises ``Refused`` where sessions run in pods only: what runs beside a hub can do all that the hub can."""
        if self.replica is None or is_elsewhere(runtime):
            return
        if (await self.do(config.load)).fleet.get("only_pods"):
            raise Refused(
                f"this hub starts sessions in pods only, and the runtime {runtime} is its own machine",
                "choose the runtime pod",
            )

    async def _check_most(self) -> None:
        """Raises ``Refused`` when as many sessions run as the settings allow."""
        check_room()
        if self.replica is not None:
            await self.do(self.replica.check)
        most = (await self.do(config.load)).sessions_max
        live = sum(session.watch is not None for session in self.registry.by_id.values())
        if live >= most:
            raise Refused(f"{live} sessions run already; the setting sessions_max allows {most}")

    async def prompt(
        self,
        session: str,
        text: str,
        *,
        actor: str,
        enter: bool,
        force: bool,
        resumes: bool = False,
        images: tuple[bytes, ...] = (),
    ) -> tuple[HubSession, dict[str, Any]]:
        """Deliver a prompt. What rests is started again for it; with ``resumes``, what has ended, too."""
        facts = self.registry.get(session).observation.facts
        if rests(facts) or (resumes and facts.state in runs.TERMINAL):
            check_room()
        how = {"enter": enter, "force": force, "resumes": resumes, "images": images}
        done = await self._start(session, prompt, text, actor=actor, caller=os.environ, **how)
        return await self.after(session), {
            "delivered": done.receipt.proof != "" or not done.receipt.watched,
            "proof": done.receipt.proof,
            "offset": done.receipt.offset,
            "started": done.started,
            "waits": done.receipt.waits,
            "notes": readable(list(done.notes)),
        }

    async def stop(
        self,
        session: str,
        *,
        actor: str,
        run: int | None = None,
        by: str = runs.USER,
        reason: str = "",
        grace_s: float | None = None,
    ) -> HubSession:
        await self._end(session, stop, actor=actor, run=run, by=by, reason=reason, grace_s=grace_s)
        return await self.after(session)

    async def restart(
        self,
        session: str,
        *,
        actor: str,
        again: bool = False,
        workspace: str | None = None,
        force: bool = False,
    ) -> tuple[HubSession, list[str]]:
        check_room()
        settings = await self.do(config.load)
        how = {"actor": actor, "caller": os.environ, "again": again, "workspace": workspace, "force": force}
        begun = await self._start(session, restart, settings, **how)
        return await self.after(session), list(begun.notes)

    async def resume(
        self, session: str, *, actor: str, agent: str = "", when_limit: str = ""
    ) -> tuple[HubSession, Begun]:
        """The session, and whether its agent, or another one, goes on with its conversation."""
        check_room()
        settings = await self.do(config.load)
        how = {"agent": agent, "when_limit": when_limit}
        begun = await self._start(session, resume, settings, actor=actor, caller=os.environ, **how)
        return await self.after(session), begun

    async def go_on(self, session: str, *, actor: str) -> bool:
        """The end of a usage limit. False when there is none any more."""
        text = (await self.do(config.load)).limit_prompt
        return await self._start(session, go_on, text, actor=actor, caller=os.environ)

    async def seen(self, session: str, *, actor: str) -> None:
        """Somebody has the session before their eyes."""
        await self.do(Session(session_folder(self.home, session), actor=actor).mark_seen)
        if self.replica is not None:
            self.replica.tell_soon(session)

    async def cancel(self, session: str, *, actor: str) -> HubSession:
        await self._end(session, cancel, actor=actor)
        return await self.after(session)

    async def archive(self, session: str, *, actor: str) -> HubSession:
        await self._end(session, archive, actor=actor)
        return await self.after(session)

    async def unarchive(self, session: str, *, actor: str) -> HubSession:
        await self._end(session, unarchive, actor=actor)
        return await self.after(session)

    async def remove(self, session: str, *, actor: str, force: bool) -> list[str]:
        """What was lost with it, in words."""
        lost: list[str] = []
        await self._end(session, remove, actor=actor, force=force, tell=lost.append)
        await self.registry.look_at(session)
        return lost

    async def output_of(self, session: HubSession, run: int | None = None) -> tuple[int, str]:
        """The number of the run that is meant, and the folder that has its output. Raises ``NoSuchRun``."""
        number, folder = output_of(session.observation, run)
        await self.bring_output(session, number)
        return number, folder

    async def bring_output(self, session: HubSession, run: int | None = None) -> None:
        """In a fleet: have the output of a run, the current one when None, in the copy."""
        if self.replica is not None:
            seen = session.observation
            await self.replica.bring_output(seen, seen.facts.run if run is None else run)

    # streams ----------------------------------------------------------------------------------------------------

    def viewer(self, session: str, cols: int, rows: int, *, picture: bool = False) -> Viewer:
        """A view of the session's current run. Raises ``NoSuchSession``, or ``Refused`` when it has had none."""
        viewed = self.registry.get(session)
        seen = viewed.observation
        if seen.facts.state == runs.CREATED:
            raise Refused(f"{seen.record.name} has not been started")
        in_pod = self.pods is not None and is_elsewhere(seen.record.runtime)
        following = partial(self._next_watch, viewed, seen.facts.run) if in_pod else None
        return Viewer(viewed.watch, seen.run_folder, self.screens, cols, rows, picture=picture, next_watch=following)

    async def _next_watch(self, session: HubSession, run: int) -> Watch | None:
        """Of a run in a pod: this hub may not be linked to it yet, or may have lost the link. None: the run is over."""
        while session.lives and session.observation.facts.run == run:
            watch = session.watch
            if watch is not None and watch.run == run and not watch.over:
                return watch
            await asyncio.sleep(WATCH_LOOK_S)
        return None

    async def reach(self, session: HubSession) -> None:
        """In a fleet: have a link to the pod of a session that lives, before somebody looks at it or types into it.

        What cannot be reached soon is shown as far as it is here.
        """
        if self.pods is None or not session.lives or not is_elsewhere(session.observation.record.runtime):
            return
        try:
            async with asyncio.timeout(REACH_S):
                await self._next_watch(session, session.observation.facts.run)
        except TimeoutError:
            log.info("no link to a pod yet", session_id=session.id)

    def keys(self, session: str) -> Keys:
        """Where viewers of the session's current run type."""
        seen = self.registry.get(session).observation
        key = (session, seen.facts.run)
        if key not in self._keys:
            for old in [old for old in self._keys if old[0] == session]:
                self._keys.pop(old).close()
            self._keys[key] = Keys(seen.run_folder)
        return self._keys[key]
