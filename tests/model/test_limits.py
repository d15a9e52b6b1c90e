"""Usage limits: who goes on, when, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from hitchpost.model import record, run
from hitchpost.model.facts import Facts, Report
from hitchpost.model.headline import NOT_KNOWN, TROUBLE, WAITS
from hitchpost.model.limits import (
    AGAIN_S,
    FIRST_PAUSE_S,
    LATE_AFTER_S,
    LONGEST_PAUSE_S,
    NOT_YET,
    STOP,
    TELLING_S,
    Wait,
    due,
    goes_on_at,
    went_on,
)
from hitchpost.model.policy import reap_due
from hitchpost.model.status import status
from hitchpost.values import replace
from tests.model.made import NOW, ago, ended, running

HOUR_S = 3600.0


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def limit(ends_in_s: float | None = HOUR_S, told: datetime = NOW, state: str = "error", kind: str = "limit") -> Report:
    ends_at = None if ends_in_s is None else told + timedelta(seconds=ends_in_s)
    return Report(state, "hooks", told, kind=kind, until="13:00", ends_at=ends_at)


def waiting(**changes: object) -> Facts:
    return running(**{"when_limit": "wait", "report": limit()} | changes)


def looks(*looked: tuple[float, float, Facts]) -> list[bool]:
    """Whether it went on at each look: seconds by the calendar since noon, seconds since the boot, and the session."""
    waits: Mapping[str, Wait] = {}
    went = []
    for wall_s, at_s, facts in looked:
        waits, going = due(waits, {"dev": facts}, later(wall_s), at_s)
        went.append(going == ["dev"])
    return went


def test_one_that_waits_goes_on_when_its_limit_ends() -> None:
    assert goes_on_at(waiting()) == later(HOUR_S)
    assert looks((0, 100, waiting()), (3599, 3699, waiting()), (3600, 3700, waiting())) == [False, False, True]


@pytest.mark.parametrize(
    "facts",
    [
        waiting(when_limit=STOP),
        waiting(report=None),
        waiting(report=limit(None)),
        waiting(report=limit(kind="")),
        waiting(report=limit(state="working")),
        waiting(report=limit(state="done")),
        waiting(report=limit(state="blocked")),
        waiting(gone_on_from=NOW),
        waiting(record=record.SUSPENDED),
        waiting(keeper_alive=False),
        ended(run.STOPPED, when_limit="wait", report=limit()),
    ],
    ids=[
        "nobody wants it",
        "no report",
        "an end that is not known",
        "another error",
        "somebody was faster",
        "it is done",
        "it tries again itself",
        "it has gone on already",
        "suspended",
        "nobody hears it",
        "it has ended",
    ],
)
def test_nothing_else_goes_on(facts: Facts) -> None:
    assert goes_on_at(facts) is None
    assert looks((0, 0, facts), (2 * HOUR_S, 2 * HOUR_S, facts)) == [False, False]


@pytest.mark.parametrize("turned_s", [-86400.0, 86400.0])
def test_a_wall_clock_that_is_turned_meanwhile_changes_nothing(turned_s: float) -> None:
    told = (0, 100, waiting()), (turned_s, 3699, waiting()), (turned_s, 3700, waiting())
    assert looks(*told) == [False, False, True]


def test_a_hub_that_comes_late_goes_on_at_once() -> None:
    assert looks((2 * HOUR_S, 7, waiting())) == [True]


def test_it_goes_on_once_and_is_tried_again_only_where_it_has_not() -> None:
    told = (3600, 0, waiting()), (3601, 1, waiting()), (3700, AGAIN_S - 1, waiting()), (3800, AGAIN_S, waiting())
    assert looks(*told) == [True, False, False, True]
    gone = waiting(gone_on_from=NOW)
    assert looks((3600, 0, waiting()), (3601, 1, gone), (9999, 9999, gone)) == [True, False, False]


def test_one_that_refuses_is_tried_less_and_less_and_the_next_limit_is_not_put_off() -> None:
    at_s: float = 0.0
    tried: list[float] = []
    waits: Mapping[str, Wait] = {}
    while len(tried) < 8:
        waits, going = due(waits, {"dev": waiting()}, later(HOUR_S), at_s)
        tried += [at_s] * len(going)
        # a prompt that is under way is written down, and taken back when it is refused
        waits, going = due(waits, {"dev": waiting(gone_on_from=NOW)}, later(HOUR_S), at_s)
        assert going == []
        at_s += 10
    pauses = [after - before for before, after in pairwise(tried)]
    assert pauses[:4] == [AGAIN_S, 2 * AGAIN_S, 4 * AGAIN_S, 8 * AGAIN_S]
    assert pauses[-1] == LONGEST_PAUSE_S
    another = waiting(report=limit(1, told=later(100)))
    assert due(waits, {"dev": another}, later(HOUR_S), at_s)[1] == ["dev"]


def test_limits_that_follow_each_other_are_waited_out_longer_each_time() -> None:
    at_s: float = 0.0
    gone: list[float] = []
    waits: Mapping[str, Wait] = {}
    while len(gone) < 9:
        told = waiting(report=limit(1, told=later(len(gone))))  # another one, one second long
        waits, going = due(waits, {"dev": told}, later(1e6), at_s)
        if going:
            gone.append(at_s)
            waits = {"dev": went_on(waits.get("dev", NOT_YET), at_s)}
        at_s += 1
    pauses = [after - before for before, after in pairwise(gone)]
    assert pauses[:4] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S, 8 * FIRST_PAUSE_S]
    assert pauses[-1] == LONGEST_PAUSE_S
    rested = waiting(report=limit(1, told=later(100)))
    assert due(waits, {"dev": rested}, later(1e6), at_s + 7 * HOUR_S)[1] == ["dev"]
    assert due(waits, {}, later(1e6), at_s) == ({}, [])


def test_it_says_until_when_it_waits_and_is_not_ended_meanwhile() -> None:
    shown = status(waiting(last_activity_at=ago(9000)), NOW)
    assert (shown.headline, shown.detail) == ("Usage limit", "until 13:00 · the hub goes on then")
    assert (shown.rank, shown.section) == (WAITS.rank, WAITS.section)
    assert not reap_due(waiting(), 9000, 1800)
    assert reap_due(waiting(when_limit=STOP), 9000, 1800)
    unknown = status(waiting(report=limit(None)), NOW).detail
    assert unknown == "until 13:00 · when it ends is not known, so the hub does not go on"
    assert status(waiting(when_limit=STOP), NOW).detail == "until 13:00"
    assert status(waiting(gone_on_from=NOW), NOW).detail == "until 13:00 · was told to go on"


def test_the_end_of_a_limit_names_the_day_where_it_is_another_one() -> None:
    assert status(waiting(report=limit(2 * 86400)), NOW).detail == "until Nov 18, 12:00 · the hub goes on then"


def test_one_that_a_hub_was_about_to_tell_is_not_told_twice_and_needs_somebody() -> None:
    doubtful = waiting(gone_on_from=NOW, gone_on_at=later(HOUR_S), gone_on_known=False)
    assert looks((0, 100, waiting()), (3600, 3700, doubtful), (9000, 9100, doubtful)) == [False, False, False]
    now, then = (status(doubtful, later(HOUR_S + TELLING_S * part)) for part in (0.9, 1.1))
    assert (now.detail, now.rank) == ("until 13:00 · is told to go on", WAITS.rank)
    assert then.detail == f"until 13:00 · {NOT_KNOWN}"
    assert (then.rank, then.section) == (TROUBLE.rank, TROUBLE.section)
    # a person has prompted it since
    after = replace(doubtful, report=limit(told=later(HOUR_S + 9)))
    assert goes_on_at(after) == later(2 * HOUR_S + 9)
    assert "the hub goes on then" in status(after, later(HOUR_S + 10)).detail


def test_one_that_should_have_gone_on_some_minutes_ago_needs_somebody() -> None:
    soon, late = (status(waiting(), later(HOUR_S + LATE_AFTER_S * part)) for part in (0.9, 1.1))
    assert (soon.detail, soon.rank) == ("until 13:00 · the hub goes on then", WAITS.rank)
    assert late.detail == "until 13:00 · has not gone on yet; only a running hub does that"
    assert (late.rank, late.section) == (TROUBLE.rank, TROUBLE.section)
