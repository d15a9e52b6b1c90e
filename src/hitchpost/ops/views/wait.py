"""Waiting for a session: its keeper tells what happens, and a timer tells when silence has lasted long enough.

Nothing is asked again and again. Every wait follows one run: a run that is started meanwhile is another one.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from hitchpost.errors import HitchpostError, KeeperSilent, Refused
from hitchpost.model import rhythm
from hitchpost.model import run as runs
from hitchpost.model.durations import seconds_between
from hitchpost.model.facts import Facts
from hitchpost.model.status import BLOCKED, DONE, IDLE, QUIET, WAITING, WORKING, attention, settle, status
from hitchpost.ops.views.advice import way_on
from hitchpost.ops.views.find import again
from hitchpost.ops.views.observe import Observation, read_exit
from hitchpost.runtimes.link import TIMEOUT_S, Link, NoKeeper, Silent, is_kept
from hitchpost.system.readable import readable
from hitchpost.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT, YOUR_TURN = "exit", "your-turn"
TURN_OVER = (*QUIET, "error")
UNTIL: dict[str, tuple[str, ...]] = {
    "idle": TURN_OVER,
    "waiting": (WAITING, DONE),
    "blocked": (BLOCKED,),
    YOUR_TURN: (BLOCKED, WAITING, DONE, "error"),
    EXIT: (),
}
"""What can be waited for, and the attention that satisfies it."""
ENDED_TOO = (YOUR_TURN, EXIT)
"""What the end of the run satisfies."""

NOT_IDLE = "was not idle again"
RETRY_S = 0.01
A_LITTLE_MORE_S = 0.002


class TimedOut(HitchpostError):
    """Raised when no session became what was waited for in time."""

    def __init__(self, name: str, what: str, timeout_s: float, label: str) -> None:
        super().__init__(f"{name} {what} after {timeout_s:g} s (it is {label})")
        self.what = what


def wait(home: str, seen: Observation, until: str, *, timeout_s: float | None = None) -> Observation:
    """Wait until the session is ``until``, a key of ``UNTIL``, or its run has ended: the caller looks which.

    Raises ``TimedOut``.
    """
    return wait_for_any(home, (seen,), until, timeout_s=timeout_s)


def wait_for_any(
    home: str,
    sessions: Sequence[Observation],
    until: str,
    *,
    timeout_s: float | None = None,
    since: datetime | None = None,
) -> Observation:
    """The same for several: the first one that is ``until``, or whose run has ended. What was reported before ``since``
    does not count."""
    what = {EXIT: "had not ended", YOUR_TURN: "did not need anybody"}.get(until, f"was not {until}")
    return _wait(home, sessions, UNTIL[until], what if since is None else f"{what} again", timeout_s, since)


def wait_for_turn(
    home: str, seen: Observation, since: datetime, *, timeout_s: float | None = None, silence: bool = True
) -> Observation:
    """Wait until the agent has dealt with what it was told at ``since``, or has ended. What it reported before does not
    count; nor, without ``silence``, that it says nothing. Raises ``TimedOut``."""
    return _wait(home, (seen,), TURN_OVER, NOT_IDLE, timeout_s, since, silence=silence)


def has_ended(seen: Observation) -> bool:
    """Whether the run's state is final."""
    return settle(seen.facts).state in runs.TERMINAL


