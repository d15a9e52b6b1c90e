"""Waiting for a session: its keeper tells what happens, and a timer tells when silence has lasted long enough.

Nothing is asked again and again. Every wait follows one run: a run that is started meanwhile is another one.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from hitchpost.errors import HitchpostError, KeeperSilent, Refused
from hitchpost.model import run as runs
from hitchpost.model.durations import seconds_between
from hitchpost.model.facts import Facts
from hitchpost.model.status import BLOCKED, DONE, IDLE, QUIET, WAITING, WORKING, attention, settle, status
from hitchpost.ops.views.advice import way_on
from hitchpost.ops.views.find import again
from hitchpost.ops.views.observe import Observation, read_exit
from hitchpost.runtimes.link import TIMEOUT_S, Link, NoKeeper, Silent, is_kept
from hitchpost.values import replace

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

RETRY_S = 0.01
A_LITTLE_MORE_S = 0.002


class TimedOut(HitchpostError):
    """Raised when a session did not become what was waited for in time."""

    def __init__(self, name: str, what: str, timeout_s: float, label: str) -> None:
        super().__init__(f"{name} {what} after {timeout_s:g} s (it is {label})")


def wait(home: str, seen: Observation, until: str, *, timeout_s: float | None = None) -> Observation:
    """Wait until the session is ``until``, a key of ``UNTIL``, or its run has ended: the caller looks which.

    Raises ``TimedOut``.
    """
    what = {EXIT: "had not ended", YOUR_TURN: "did not need anybody"}.get(until, f"was not {until}")
    return _wait(home, seen, UNTIL[until], what, timeout_s, None)


def wait_for_turn(home: str, seen: Observation, since: datetime, *, timeout_s: float | None = None) -> Observation:
    """Wait until the agent has dealt with what it was told at ``since``, or has ended. What it reported before does not
    count. Raises ``TimedOut``."""
    return _wait(home, seen, TURN_OVER, "was not idle again", timeout_s, since)


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
    home: str, seen: Observation, wanted: tuple[str, ...], what: str, timeout_s: float | None, since: datetime | None
) -> Observation:
    if seen.facts.state == runs.CREATED:
        raise Refused(f"{seen.record.name} has not been started", way_on(seen))
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    link: Link | None = None
    try:
        while True:
            if link is None or link.closed:
                if link is not None:
                    link.close()
                # before the look: what changes after the look is told
                link = None if _is_over(seen, ()) else link_to(seen.run_folder, seen.record.name)
            seen = _same_run(home, seen)
            now = datetime.now(UTC)
            facts = _known_since(seen.facts, since)
            if _is_over(seen, wanted) or attention(facts, now) in wanted:
                return seen
            pause_s = _until_quiet_s(facts, now) if IDLE in wanted else None
            if deadline is not None:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise TimedOut(seen.record.name, what, timeout_s or 0, status(seen.facts, now).label)
                pause_s = left_s if pause_s is None else min(pause_s, left_s)
            if link is None:
                time.sleep(RETRY_S if pause_s is None else min(pause_s, RETRY_S))
            else:
                link.frames(pause_s)
    finally:
        if link is not None:
            link.close()


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
    return max(0.0, facts.quiet_after_s - quiet_s) + A_LITTLE_MORE_S
