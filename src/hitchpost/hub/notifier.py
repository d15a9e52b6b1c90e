"""Tells people what the hub hears: the policy decides what and when, the log makes it once, channels carry it.

Nothing is asked for regularly: events of sessions come in, and one timer waits for what is due next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import structlog

from hitchpost.errors import FAILURES, HitchpostError
from hitchpost.hub.core import Hub
from hitchpost.hub.events import Event
from hitchpost.hub.pools import run_in
from hitchpost.hub.tasks import Tasks
from hitchpost.notify import journal
from hitchpost.notify.channel import Channel, NobodyThere, Undelivered
from hitchpost.notify.channels import channels, family
from hitchpost.notify.journal import Journal, Past
from hitchpost.notify.message import Message, compose, trial
from hitchpost.notify.news import News, is_seen, of_hub, of_session
from hitchpost.notify.options import Choices, Options, options
from hitchpost.notify.policy import PASSED, Desk, Effect, Noted
from hitchpost.notify.published import Published
from hitchpost.notify.push import Subscription, Subscriptions
from hitchpost.settings import Settings
from hitchpost.store import files

MISSED_S = 600.0
"""What happened longer ago than that while no hub was there is not told by the next one."""
TRY_AGAIN_S = (1.0, 5.0, 30.0)
LEAVE_S = 2.0
MOST_UNDER_WAY = 64
"""Messages on their way, counted for each channel. What is more is not sent, and the log says so."""

log = structlog.get_logger()
T = TypeVar("T")


class NoSuchChannel(HitchpostError):
    """Raised when no channel is there that a test message could go by."""

    exit_code = 3
    http_status = 404
    code = "not_found"


@dataclass(frozen=True, slots=True)
class Outcome:
    channel: str
    outcome: str
    why: str
    ms: int


class Notifier:
    """``page`` is the address of the page, for links. ``options`` and ``subscriptions`` are there once it is open."""

    options: Options
    subscriptions: Subscriptions

    def __init__(self, hub: Hub, settings: Settings, page: str) -> None:
        self.hub, self.settings, self.page = hub, settings, page
        self.desk: Desk | None = None
        self.journal, self.choices = Journal(hub.home), Choices(hub.home)
        self._began_at = datetime.now(UTC)
        self._began_s = time.monotonic()
        self._past = Past()
        self._heard: set[str] = set()
        """Sessions that it knows. A large home is not known all at once."""
        self._tasks, self._deliveries = Tasks("notifications"), Tasks("deliveries")
        self._effects: list[Effect] = []
        self._passed: list[dict[str, Any]] = []
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "notify")
        """All that waits for the disk, in its order, and behind nobody else's work."""
        self._is_troubled = False
        self._is_loaded = False
        self._relayed: set[str] | None = None
        """Messages of another hub that were handed to clients of this one."""

    async def load(self) -> None:
        """What was chosen, by this hub or by another one. Then it can be asked, and tells nothing yet."""
        chosen = await self.do(self.choices.read)
        self.subscriptions = await self.do(Subscriptions, self.hub.home)
        self._take_options(chosen)
        self._is_loaded = True
        await self.relay()

    def _take_options(self, chosen: Mapping[str, Any]) -> None:
        self.options = options(self.settings, chosen)
        if self.desk is not None:
            self._take_effects(self.desk.change(self.options.rules))
            self._wake.set()

    @property
    def can_be_asked(self) -> bool:
        """In a fleet, also where another hub tells what there is to tell."""
        return self.desk is not None or (self._is_loaded and self.hub.replica is not None)

    async def open(self) -> None:
        """Read what earlier hubs did, accept what is so already, and listen from now on.

        ``desk`` is there when everything that can fail is done.
        """
        await self.load()
        self._past = past = await self.do(self.journal.open)
        await self._write({"what": journal.UP})
        self.desk = Desk(self.options.rules, past.known)
        self._tasks.start(self._finish(past))
        if self.subscriptions.all:  # the library takes a tenth of a second to load, before the first message needs it
            self._tasks.start(self.do(self.subscriptions.public_key))
        self._unsubscribe = self.hub.registry.events.subscribe(self._on_event)
        self.hub.registry.rescan.on_turn = self._look_at_hub
        for session in list(self.hub.registry.by_id.values()):
            if session.text:
                self._hear(session.shape)
                self._drop_what_passed(session.id)
        self._tasks.start(self._work())

    async def close(self, *, leaves: bool = True) -> None:
        """What is on its way has a moment to arrive. What has not by then counts as not known.

        ``leaves``: it is written down that this hub has left nothing undone.
        """
        if self.desk is not None:
            self._unsubscribe()
            self.hub.registry.rescan.on_turn = lambda: None
            await self._tasks.close()
            await self._deliveries.settle(LEAVE_S)
            try:
                if leaves:
                    await self._write({"what": journal.DOWN})
            except OSError as error:
                log.error("cannot write down that the hub leaves", error=str(error))
        self._thread.shutdown(wait=False)

    # what is heard ------------------------------------------------------------------------------------------------

    def _on_event(self, event: Event) -> None:
        if event["type"] == "session.removed":
            self._heard.discard(event["sessionId"])
            self._take_effects(self._desk.hear(event["sessionId"], None, time.monotonic()))
        elif "session" in event:
            self._hear(event["session"])

    def _hear(self, shape: Mapping[str, Any]) -> None:
        news, now_s = of_session(shape), time.monotonic()
        is_early = shape["id"] not in self._heard or now_s - self._began_s <= self.options.grace_s
        self._heard.add(shape["id"])
        if news is not None and is_early and not self._desk.knows(news) and self._was_so_before(news):
            self._desk.accept(news)
        self._take_effects(self._desk.hear(shape["id"], news, now_s, seen=is_seen(shape)))

    def _drop_what_passed(self, session_id: str) -> None:
        """What a killed hub had noted of a session, and is not so any more."""
        for key in [key for key in self._past.noted if key.split(" ", 1)[0] == session_id]:
            if not self._desk.waits_for(session_id, key):
                self._passed.append({"what": journal.DROPPED, "key": key, "session": session_id, "why": PASSED})
                self._wake.set()

    def _was_so_before(self, news: News) -> bool:
        """Whether it is no news to this hub, which has just started: it was so before, and no hub left it untold.

        A hub that was killed left what it had noted, and what came after it had begun.
        """
        at = news.at
        if news.key in self._past.noted or at is None or at >= self._began_at:
            return False
        was_heard = not self._past.was_killed or at <= datetime.fromisoformat(self._past.up_at)
        return was_heard or self._began_at - at > timedelta(seconds=MISSED_S)

    def _look_at_hub(self) -> None:
        """The hub has looked through everything once more."""
        problems = self.hub.problems
        if bool(problems) != self._is_troubled:
            self._is_troubled = bool(problems)
            news = of_hub(problems[0], files.stamp()) if problems else None
            self._take_effects(self._desk.hear("", news, time.monotonic()))

    @property
    def _desk(self) -> Desk:
        assert self.desk is not None
        return self.desk

    def _take_effects(self, effects: list[Effect]) -> None:
        if effects:
            self._effects += effects
            self._wake.set()

    # what is told -------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        """The only place that notes, drops and begins. A disk that takes nothing keeps nobody from being told."""
        while True:
            due_s = self._desk.due_s()
            wait_s = None if due_s is None else max(0.0, due_s - time.monotonic())
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            effects, self._effects = self._effects, []
            lines: list[dict[str, Any]] = [*self._passed, *map(_line, effects)]
            self._passed.clear()
            told = self._desk.take(time.monotonic(), datetime.now().astimezone())
            message, to = None, self._wanted() if told else []
            if told:
                message = compose(told, self.page)
                keys = [news.key for news in told]
                names = [channel.name for channel in to]
                lines.append({"what": journal.BEGUN, **message.as_json(), "keys": keys, "channels": names})
            try:
                await self._write(*lines)
            except OSError as error:
                log.error("cannot write down what is to be told", error=str(error), news=len(told))
            if message is not None:
                for channel in to:
                    self._send(message, channel)

    def all_channels(self) -> list[Channel]:
        return channels(self.options, self.subscriptions, self.hub.registry.events.publish, self._forget)

    def _wanted(self) -> list[Channel]:
        return [channel for channel in self.all_channels() if family(channel) not in self.options.off]

    def _send(self, message: Message, channel: Channel) -> None:
        self._deliveries.start(self._deliver(message, channel))

    async def _deliver(self, message: Message, channel: Channel) -> None:
        if len(self._deliveries) > MOST_UNDER_WAY:
            done = Outcome(channel.name, journal.FAILED, "too many are on their way", 0)
        else:
            done = await self._try(message, channel)
        try:
            await self._write(_outcome(message, done))
        except OSError as error:
            log.error("cannot write down what was told", error=str(error), channel=channel.name)

    async def _try(self, message: Message, channel: Channel, pauses_s: tuple[float, ...] = TRY_AGAIN_S) -> Outcome:
        began_s = time.monotonic()
        for pause_s in (*pauses_s, None):
            try:
                outcome, why = journal.SENT, await channel.send(message)
            except NobodyThere as error:
                outcome, why = journal.NOBODY, error.message
            except Undelivered as error:
                if error.again and pause_s is not None:
                    await asyncio.sleep(pause_s)
                    continue
                outcome, why = journal.FAILED, error.message
            except Exception as error:
                log.error("a channel failed", channel=channel.name, error=type(error).__name__)
                outcome, why = journal.FAILED, f"our mistake: {type(error).__name__}"
            break
        if outcome == journal.FAILED:
            log.warning("not told", channel=channel.name, why=why)
        return Outcome(channel.name, outcome, why, round((time.monotonic() - began_s) * 1000))

    async def _finish(self, past: Past) -> None:
        """What a killed hub had begun: told again where that is seen once, and nowhere else."""
        by_name = {channel.name: channel for channel in self._wanted()}
        for message, names in list(past.unfinished.values()):
            for name in list(names):
                channel = by_name.get(name)
                if channel is not None and channel.dedupes:
                    self._send(message, channel)
                else:
                    why = "the hub was killed while it was told; it is not told again"
                    await self._write(_outcome(message, Outcome(name, journal.UNKNOWN, why, 0)))

    async def _write(self, *lines: Mapping[str, Any]) -> None:
        if lines:
            await self.do(self.journal.write, lines)
            await self.hub.share()

    async def do(self, call: Callable[..., T], *args: Any) -> T:
        """Something with the files of notifications."""
        return await run_in(self._thread, call, *args)

    async def relay(self) -> None:
        """Another hub tells people: who is connected to this one hears it, too. What was told before it came is old."""
        if self.hub.replica is None:
            return
        lines = await self.do(journal.lines, self.journal.path)
        begun = {str(line["id"]): line for line in lines if line.get("what") == journal.BEGUN and "id" in line}
        before, self._relayed = self._relayed, set(begun)
        if before is None or self.desk is not None:
            return
        for line in [line for key, line in begun.items() if key not in before]:
            for channel in self.all_channels():
                if isinstance(channel, Published) and channel.name in line.get("channels", ()):
                    with suppress(Undelivered):
                        await channel.send(Message.from_json(line))

    # what is asked ------------------------------------------------------------------------------------------------

    async def choose(self, chosen: Mapping[str, Any]) -> None:
        merged = await self.do(self.choices.write, chosen)
        self._take_options(merged)
        await self.hub.share()

    async def subscribe(self, added: Subscription) -> None:
        await self.do(self.subscriptions.add, added)
        await self.hub.share()

    async def unsubscribe(self, subscription_id: str) -> bool:
        found = await self.do(self.subscriptions.remove, subscription_id)
        await self.hub.share()
        return found

    def _forget(self, subscription_id: str) -> None:
        self._tasks.start(self.unsubscribe(subscription_id))

    async def test(self, name: str = "") -> list[Outcome]:
        """Send a message now, by every channel that is on, or by one. Raises ``NoSuchChannel``."""
        to = [channel for channel in self.all_channels() if name in (channel.name, family(channel))]
        if not name:
            to = self._wanted()
        if not to:
            what = f"the way {name!r} is not set up" if name else "every way is off"
            raise NoSuchChannel(what, "hitch notify lists what is")
        message = trial(self.page)
        names = [channel.name for channel in to]
        await self._write({"what": journal.BEGUN, **message.as_json(), "keys": [], "channels": names})
        done = await asyncio.gather(*(self._try(message, channel, ()) for channel in to))
        await self._write(*(_outcome(message, one) for one in done))
        return done


def _line(effect: Effect) -> dict[str, Any]:
    news = effect.news
    if isinstance(effect, Noted):
        about = {"session": news.session, "name": news.name, "kind": news.kind, "headline": news.headline}
        return {"what": journal.NOTED, "key": news.key, **about}
    return {"what": journal.DROPPED, "key": news.key, "session": news.session, "why": effect.why}


def _outcome(message: Message, outcome: Outcome) -> dict[str, Any]:
    return {"what": journal.OUTCOME, "id": message.id, **asdict(outcome)}


async def opened(hub: Hub, settings: Settings, page: str) -> Notifier:
    """A notifier that listens; one that cannot be opened is the hub's problem, and keeps it from nothing else."""
    notifier = Notifier(hub, settings, page)
    try:
        await notifier.open()
    except FAILURES as error:
        hub.failing["being told"] = str(error)
        log.error("notifications are off", error=str(error))
    return notifier
