"""When a person is told: edges only, after a dwell, seldom, several at once, and not at night. Pure: time comes in.

``now_s`` is of a clock that nobody can turn. ``local`` is the wall clock, for quiet hours alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta

from hitchpost.notify.news import News
from hitchpost.settings import NEWS_KINDS

MOST_KNOWN = 5000
"""Events that are remembered. One that was forgotten is old enough to be told again if it ever comes back."""
PASSED, SEEN, MUTED = "it passed", "somebody looked", "not wanted"


@dataclass(frozen=True, slots=True)
class Rules:
    """What a person wants to be told, and how soon. ``quiet`` are the hours without any, as two times of the day.

    ``sessions`` has the kinds for some sessions, by name or id; the others have ``kinds``.
    """

    kinds: tuple[str, ...] = NEWS_KINDS
    sessions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dwell_s: float = 3.0
    cooldown_s: float = 60.0
    group_s: float = 5.0
    quiet: tuple[time, time] | None = None

    def wants(self, news: News) -> bool:
        kinds = self.sessions.get(news.session, self.sessions.get(news.name, self.kinds))
        return news.kind in kinds

    def quiet_for_s(self, local: datetime) -> float:
        """Seconds until the quiet hours end; 0 outside of them."""
        if self.quiet is None:
            return 0.0
        begin, end = self.quiet
        now = local.time().replace(tzinfo=None)
        inside = begin <= now < end if begin <= end else now >= begin or now < end
        if not inside:
            return 0.0
        until = datetime.combine(local.date(), end, local.tzinfo)
        return ((until if now < end else until + timedelta(days=1)) - local).total_seconds()


@dataclass(frozen=True, slots=True)
class Noted:
    """It is news, and will be told unless it passes, or somebody looks."""

    news: News


@dataclass(frozen=True, slots=True)
class Dropped:
    """It will not be told."""

    news: News
    why: str


Effect = Noted | Dropped


@dataclass(frozen=True, slots=True)
class _Waiting:
    news: News
    due_s: float


class Desk:
    """What is waiting to be told, at most one thing for each session: its newest headline."""

    def __init__(self, rules: Rules, known: Iterable[str] = ()) -> None:
        self.rules = rules
        self._known: OrderedDict[str, None] = OrderedDict.fromkeys(known)
        self._waiting: dict[str, _Waiting] = {}
        self._told_s: dict[tuple[str, str], float] = {}
        self._silent_until_s = 0.0

    def hear(self, session: str, news: News | None, now_s: float, *, seen: bool = False) -> list[Effect]:
        """A session's headline as it is now; None when it is no news (any more)."""
        effects: list[Effect] = []
        waiting = self._waiting.get(session)
        if waiting is not None and (seen or news is None or news.key != waiting.news.key):
            del self._waiting[session]
            effects.append(Dropped(waiting.news, SEEN if seen else PASSED))
        elif waiting is not None and news is not None:
            self._waiting[session] = replace(waiting, news=news)
        if news is None or self.knows(news):
            return effects
        self.accept(news)
        if seen or not self.rules.wants(news):
            return effects
        cooled_s = self._told_s.get((session, news.kind), -self.rules.cooldown_s) + self.rules.cooldown_s
        self._waiting[session] = _Waiting(news, max(now_s + self.rules.dwell_s, cooled_s))
        return [*effects, Noted(news)]

    def waits_for(self, session: str, key: str) -> bool:
        return session in self._waiting and self._waiting[session].news.key == key

    def knows(self, news: News) -> bool:
        return news.key in self._known

    def accept(self, news: News) -> None:
        """Remember it. What was never heard and is accepted is not told."""
        self._known[news.key] = None
        self._known.move_to_end(news.key)
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    def change(self, rules: Rules) -> list[Effect]:
        """Other rules from now on. What waits and is not wanted any more is dropped."""
        self.rules, self._silent_until_s = rules, 0.0
        gone = [waiting.news for waiting in self._waiting.values() if not rules.wants(waiting.news)]
        for news in gone:
            del self._waiting[news.session]
        return [Dropped(news, MUTED) for news in gone]

    def due_s(self) -> float | None:
        """When to call ``take`` next; None when nothing waits."""
        first = min((waiting.due_s for waiting in self._waiting.values()), default=None)
        return None if first is None else max(first, self._silent_until_s)

    def take(self, now_s: float, local: datetime) -> list[News]:
        """What is to be told now, as one message, the most urgent first. It is not given again.

        The first is told when it is due. What is due within ``group_s`` of it waits, and is told together.
        """
        due = [waiting.news for waiting in self._waiting.values() if waiting.due_s <= now_s]
        if not due or now_s < self._silent_until_s:
            return []
        if quiet_for_s := self.rules.quiet_for_s(local):
            self._silent_until_s = now_s + quiet_for_s
            return []
        self._silent_until_s = now_s + self.rules.group_s
        self._told_s = {of: at_s for of, at_s in self._told_s.items() if now_s - at_s < self.rules.cooldown_s}
        for news in due:
            del self._waiting[news.session]
            self._told_s[news.session, news.kind] = now_s
        return sorted(due, key=lambda news: (NEWS_KINDS.index(news.kind), news.since))