def link_to(run_folder: str, name: str) -> Link | None:
    """A link to the run's keeper; None when it has none any more. One that is just starting is waited for."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return Link.connect(run_folder)
        except NoKeeper:
            if is_kept(run_folder) is not True:
                return None
        except Silent:
            raise KeeperSilent(name, TIMEOUT_S) from None
        if time.monotonic() > deadline:
            raise KeeperSilent(name, TIMEOUT_S)
        time.sleep(RETRY_S)


def _wait(
    home: str,
    sessions: Sequence[Observation],
    wanted: tuple[str, ...],
    what: str,
    timeout_s: float | None,
    since: datetime | None = None,
    *,
    silence: bool = True,
) -> Observation:
    """The first session that is what was wanted, or whose run is over."""
    for seen in sessions:
        if seen.facts.state == runs.CREATED:
            raise Refused(f"{seen.record.name} has not been started", way_on(seen))
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    followed = [_Followed(home, seen, wanted, since, silence) for seen in sessions]
    try:
        while True:
            for one in followed:
                if one.look():
                    return one.seen
            pauses = [one.pause_s for one in followed if one.pause_s is not None]
            if deadline is not None:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise TimedOut(_names(followed), what, timeout_s or 0, _labels(followed))
                pauses.append(left_s)
            _until_told([one.link for one in followed], min(pauses, default=None))
    finally:
        for one in followed:
            one.close()


class _Followed:
    """One session that is waited for. ``pause_s``: after so long it is to be looked at, though nobody says anything."""

    def __init__(
        self, home: str, seen: Observation, wanted: tuple[str, ...], since: datetime | None, silence: bool
    ) -> None:
        self.seen = seen
        self.link: Link | None = None
        self.pause_s: float | None = None
        self._home, self._wanted, self._since, self._silence = home, wanted, since, silence

    def look(self) -> bool:
        """Whether it is what was wanted, or over."""
        if self.link is None or self.link.closed:
            self.close()
            # before the look: what changes after the look is told
            if not _is_over(self.seen, ()):
                self.link = link_to(self.seen.run_folder, self.seen.record.name)
        self.seen = _same_run(self._home, self.seen)
        now = datetime.now(UTC)
        facts = _known_since(self.seen.facts, self._since)
        if facts.report is None and not self._silence:
            return _is_over(self.seen, self._wanted)
        self.pause_s = _until_quiet_s(facts, now) if IDLE in self._wanted else None
        return _is_over(self.seen, self._wanted) or attention(facts, now) in self._wanted

    def close(self) -> None:
        if self.link is not None:
            self.link.close()
            self.link = None


def _until_told(links: list[Link | None], pause_s: float | None) -> None:
    """Until a keeper says something, or the pause is over. Who has no keeper is looked at again soon."""
    there = [link for link in links if link is not None]
    if len(there) < len(links):
        pause_s = RETRY_S if pause_s is None else min(pause_s, RETRY_S)
    if len(links) == 1 and there:
        there[0].frames(pause_s)
        return
    for link in readable(there, pause_s):
        link.frames(0)


def _names(followed: list[_Followed]) -> str:
    return ", ".join(one.seen.record.name for one in followed)


def _labels(followed: list[_Followed]) -> str:
    now = datetime.now(UTC)
    labels = [status(one.seen.facts, now).label for one in followed]
    return labels[0] if len(labels) == 1 else ", ".join(labels)


def _is_over(seen: Observation, wanted: tuple[str, ...]) -> bool:
    """An orphaned run is over for who waits for its attention; its end is when its process has ended."""
    facts = settle(seen.facts)
    return facts.state in runs.TERMINAL and (bool(wanted) or facts.keeper_alive is not True)


def _same_run(home: str, seen: Observation) -> Observation:
    """Look again. When another run has begun, the one that was followed has ended, as its files say."""
    found = again(home, seen)
    if found.facts.run == seen.facts.run:
        return found
    end = read_exit(seen.run_folder)
    return replace(seen, facts=settle(replace(seen.facts, exit=end, report=None, keeper_alive=False)))


def _known_since(facts: Facts, since: datetime | None) -> Facts:
    if since is None:
        return facts
    report = facts.report if facts.report is not None and facts.report.at > since else None
    return replace(facts, report=report, last_activity_at=max(facts.last_activity_at or since, since))


def _until_quiet_s(facts: Facts, now: datetime) -> float | None:
    """How long silence has to last on until it counts as idle; None when only the agent can say."""
    if facts.report is not None or attention(facts, now) != WORKING:
        return None
    quiet_s = seconds_between(facts.last_activity_at or facts.started_at, now)
    return max(0.0, rhythm.quiet_after_s(facts) - quiet_s) + A_LITTLE_MORE_S
