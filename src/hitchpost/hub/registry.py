"""Every session as the hub knows it. Whatever is seen ends here, becomes the one shape, and is told to subscribers."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import Any

import structlog

from hitchpost import lightjson
from hitchpost.errors import HitchpostError, NoSuchSession
from hitchpost.hub.changes import Changes
from hitchpost.hub.watching import Watch
from hitchpost.model import run as runs
from hitchpost.model.facts import WITHOUT_SANDBOX, Facts
from hitchpost.model.record import ALL
from hitchpost.model.status import cr070, lives_on, never_ran, settle, status, story29, story29_reason
from hitchpost.ops.sessions.create import sweep
from hitchpost.ops.sessions.recover import recover
from hitchpost.ops.sessions.takeover import NotTakenOver
from hitchpost.ops.views.find import resolve_in
from hitchpost.ops.views.listing import Row, foreign, is_settled, is_wanted, place_in_list, place_of
from hitchpost.ops.views.observe import Seen, as_it_was, ended, exit_of, look, with_activity
from hitchpost.ops.views.session_json import shape
from hitchpost.store import files, records, runfiles
from hitchpost.store.home import is_id, session_folder, sessions_folder
from hitchpost.store.index import NAME, NUMBER, RECORD, TICK_NS, Index, few, line_of, text_of, total_field
from hitchpost.values import replace

ADOPTION_BUDGET_S = 10.0
SLOW_LOOK_S = 3.0
LOOK_AGAIN_S = 0.25
MOST_WAIT_S = 1.0
"""For a look at what has just changed. One that takes longer, on a disk that hangs, does not hold up the others."""
FILES = (files.STATE, records.RECORD)
CANNOT_WRITE = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EACCES, errno.EPERM)

Event = dict[str, Any]
log = structlog.get_logger()


class Tracked:
    """One session. ``watch`` is there while its keeper lives. One that has ended is known from the index, without a
    look: ``seen`` comes when somebody needs it."""

    __slots__ = (
        "_row",
        "_shape",
        "heard",
        "id",
        "line",
        "lives",
        "lock",
        "place",
        "seen",
        "text",
        "told_run",
        "watch",
        "word",
    )

    def __init__(self, session: str) -> None:
        self.id = session
        self.seen: Seen | None = None
        self.heard: tuple[int, dict[str, Any]] | None = None
        """A run, and how it ended, as its keeper told it."""
        self._shape: dict[str, Any] | None = None
        self._row: dict[str, Any] | None = None
        self.text = ""
        self.line = ""
        self.place = 0
        self.word = ""
        self.told_run = 0
        self.lives = False
        self.watch: Watch | None = None
        self.lock = asyncio.Lock()

    @classmethod
    def indexed(cls, session: str, line: str, text: str) -> Tracked:
        one = cls(session)
        one.line, one.text, one.place = line, text, place_in_list(line)
        return one

    @property
    def shape(self) -> dict[str, Any]:
        if self._shape is None:
            self._shape = json.loads(self.text) if self.text else {}
        return self._shape

    @property
    def row(self) -> dict[str, Any]:
        """What finds it: id, index, name and record."""
        if self._row is None:
            fields = self.line.split("\t", NAME + 1)
            name, number = text_of(fields[NAME]), int(fields[NUMBER])
            self._row = {"id": self.id, "index": number, "name": name, "record": fields[RECORD]}
        return self._row

    def describe(self, now: datetime) -> None:
        """Say everything about the session as it was last seen, with the words of this moment."""
        assert self.seen is not None
        words = status(self.seen.facts, now)
        self._shape = made = shape(self.seen, now, words)
        self._row = None
        self.text = lightjson.dumps(made)
        now_s = now.timestamp()
        total = total_field(words.total_s, now_s, grows=words.total_grows)
        agent_state = cr070(self.seen.facts)
        self.line = line_of(made, now_s - words.in_status_s, total, words.colour, agent_state, place_of(made))
        self.place = place_in_list(self.line)
        self.lives = self.seen.facts.state in runs.LIVE


class Registry:
    def __init__(self, home: str) -> None:
        self.home = home
        self.sessions: dict[str, Tracked] = {}
        self.ready_in_s = 0.0
        self.ended: Counter[str] = Counter()
        self._subscribers: list[Callable[[Event], None]] = []
        self._threads = ThreadPoolExecutor(8, "look")
        self._freshening = ThreadPoolExecutor(1, "activity")
        self._tasks: set[asyncio.Task[object]] = set()
        self._stamps: dict[str, int] = {}
        self._unwritten: dict[str, str] = {}
        self._again: set[str] = set()
        self._asked: set[str] = set()
        self._looks: dict[str, asyncio.Task[object]] = {}
        self._writing: set[str] = set()
        self.foreign: dict[str, Row] = {}
        self.session_lost: dict[str, int] = {}
        """Runs in containers that were looked for inside, and are not there."""

    # life -------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Find every session and take up those that live. What a killed operation left half done is finished."""
        began = time.monotonic()
        await self._in_thread(sweep, self.home)
        self._changes = Changes(self._changed)
        known: Index = await self._in_thread(self._watch_all)
        shapes = known.shapes
        self.sessions = {
            session: Tracked.indexed(session, line, shapes[session])
            for session, line in known.lines.items()
            if session in shapes
        }
        names = [name for name in (*known.changed, *known.lines) if name not in self.sessions]
        try:
            async with asyncio.timeout(ADOPTION_BUDGET_S):
                await asyncio.gather(*(self.look_at(name, quiet=True) for name in names))
        except TimeoutError:
            log.warning("adoption goes on in the background", seconds=ADOPTION_BUDGET_S)
            for name in names:
                if (one := self.sessions.get(name)) is None or one.seen is None:
                    self._soon(name, quiet=True)
        self.ready_in_s = time.monotonic() - began
        self._task(self._slowly())
        self._task(self._after_adoption(known))
        live = sum(one.watch is not None for one in self.sessions.values())
        log.info("adopted", sessions=len(self.sessions), live=live, seconds=round(self.ready_in_s, 3))

    def _watch_all(self) -> Index:
        """First the watches, then the index: what changes in between is told."""
        top = sessions_folder(self.home)
        self._changes.watch(top)
        for name in filter(is_id, os.listdir(top)):
            self._changes.watch(session_folder(self.home, name))
        known = Index(self.home).check()
        known.shapes  # noqa: B018 - read here, not in the event loop
        return known

    async def _after_adoption(self, known: Index) -> None:
        """Store what had to be looked at, for the next start. Containers may have changed without a word in a file."""
        looked_at = [one for one in self.sessions.values() if one.seen is not None and one.id in known.changed]

        def store() -> list[str]:
            for one in looked_at:
                assert one.seen is not None
                known.remember(one.line, one.text, "" if is_settled(one.seen) else few(one.id, one.seen.record))
            known.save()
            return [name for name in known.lines if _in_sandbox(known.shapes.get(name))]

        for session in await self._in_thread(store):
            await self.look_at(session)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        for one in self.sessions.values():
            if one.watch is not None:
                one.watch.close()
        self._changes.close()
        self._threads.shutdown(wait=False)
        self._freshening.shutdown(wait=False)

    # who listens ------------------------------------------------------------------------------------------------

    def subscribe(self, tell: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``tell`` with every event from now on; the answer ends that."""
        self._subscribers.append(tell)
        return lambda: self._subscribers.remove(tell)

    def publish(self, event: Event) -> None:
        for tell in list(self._subscribers):
            tell(event)

    # what is known ----------------------------------------------------------------------------------------------

    def get(self, session: str) -> Tracked:
        """Raises ``NoSuchSession``; what keeps it from being looked at, where that is known."""
        found = self.sessions.get(session)
        if session in self.foreign and isinstance(why := self.foreign[session].why, HitchpostError):
            raise why
        if found is None or found.seen is None:
            raise NoSuchSession(session)
        return found

    async def ready(self, wanted: str) -> None:
        """See to it that ``get`` and ``find`` know all of a session, as it is now."""
        await self._caught_up()
        try:
            one = self.sessions.get(wanted) or self.sessions[self._resolve(wanted)]
        except HitchpostError:
            return  # whoever asked hears of it
        if one.seen is None and one.line:
            await self.look_at(one.id)
        await self._freshen((one,))

    def _resolve(self, wanted: str) -> str:
        known = {one.id: one.row for one in self.sessions.values() if one.line}
        others = {session: Tracked.indexed(session, row.line, "").row for session, row in self.foreign.items()}
        return resolve_in(known | others, wanted)

    def find(self, wanted: str) -> Tracked:
        """By id, then name, then index, then the unique beginning of an id, as the command line does."""
        if wanted in self.sessions:
            return self.get(wanted)
        return self.get(self._resolve(wanted))

    async def freshen(self) -> None:
        """Give every session the words that hold now. Whoever asks for words asks for this first."""
        await self._caught_up()
        await self._freshen(tuple(self.sessions.values()))

    async def _caught_up(self) -> None:
        """What others have written by now is seen: the kernel has told of it before they heard that it worked."""
        self._changes.read()
        if looks := list(self._looks.values()):
            await asyncio.wait(looks, timeout=MOST_WAIT_S)

    async def _freshen(self, some: Sequence[Tracked]) -> None:
        """Nobody tells the hub of each line that an agent prints, of a process that a signal stops, of a keeper that
        is gone a moment ago: that is looked up."""
        before = [(one, one.seen) for one in some if one.seen is not None and not is_settled(one.seen)]
        if not before:
            return
        seen_before = [seen for _, seen in before]
        loop = asyncio.get_running_loop()
        after = await loop.run_in_executor(self._freshening, lambda: [_now(seen) for seen in seen_before])
        now = datetime.now(UTC)
        moved: list[str] = []
        for (one, seen), fresh in zip(before, after, strict=True):
            if fresh is None:
                moved.append(one.id)
            elif one.seen is seen:
                words = _words(one.shape)
                one.seen = fresh
                one.describe(now)
                if _words(one.shape) != words:
                    self.publish({"type": "session.updated", "sessionId": one.id, "session": one.shape})
        await asyncio.gather(*map(self.look_at, moved))

    def listed(self, *, records: tuple[str, ...] = ALL) -> list[Tracked]:
        """All sessions in the order of their index."""
        found = [one for one in self.sessions.values() if one.line and is_wanted(one, records)]
        return sorted(found, key=attrgetter("place"))

    def rows(self, *, records: tuple[str, ...]) -> Sequence[Tracked | Row]:
        """As the command lists them: with those that cannot be looked at, or that a newer version wrote."""
        known = [one for one in self.listed(records=records) if one.id not in self.foreign]
        others = [row for row in self.foreign.values() if is_wanted(row, records)]
        return sorted([*known, *others], key=attrgetter("place")) if others else known

    # looking ----------------------------------------------------------------------------------------------------

    async def look_at(self, session: str, *, quiet: bool = False) -> Tracked | None:
        """Bring one session up to date and tell what is new. None when it is gone."""
        one = self.sessions.get(session)
        if one is None:
            one = self.sessions[session] = Tracked(session)
            # first the watch, then the look: what changes in between is told
            await self._in_thread(self._changes.watch, session_folder(self.home, session))
        async with one.lock:
            self._asked.discard(session)
            try:
                seen = await self._in_thread(look, self.home, session)
            except FileNotFoundError:
                self._gone(one)
                return None
            except (HitchpostError, OSError) as error:
                log.warning("cannot look at a session", session_id=session, error=str(error))
                passes = isinstance(error, OSError | files.LockTimeout)
                if passes:
                    self._look_again(session)
                if not passes or one.seen is None:  # what passes changes nothing about what is known
                    self.foreign[session] = await self._in_thread(foreign, self.home, session, error)
                return one
            self.foreign.pop(session, None)
            if _is_late(one, seen):
                return one  # the next look is asked for already
            if self.session_lost.get(session) == seen.facts.run and seen.facts.state == runs.RUNNING:
                seen = replace(seen, facts=replace(seen.facts, session_alive=False))
            lost = seen.facts.keeper_alive is False and seen.facts.state in runs.LIVE
            told = one.heard[1] if one.heard is not None and one.heard[0] == seen.facts.run else {}
            if lost and seen.facts.exit is None:
                seen = replace(seen, facts=replace(seen.facts, exit=exit_of(told)))
            before, one.seen = one.seen, seen
            self._tell(one, before, quiet=quiet)
            self._follow(one)
        if lost and session not in self._writing:
            self._writing.add(session)
            self._task(self._write_end(seen, told, quiet=quiet))
        return one

    async def _write_end(self, seen: Seen, told: dict[str, Any], *, quiet: bool) -> None:
        """Write down the end of a run whose keeper is gone. Its words are told already, and whoever asks for them does
        not wait for a lock or a disk."""
        session = seen.record.id
        try:
            await self._in_thread(_write_end, self.home, seen, told)
            self._unwritten.pop(session, None)
        except (FileNotFoundError, NoSuchSession, files.Removed):
            pass  # the look finds that out too
        except (HitchpostError, OSError) as error:
            number = error.errno if isinstance(error, OSError) else None
            if number not in CANNOT_WRITE:
                log.warning("cannot write down yet what became of a run", session_id=session, error=str(error))
                self._look_again(session, SLOW_LOOK_S if isinstance(error, NotTakenOver) else LOOK_AGAIN_S)
                return
            if session not in self._unwritten:
                log.error("cannot write down how a run ended", session_id=session, error=str(error))
            self._unwritten[session] = os.strerror(number).lower()
            return
        finally:
            self._writing.discard(session)
        await self.look_at(session, quiet=quiet)

    def _follow(self, one: Tracked) -> None:
        """Keep a connection to the keeper of the current run, as long as there is one."""
        assert one.seen is not None
        facts = one.seen.facts
        if one.watch is not None and (one.watch.run != facts.run or one.watch.over):
            one.watch.close()
            one.watch = None
        if one.watch is None and facts.keeper_alive is True:
            one.watch = Watch(one.seen.run_folder, facts.run, partial(self._heard, one, facts.run))

    def _heard(self, one: Tracked, run: int, event: Event) -> None:
        """A keeper says something: the files have it already, or will in a moment."""
        kind, session = event.get("event"), one.id
        if kind == "exit":
            one.heard = (run, event["exit"])
            self._tell_end(one, run, event)
        if kind == "resize":
            size = {"cols": event["cols"], "rows": event["rows"]}
            self.publish({"type": "terminal.size", "sessionId": session, **size})
        if kind in ("state", "exit", "attention", "closed"):
            self._soon(session)

    def _tell_end(self, one: Tracked, run: int, event: Event) -> None:
        """A keeper writes a run's end down before it tells it. The look that finds it takes longer than its word."""
        before = one.seen
        if before is not None and before.facts.run == run and (found := ended(before, event)) is not None:
            one.seen = found
            self._tell(one, before, quiet=False)

    def _tell(self, one: Tracked, before: Seen | None, *, quiet: bool) -> None:
        assert one.seen is not None
        now = datetime.now(UTC)
        seen = one.seen
        old_shape = one.shape
        one.describe(now)
        word = story29(seen.facts, now)
        facts = settle(seen.facts)
        old_word, told_run = one.word, one.told_run
        begun = facts.state not in (runs.CREATED, runs.STARTING)  # until then nobody knows what becomes of the run
        if begun:
            one.word, one.told_run = word, facts.run
        if quiet:
            return
        if not old_shape:
            self.publish({"type": "session.created", "sessionId": one.id, "session": one.shape})
        if before is not None:
            old_run, old_state = before.facts.run, settle(before.facts).state
        else:
            old_run, old_state = old_shape.get("run", 0), old_shape.get("state", "")
            old_word, told_run = word if old_shape.get("status") == one.shape["status"] else old_word, old_run
        ended = facts.state in runs.TERMINAL and (old_run != facts.run or old_state not in runs.TERMINAL)
        if ended and facts.state != runs.ORPHANED:
            self._tell_exit(one, facts)
        if begun and (word != old_word or (old_shape and told_run != facts.run)):
            told: Event = {"type": "session.status", "sessionId": one.id, "status": word, "session": one.shape}
            if word == "error":
                told["reason"] = story29_reason(seen.facts)
            self.publish(told)
        elif old_shape and old_shape != one.shape:
            self.publish({"type": "session.updated", "sessionId": one.id, "session": one.shape})

    def _tell_exit(self, one: Tracked, facts: Facts) -> None:
        end = facts.exit
        self.ended[facts.state] += 1
        if never_ran(facts):
            log.error(f"cannot start {one.id}", session_id=one.id, reason=one.shape["label"])
            return
        event: Event = {
            "type": "terminal.exit",
            "sessionId": one.id,
            "exitCode": None if end is None else end.shell_code,
            "run": facts.run,
        }
        if end is not None and end.signal is not None:
            event["signal"] = end.signal
            event["signalNumber"] = end.signal_number
        if facts.state == runs.FAILED:
            signal = end.signal if end is not None else None
            log.error(
                f"PTY crashed for {one.id}: exitCode={event['exitCode']}, signal={signal}",
                session_id=one.id,
                last_activity=one.shape["last_activity_at"],
                reason=one.shape["label"],
            )
        self.publish(event)

    def _gone(self, one: Tracked) -> None:
        if self.sessions.pop(one.id, None) is None:
            return
        if one.watch is not None:
            one.watch.close()
        self._changes.forget(session_folder(self.home, one.id))
        self._stamps.pop(one.id, None)
        self._unwritten.pop(one.id, None)
        self.foreign.pop(one.id, None)
        if one.line:
            self.publish({"type": "session.removed", "sessionId": one.id, "session": one.shape})

    def _changed(self, folder: str, name: str) -> None:
        if folder == "":
            self._task(self._look_for_others())
            for session in list(self.sessions):
                self._soon(session)
        elif folder == sessions_folder(self.home):
            if is_id(name):
                self._soon(name)
        elif name in FILES:
            self._soon(os.path.basename(folder))

    async def _look_for_others(self) -> None:
        """Find the sessions that came and went without a word."""
        names = set(filter(is_id, await self._in_thread(os.listdir, sessions_folder(self.home))))
        for session in names.symmetric_difference(self.sessions):
            self._soon(session)

    # what the kernel does not tell ------------------------------------------------------------------------------

    @property
    def problems(self) -> list[str]:
        """What keeps the hub from its work, for people."""
        found = []
        if unwatched := self._changes.unwatched:
            limits = " and ".join(sorted(set(unwatched.values())))
            found.append(
                f"{len(unwatched)} folders cannot be watched because this user's limit {limits} is reached; they are"
                f" looked at every {SLOW_LOOK_S:g} s instead; raise the limit with sysctl, or close what watches files"
            )
        if unwritten := self._unwritten:
            why = " and ".join(sorted(set(unwritten.values())))
            found.append(f"{len(unwritten)} runs have ended and that cannot be written down ({why}); see hitch doctor")
        return found

    async def _slowly(self) -> None:
        """What the kernel refused to watch, or the disk to take, is tried again; and looked at meanwhile."""
        told = False
        while True:
            if bool(self._changes.unwatched) != told:
                told = not told
                log.warning(*self.problems[:1]) if told else log.info("every folder is watched again")
            await asyncio.sleep(SLOW_LOOK_S)
            try:
                await self.freshen()
                await self._watch_again()
                for session in list(self._unwritten):
                    await self.look_at(session)
            except Exception as error:  # the net must not tear
                log.error("cannot look for what was not told", error=repr(error))

    async def _watch_again(self) -> None:
        if not self._changes.unwatched:
            return
        self._changes.open()
        if sessions_folder(self.home) in self._changes.unwatched:
            await self._in_thread(self._changes.watch, sessions_folder(self.home))
            await self._look_for_others()
        for session in await self._in_thread(self._moved):
            self._soon(session)

    def _moved(self) -> list[str]:
        """Of the folders that were not watched: those that are from now on, and those that changed meanwhile."""
        found = []
        for folder in list(self._changes.unwatched):
            session = os.path.basename(folder)
            if not is_id(session):
                continue
            watched = self._changes.watch(folder)
            try:
                changed_ns = os.lstat(folder).st_ctime_ns
            except OSError:
                changed_ns = 0
            if watched or changed_ns != self._stamps.get(session):
                found.append(session)
            # a change in the tick of the look could hide the next one
            self._stamps[session] = changed_ns if changed_ns + TICK_NS < time.time_ns() else 0
        return found

    def _soon(self, session: str, *, quiet: bool = False) -> None:
        """One end of a run is told by its keeper and by three files: a look that has not begun sees all of it."""
        if session not in self._asked:
            self._asked.add(session)
            look = self._looks[session] = self._task(self.look_at(session, quiet=quiet))
            look.add_done_callback(partial(self._looked, session))

    def _looked(self, session: str, look: asyncio.Task[object]) -> None:
        if self._looks.get(session) is look:
            del self._looks[session]

    def _look_again(self, session: str, after_s: float = LOOK_AGAIN_S) -> None:
        """What failed for want of a descriptor or a lock may work in a moment, and nothing else would tell of it."""
        if session not in self._again:
            self._again.add(session)
            asyncio.get_running_loop().call_later(after_s, self._look_now, session)

    def _look_now(self, session: str) -> None:
        self._again.discard(session)
        self._soon(session)

    def _task(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _in_thread(self, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: call(*args, **named))


def _in_sandbox(text: str | None) -> bool:
    return text is not None and json.loads(text)["runtime"] not in WITHOUT_SANDBOX


def _words(shape: dict[str, Any]) -> tuple[str, str]:
    """What time and output change of a session's words. How long it has been quiet, whoever reads the words counts."""
    return shape["attention"], shape["quiet_since"] or shape["label"]


def _is_late(one: Tracked, seen: Seen) -> bool:
    """Whether a look began before its keeper told the run's end, and was done after it."""
    told = one.heard is not None and one.heard[0] == seen.facts.run
    return told and seen.facts.state in runs.LIVE and seen.facts.keeper_alive is True


def _now(seen: Seen) -> Seen | None:
    """With the time of its last output; None when it has to be looked at."""
    return with_activity(seen) if as_it_was(seen) else None


def _write_end(home: str, seen: Seen, told: dict[str, Any]) -> Seen:
    """What the keeper told of the end and could not write itself is written for it."""
    if told:
        with files.SessionLock(seen.folder):
            if not runfiles.has_exit(seen.run_folder):
                runfiles.write_exit(seen.run_folder, told)
    found = recover(home, seen.record.id, actor="hub")
    if lives_on(found.facts):
        raise NotTakenOver(found.record)
    return found
