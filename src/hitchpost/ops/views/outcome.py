"""What became of a prompt: finished, asked, limit or failed; with the last answer, and what it has used."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from hitchpost.agents import catalog
from hitchpost.errors import UsageError
from hitchpost.model import run as runs
from hitchpost.model.attention import BLOCKED, ERROR, IDLE, LIMIT, WORKING
from hitchpost.model.limits import at_limit, goes_on_at
from hitchpost.model.status import settle, status
from hitchpost.model.usage import NOTHING, Tokens
from hitchpost.ops.views.find import again
from hitchpost.ops.views.observe import Observation
from hitchpost.ops.views.usage import turns
from hitchpost.ops.views.wait import EXIT, NOT_IDLE, TimedOut, has_ended, wait, wait_for_turn
from hitchpost.store import story
from hitchpost.store.answers import read_answer
from hitchpost.values import value

FINISHED, ASKED, AT_LIMIT, FAILED = "finished", "asked", "limit", "failed"
EXIT_CODES = {FINISHED: 0, ASKED: 10, AT_LIMIT: 11, FAILED: 12}
USAGE_S = 3.0
"""Agents tell what a turn has used a little after its end."""
LOOK_EVERY_S = 0.05
HUB_EVERY_S = 5.0
"""How often who waits out a usage limit looks whether a hub is still there that goes on at its end."""
TOLD_S = 180.0
"""An agent that was told to go on, and is still at its limit after this time, does not."""


@value
class Outcome:
    """``answer`` is the agent's own word, whole; None when it tells none. So is ``used``."""

    word: str
    answer: str | None
    used: Tokens | None
    seen: Observation

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.word]


def wait_for_outcome(
    home: str,
    seen: Observation,
    since: datetime,
    *,
    timeout_s: float | None = None,
    hub_is_up: Callable[[], bool] = lambda: False,
    hub_every_s: float = HUB_EVERY_S,
) -> Outcome:
    """Wait until an agent has dealt with what it was told at ``since``, or a program has ended. Raises ``TimedOut``.

    A usage limit is no outcome where the hub goes on at its end, as long as there is one.
    """
    if has_turns(seen):
        seen = _wait_for_turns(home, seen, since, timeout_s, hub_is_up, hub_every_s)
    else:
        seen = wait(home, seen, EXIT, timeout_s=timeout_s)
    answer = read_answer(seen.run_folder)
    told = answer is not None and datetime.fromisoformat(answer.at) >= since
    return Outcome(outcome(seen), answer.text if told and answer is not None else None, _used(home, seen, since), seen)


def _wait_for_turns(
    home: str,
    seen: Observation,
    since: datetime,
    timeout_s: float | None,
    hub_is_up: Callable[[], bool],
    hub_every_s: float,
) -> Observation:
    began_s = time.monotonic()
    after, waits_out, leaves_s = since, False, 0.0
    while True:
        left_s = None if timeout_s is None else max(0.0, began_s + timeout_s - time.monotonic())
        slice_s = hub_every_s if left_s is None else min(left_s, hub_every_s)
        try:
            within_s = slice_s if waits_out else left_s
            seen, is_told = wait_for_turn(home, seen, after, timeout_s=within_s, silence=not waits_out), True
        except TimedOut:
            found = again(home, seen)
            if timeout_s is not None and time.monotonic() >= began_s + timeout_s:
                label = status(found.facts, datetime.now(UTC)).label
                raise TimedOut(found.record.name, NOT_IDLE, timeout_s, label) from None
            seen, is_told = found if found.facts.run == seen.facts.run else seen, False
        facts, report, now_s = seen.facts, seen.facts.report, time.monotonic()
        waits_out = report is not None and report.at > since and at_limit(facts)
        if waits_out and report is not None:
            is_new, after = report.at != after, report.at
            goes_on = goes_on_at(facts) is not None and hub_is_up()
            if goes_on or is_new:
                leaves_s = now_s + TOLD_S
            if not goes_on and not (facts.gone_on_from == report.at and now_s < leaves_s):
                return seen
        elif is_told:
            if report is None or report.state != IDLE or has_ended(seen) or _has_worked(seen, since):
                return seen
            after = report.at  # it was at its prompt before it had ours


def outcome(seen: Observation) -> str:
    """One word for how a turn, or the run, has ended."""
    facts = settle(seen.facts)
    if facts.state in runs.TERMINAL:
        return FINISHED if facts.state == runs.COMPLETED else FAILED
    report = facts.report
    if report is not None and report.state == ERROR:
        return AT_LIMIT if report.kind == LIMIT else FAILED
    return ASKED if status(facts, datetime.now(UTC)).attention == BLOCKED else FINISHED


def has_turns(seen: Observation) -> bool:
    """Whether it is an agent of the catalog, which deals with one prompt after the other. Other programs just end."""
    return _agent(seen) is not None


def _agent(seen: Observation) -> catalog.Agent | None:
    try:
        return catalog.agent_of(seen.record.agent, seen.record.argv)
    except UsageError:
        return None  # its file is wrong by now


def _has_worked(seen: Observation, since: datetime) -> bool:
    lines = (line for line in story.read(seen.folder) if line["event"] == "attention" and line.get("state") == WORKING)
    return any(datetime.fromisoformat(str(line["at"])) >= since for line in lines)


def _used(home: str, seen: Observation, since: datetime) -> Tokens | None:
    agent = _agent(seen)
    if agent is None or not agent.tells_usage:
        return None
    deadline = time.monotonic() + USAGE_S
    while True:
        found = turns(home, since, frozenset((seen.record.id,)))
        if found:
            return sum((turn.tokens for turn in found), NOTHING)
        if time.monotonic() > deadline or outcome(seen) == ASKED:
            return None
        time.sleep(LOOK_EVERY_S)
