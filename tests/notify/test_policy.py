"""When a person is told, as pure decisions: edges, dwell, cooldown, groups, quiet hours, kinds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time

import pytest

from hitchpost.notify.news import News
from hitchpost.notify.policy import MUTED, PASSED, SEEN, Desk, Dropped, Noted, Rules

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def news(session: str = "a", kind: str = "permission", since: str = "2026-05-04T11:59:00Z", run: int = 1) -> News:
    words = {"permission": "Needs permission", "finished": "Finished", "your-turn": "Your turn"}[kind]
    return News(session, f"name-{session}", run, kind, words, "rm -r build", since)


def test_a_headline_is_told_once_when_it_has_held_for_the_dwell() -> None:
    desk, asked = Desk(Rules(dwell_s=3)), news()
    assert desk.hear("a", asked, 100.0) == [Noted(asked)]
    assert desk.due_s() == 103.0
    assert desk.take(102.9, NOON) == []
    assert desk.take(103.0, NOON) == [asked]
    assert (desk.due_s(), desk.take(200.0, NOON)) == (None, [])
    assert desk.hear("a", asked, 300.0) == []  # the same event, however often it is seen
    assert desk.due_s() is None


@pytest.mark.parametrize("other", [news(run=2), news(since="2026-05-04T12:01:00Z"), news(kind="finished")])
def test_another_run_time_or_headline_is_another_event(other: News) -> None:
    desk = Desk(Rules(dwell_s=0, cooldown_s=0, group_s=0))
    desk.hear("a", news(), 100.0)
    assert desk.take(100.0, NOON) == [news()]
    assert desk.hear("a", other, 200.0) == [Noted(other)]
    assert desk.take(200.0, NOON) == [other]


def test_other_words_about_the_same_event_are_not_told_again_but_the_newest_are_told() -> None:
    desk, later = Desk(Rules(dwell_s=3)), replace(news(), detail="rm -r dist")
    desk.hear("a", news(), 100.0)
    assert desk.hear("a", later, 101.0) == []
    assert desk.take(103.0, NOON) == [later]


def test_what_passes_within_the_dwell_is_not_told() -> None:
    desk = Desk(Rules(dwell_s=3))
    desk.hear("a", news(), 100.0)
    assert desk.hear("a", None, 102.0) == [Dropped(news(), PASSED)]
    assert desk.due_s() is None
    assert desk.hear("a", news(), 110.0) == []  # it is the same event, should it come back


def test_what_somebody_sees_within_the_dwell_is_not_told() -> None:
    desk = Desk(Rules(dwell_s=3))
    desk.hear("a", news(), 100.0)
    assert desk.hear("a", news(), 101.0, seen=True) == [Dropped(news(), SEEN)]
    assert desk.take(200.0, NOON) == []


def test_what_was_seen_when_it_came_is_not_news() -> None:
    desk = Desk(Rules(dwell_s=0))
    assert desk.hear("a", news(), 100.0, seen=True) == []
    assert desk.hear("a", news(), 101.0) == []
    assert desk.due_s() is None


def test_a_session_does_not_tell_the_same_kind_twice_within_the_cooldown_but_loses_nothing() -> None:
    desk = Desk(Rules(dwell_s=3, cooldown_s=60, group_s=0))
    again, turn = news(since="2026-05-04T12:00:10Z"), news(kind="your-turn", since="2026-05-04T12:00:20Z")
    desk.hear("a", news(), 100.0)
    assert desk.take(103.0, NOON) == [news()]
    desk.hear("a", again, 110.0)
    assert desk.due_s() == 163.0
    assert desk.take(120.0, NOON) == []
    assert desk.take(163.0, NOON) == [again]
    desk.hear("a", turn, 164.0)  # another kind does not wait
    assert desk.take(167.0, NOON) == [turn]


def test_the_first_is_told_at_once_and_those_right_after_it_together() -> None:
    desk = Desk(Rules(dwell_s=0, group_s=5))
    desk.hear("a", news("a", "finished"), 100.0)
    assert desk.take(100.0, NOON) == [news("a", "finished")]
    desk.hear("b", news("b", "finished"), 100.5)
    desk.hear("c", news("c", "permission"), 101.0)
    assert (desk.take(101.0, NOON), desk.due_s()) == ([], 105.0)
    assert desk.take(105.0, NOON) == [news("c", "permission"), news("b", "finished")]  # the most urgent first


@pytest.mark.parametrize(
    ("quiet", "hour", "minutes"),
    [
        ((time(22), time(7)), 23, 8 * 60),
        ((time(22), time(7)), 3, 4 * 60),
        ((time(22), time(7)), 7, 0),
        ((time(22), time(7)), 21, 0),
        ((time(12), time(13, 30)), 12, 90),
        ((time(12), time(13, 30)), 14, 0),
        (None, 3, 0),
    ],
)
def test_quiet_hours_may_go_through_midnight(quiet: tuple[time, time] | None, hour: int, minutes: int) -> None:
    assert Rules(quiet=quiet).quiet_for_s(NOON.replace(hour=hour)) == minutes * 60


def test_at_night_nothing_is_told_and_in_the_morning_what_still_holds_is_told_together() -> None:
    desk, late = Desk(Rules(dwell_s=0, quiet=(time(22), time(7)))), NOON.replace(hour=23)
    for session in "abc":
        desk.hear(session, news(session), 100.0)
    assert desk.take(100.0, late) == []
    assert desk.due_s() == 100.0 + 8 * 3600
    desk.hear("b", None, 200.0)
    assert desk.take(100.0 + 8 * 3600, NOON.replace(hour=7)) == [news("a"), news("c")]


def test_kinds_are_chosen_for_all_and_for_a_session_by_name_or_id() -> None:
    rules = Rules(kinds=("permission",), sessions={"name-b": ("finished",), "c": ()})
    assert rules.wants(news("a"))
    assert not rules.wants(news("a", "finished"))
    assert rules.wants(news("b", "finished"))
    assert not rules.wants(news("b"))
    assert not rules.wants(news("c"))
    desk = Desk(rules)
    assert desk.hear("c", news("c"), 100.0) == []
    assert desk.due_s() is None


def test_other_rules_drop_what_is_not_wanted_any_more() -> None:
    desk = Desk(Rules())
    desk.hear("a", news(), 100.0)
    desk.hear("b", news("b", "finished"), 100.0)
    assert desk.change(Rules(kinds=("finished",))) == [Dropped(news(), MUTED)]
    assert desk.take(200.0, NOON) == [news("b", "finished")]


def test_what_an_earlier_hub_has_told_is_known() -> None:
    desk = Desk(Rules(dwell_s=0), [news().key])
    assert desk.hear("a", news(), 100.0) == []
    assert desk.due_s() is None
