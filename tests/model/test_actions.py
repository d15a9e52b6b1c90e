from __future__ import annotations

import pytest
from hypothesis import given

from hitchpost.model import record, run
from hitchpost.model.actions import STOP
from hitchpost.model.facts import Exit, Facts
from hitchpost.model.headline import NEEDS_YOU
from hitchpost.model.status import status
from hitchpost.values import replace
from tests.model.made import NOW, ago, ended, facts_with, reported, running

PLACE = {"has_work": True, "has_workspace": True}
STALE = {"runtime": "docker", "sandbox_alive": True, "session_alive": False}


def can(facts: Facts) -> tuple[str, ...]:
    return status(facts, NOW).actions


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        (running(report=replace(reported("blocked"), request="r1")), ("answer", "stop", "restart")),
        (running(report=reported("blocked")), ("look", "stop", "restart")),
        (running(report=reported("blocked"), **PLACE), ("look", "review", "stop", "restart")),
        (running(report=reported("idle"), **PLACE), ("reply", "review", "stop", "restart")),
        (running(report=reported("done"), **PLACE), ("review", "reply", "stop", "restart")),
        (running(report=reported("error")), ("reply", "stop", "restart")),
        (running(report=replace(reported("error"), kind="limit")), ("look", "stop", "restart")),
        (running(report=reported("working")), ("stop", "restart")),
        (running(), ("reply", "stop", "restart")),
        (running(probe_failed=True), ("explain", "stop", "restart")),
        (running(process_stopped=True, report=reported("idle")), ("explain", "stop", "restart")),
        (running(runtime="adopted"), ("reply", "stop")),
        (ended(run.COMPLETED, Exit(code=0), runtime="adopted"), ("archive", "delete")),
        (ended(run.ORPHANED, None, folder_back=True, **PLACE), ("restart", "archive", "delete")),
        (running(state=run.STARTING), ("stop", "restart")),
        (ended(run.ORPHANED, None, **PLACE), ("restore", "archive", "delete")),
        (running(workspace_missing=True, **PLACE), ("restore", "stop")),
        (running(workspace_missing=True), ("stop",)),
        (running(state=run.CREATED, keeper_alive=None), ("restart", "archive", "delete")),
        (running(**STALE), ("restart-in-container", "stop", "archive", "delete")),
        (ended(run.FAILED, Exit(code=1)), ("restart", "archive", "delete")),
        (ended(run.FAILED, Exit(code=1), supports_resume=True), ("resume", "restart", "archive", "delete")),
        (ended(run.COMPLETED, Exit(code=0), **PLACE), ("review", "reply", "restart", "archive", "delete")),
        (ended(run.STOPPED, Exit(code=0, intent=run.USER)), ("restart", "archive", "delete")),
        (ended(run.ORPHANED), ("archive", "delete")),
        (ended(run.FAILED, Exit(code=1), record=record.SUSPENDED), ("restart", "archive", "delete")),
        (ended(run.FAILED, Exit(code=1), record=record.ARCHIVED), ("unarchive", "delete")),
        (ended(run.FAILED, Exit(code=1), record=record.ERROR), ("explain", "delete")),
    ],
)
def test_what_can_be_done_has_the_most_useful_first(facts: Facts, found: tuple[str, ...]) -> None:
    assert can(facts) == found


@given(facts_with())
def test_something_can_always_be_done_and_nothing_twice(facts: Facts) -> None:
    found = can(facts)
    assert found
    assert len(set(found)) == len(found)


@given(facts_with())
def test_nobody_who_is_needed_is_offered_the_end_of_a_live_one_first(facts: Facts) -> None:
    found = status(facts, NOW)
    assert not (found.live and found.section == NEEDS_YOU and found.actions[0] == STOP)


def test_seeing_changes_nothing_that_can_be_done() -> None:
    failed = ended(run.FAILED, Exit(code=1))
    assert can(replace(failed, seen_at=ago(0))) == can(failed)
