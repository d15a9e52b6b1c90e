"""What became of a prompt: finished, asked, limit or failed; with the last answer, and what it has used."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from hitchpost.agents import catalog
from hitchpost.errors import UsageError
from hitchpost.model import run as runs
from hitchpost.model.attention import BLOCKED, ERROR, IDLE, LIMIT, WORKING
from hitchpost.model.limits import goes_on_at
from hitchpost.model.status import settle, status
from hitchpost.model.usage import NOTHING, Tokens
from hitchpost.ops.views.observe import Observation
from hitchpost.ops.views.usage import turns
from hitchpost.ops.views.wait import EXIT, has_ended, wait, wait_for_turn
from hitchpost.store import story
from hitchpost.store.answers import read_answer
from hitchpost.values import value

FINISHED, ASKED, AT_LIMIT, FAILED = "finished", "asked", "limit", "failed"
EXIT_CODES = {FINISHED: 0, ASKED: 10, AT_LIMIT: 11, FAILED: 12}
USAGE_S = 3.0
"""Agents tell what a turn has used a little after its end."""
LOOK_EVERY_S = 0.05


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
) -> Outcome:
    """Wait until an agent has dealt with what it was told at ``since``, or a program has ended. Raises ``TimedOut``.

    A usage limit is no outcome where the hub goes on at its end.
    """
    if not has_turns(seen):
        seen = wait(home, seen, EXIT, timeout_s=timeout_s)
    else:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        after = since
        while True:
            left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            seen = wait_for_turn(home, seen, after, timeout_s=left_s)
            report = seen.facts.report
            if report is not None and goes_on_at(seen.facts) is not None and hub_is_up():
                after = report.at
                continue
            if report is None or report.state != IDLE or has_ended(seen) or _has_worked(seen, since):
                break
            after = report.at  # it was at its prompt before it had ours
    answer = read_answer(seen.run_folder)
    told = answer is not None and datetime.fromisoformat(answer.at) >= since
    return Outcome(outcome(seen), answer.text if told and answer is not None else None, _used(home, seen, since), seen)


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
