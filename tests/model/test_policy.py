from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitchpost.model import policy, record, run
from hitchpost.model.facts import Exit, Facts
from hitchpost.model.policy import (
    RestartDecision,
    RestartPolicy,
    Retention,
    Watched,
    confirm,
    delete_at,
    reap_due,
    restart_decision,
)
from tests.model.made import NOW, STATES, ago, ended, facts_with, reported, running

ON_FAILURE = RestartPolicy(mode=policy.ON_FAILURE)
CRASHED = ended(run.FAILED, Exit(code=1))
HALF_AN_HOUR_S = 1800.0
NOW_S = 1e6


def crash_loop(rules: RestartPolicy, life_s: float = 0) -> tuple[list[float], list[float | None]]:
    """When an agent that lives ``life_s`` is restarted, and what each decision was, until nobody tries again."""
    restarts: list[float] = []
    delays: list[float | None] = []
    now_s = NOW_S
    while True:
        now_s += life_s
        decision = restart_decision(rules, CRASHED, restarts, now_s)
        delays.append(decision.delay_s)
        if decision.delay_s is None:
            return restarts, delays
        now_s += decision.delay_s
        restarts.append(now_s)


@pytest.mark.ids("F16")
def test_the_setting_has_the_words_of_the_design() -> None:
    assert (policy.NEVER, policy.ON_FAILURE, RestartPolicy().mode) == ("never", "on-failure", "never")


@pytest.mark.ids("E-8", "X7")
def test_nothing_restarts_by_itself_unless_somebody_wants_it() -> None:
    assert restart_decision(RestartPolicy(), CRASHED, [], NOW_S) == RestartDecision(None, "restart is off")


@pytest.mark.ids("F16")
def test_a_crash_is_followed_by_a_restart_at_once() -> None:
    assert restart_decision(ON_FAILURE, CRASHED, [], NOW_S) == RestartDecision(0, "restart 1 of 5 in 10 s")


@pytest.mark.ids("F16")
def test_a_crash_loop_is_restarted_five_times_then_later_and_later_and_then_no_more() -> None:
    _, delays = crash_loop(ON_FAILURE)
    assert delays == [0, 0, 0, 0, 0, 10, 20, 40, 60, 60, None]


@pytest.mark.ids("F16")
def test_a_restart_that_waits_says_for_how_long() -> None:
    decision = restart_decision(ON_FAILURE, CRASHED, [NOW_S] * 5, NOW_S)
    assert decision == RestartDecision(10, "5 restarts and failed again, so the next waits 10 s")


@pytest.mark.ids("F16")
def test_giving_up_says_after_how_many_restarts() -> None:
    decision = restart_decision(ON_FAILURE, CRASHED, [NOW_S - 3600] * 10, NOW_S)
    assert decision == RestartDecision(None, "restarted 10 times and failed again")


@pytest.mark.ids("F16")
def test_a_crash_long_after_the_last_restart_is_followed_by_one_at_once() -> None:
    decision = restart_decision(ON_FAILURE, CRASHED, [NOW_S - 3600] * 6, NOW_S)
    assert decision == RestartDecision(0, "restart 1 of 5 in 10 s")


@pytest.mark.ids("F16")
def test_a_restart_waits_until_the_window_has_room_even_when_the_back_off_is_shorter() -> None:
    rules = RestartPolicy(mode=policy.ON_FAILURE, first_delay_s=1)
    restarts = [NOW_S - 8, NOW_S - 6, NOW_S - 4, NOW_S - 2, NOW_S - 0]
    assert restart_decision(rules, CRASHED, restarts, NOW_S).delay_s == 2


@pytest.mark.ids("F16")
@pytest.mark.parametrize(
    ("burst", "first_delay_s", "expected"),
    [(0, 10, [10, 20, 40, None]), (0, 0, [0, 0, 0, None]), (1, 0, [0, 10, 10, None]), (2, 0, [0, 0, 10, None])],
)
def test_a_policy_may_have_another_burst(burst: int, first_delay_s: float, expected: list[float | None]) -> None:
    rules = RestartPolicy(mode=policy.ON_FAILURE, burst=burst, first_delay_s=first_delay_s, attempts=3)
    _, delays = crash_loop(rules)
    assert delays == expected


@pytest.mark.ids("F16")
@pytest.mark.parametrize(("last_s", "delay_s"), [(5, 10), (9.9, 10), (10, 0)])
def test_the_back_off_lasts_until_a_run_outlives_the_window(last_s: float, delay_s: float) -> None:
    restarts = [*[NOW_S - 60] * 4, NOW_S - last_s]
    assert restart_decision(ON_FAILURE, CRASHED, restarts, NOW_S).delay_s == delay_s


@pytest.mark.ids("F16")
@given(
    burst=st.integers(1, 6),
    window_s=st.integers(1, 20),
    first_delay_s=st.integers(0, 20),
    longest_delay_s=st.integers(0, 60),
    attempts=st.integers(0, 20),
    life_s=st.integers(0, 30),
)
def test_no_window_ever_holds_more_restarts_than_the_burst(
    burst: int, window_s: int, first_delay_s: int, longest_delay_s: int, attempts: int, life_s: int
) -> None:
    rules = RestartPolicy(policy.ON_FAILURE, burst, window_s, first_delay_s, longest_delay_s, attempts)
    restarts, _ = crash_loop(rules, life_s)
    assert len(restarts) == attempts
    assert all(later - earlier >= window_s for earlier, later in zip(restarts, restarts[burst:], strict=False))


def test_the_longest_delay_holds_however_often_it_was_tried() -> None:
    rules = RestartPolicy(mode=policy.ON_FAILURE, attempts=5000)
    assert restart_decision(rules, CRASHED, [NOW_S - 5] * 4000, NOW_S).delay_s == 60


@pytest.mark.ids("F16", "A31-9")
@pytest.mark.parametrize("state", [state for state in STATES if state != run.FAILED])
def test_only_a_failed_run_is_restarted(state: str) -> None:
    decision = restart_decision(ON_FAILURE, running(state=state), [], NOW_S)
    assert decision == RestartDecision(None, f"the run is {state}, not failed")


@pytest.mark.ids("F16", "X7")
@pytest.mark.parametrize("kept", [record.SUSPENDED, record.ARCHIVED, record.ERROR])
def test_only_an_active_record_is_restarted(kept: str) -> None:
    decision = restart_decision(ON_FAILURE, ended(run.FAILED, Exit(code=1), record=kept), [], NOW_S)
    assert decision == RestartDecision(None, f"the record is {kept}")


@pytest.mark.ids("D-10", "D-5", "X16")
@pytest.mark.parametrize(
    ("kept", "resumable", "kept_for"),
    [
        (record.SUSPENDED, False, timedelta(days=7)),
        (record.SUSPENDED, True, timedelta(days=30)),
        (record.ERROR, False, timedelta(hours=24)),
        (record.ERROR, True, timedelta(hours=24)),
        (record.ACTIVE, False, None),
        (record.ACTIVE, True, None),
        (record.ARCHIVED, False, None),
        (record.ARCHIVED, True, None),
    ],
)
def test_a_record_is_kept_for_its_time_since_it_was_last_active(
    kept: str, resumable: bool, kept_for: timedelta | None
) -> None:
    facts = ended(run.STOPPED, record=kept, supports_resume=resumable)
    assert delete_at(Retention(), facts, NOW) == (kept_for and NOW + kept_for)


@pytest.mark.ids("D-10")
def test_the_times_of_retention_are_settings() -> None:
    week, month, day = timedelta(weeks=1), timedelta(weeks=4), timedelta(days=2)
    retention = Retention(suspended=week, resumable=month, error=day)
    kept = [
        delete_at(retention, running(record=record.SUSPENDED), NOW),
        delete_at(retention, running(record=record.SUSPENDED, supports_resume=True), NOW),
        delete_at(retention, running(record=record.ERROR), NOW),
    ]
    assert kept == [NOW + week, NOW + month, NOW + day]


@pytest.mark.ids("D-9", "X25")
@pytest.mark.parametrize(("silent_s", "due"), [(0, False), (1799, False), (1800, True), (7200, True)])
def test_a_process_is_reaped_once_it_has_been_silent_long_enough(silent_s: float, due: bool) -> None:
    assert reap_due(running(), silent_s, HALF_AN_HOUR_S) is due


@pytest.mark.ids("D-9")
@pytest.mark.parametrize("quiet_s", [0, 7200, 10**9])
def test_what_the_wall_clock_says_about_its_last_output_reaps_nothing(quiet_s: float) -> None:
    assert not reap_due(running(last_activity_at=ago(quiet_s)), 10, HALF_AN_HOUR_S)


@pytest.mark.ids("D-9")
@pytest.mark.parametrize(
    ("word", "due"), [("working", False), ("blocked", False), ("idle", True), ("done", True), ("error", True)]
)
def test_an_agent_that_works_or_has_asked_something_is_not_reaped(word: str, due: bool) -> None:
    assert reap_due(running(report=reported(word)), 7200, HALF_AN_HOUR_S) is due


@pytest.mark.ids("D-9")
@pytest.mark.parametrize("alive", [False, None])
def test_a_process_whose_keeper_is_not_known_to_live_is_not_reaped(alive: bool | None) -> None:
    assert not reap_due(running(keeper_alive=alive), 7200, HALF_AN_HOUR_S)


@pytest.mark.ids("D-9")
@given(facts_with(state=st.sampled_from([state for state in STATES if state != run.RUNNING])))
def test_only_a_running_process_is_reaped(facts: Facts) -> None:
    assert not reap_due(facts, 1e9, 0)


RULES = Retention(sure_after_s=100, most_per_day=3)


def looks(*moments: tuple[str, float, str], rules: Retention = RULES) -> list[list[str]]:
    """What may go at each look: boot, seconds since it, and the records that are due, a letter each."""
    watched, gone = Watched(), []
    for boot, at_s, due in moments:
        watched, going = confirm(rules, watched, due, boot, at_s)
        gone.append(going)
    return gone


@pytest.mark.ids("D-10")
def test_what_is_due_goes_at_a_look_that_is_late_enough() -> None:
    assert looks(("a", 50, "x"), ("a", 149, "x"), ("a", 150, "xy"), ("a", 250, "y")) == [[], [], ["x"], ["y"]]


@pytest.mark.ids("D-10")
def test_a_record_that_was_not_due_in_between_begins_anew() -> None:
    assert looks(("a", 0, "x"), ("a", 50, ""), ("a", 100, "x"), ("a", 200, "x")) == [[], [], [], ["x"]]


@pytest.mark.ids("D-10", "F40")
def test_time_between_two_boots_does_not_count_and_what_was_seen_before_does() -> None:
    assert looks(("a", 0, "x"), ("a", 60, "x"), ("b", 900, "x"), ("b", 939, "x"), ("b", 940, "x"))[2:] == [
        [],
        [],
        ["x"],
    ]


def test_a_boot_clock_that_goes_back_counts_as_no_time() -> None:
    assert looks(("a", 500, "x"), ("a", 100, "x"), ("a", 150, "x"), ("a", 200, "x")) == [[], [], [], ["x"]]


@pytest.mark.ids("D-10")
def test_only_so_many_go_in_a_day_and_those_that_were_due_longest_first() -> None:
    day = policy.DAY_S
    seen = looks(("a", 0, "z"), ("a", 1, "vwxyz"), ("a", 200, "vwxyz"), ("a", 300, "xy"), ("a", 200 + day, "xy"))
    assert seen == [[], [], ["z", "v", "w"], [], ["x", "y"]]


@pytest.mark.ids("D-10")
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 3 * 86400), st.sets(st.sampled_from("uvwxyz"))), max_size=12
    )
)
def test_no_day_sees_more_deletions_than_allowed_and_no_record_goes_at_its_first_look(
    seen: list[tuple[str, int, set[str]]],
) -> None:
    ordered = sorted(seen, key=lambda look: (look[0], look[1]))
    gone = looks(*((boot, at_s, "".join(sorted(due))) for boot, at_s, due in ordered))
    for place, (boot, at_s, _) in enumerate(ordered):
        day = [
            going
            for (other, then_s, _), going in zip(ordered[: place + 1], gone, strict=False)
            if other == boot and at_s - then_s < policy.DAY_S
        ]
        assert sum(map(len, day)) <= RULES.most_per_day
        assert all(any(session in due for _, _, due in ordered[:place]) for session in gone[place])


def test_by_default_a_day_must_pass_and_twenty_records_go_in_it() -> None:
    assert (Retention().sure_after_s, Retention().most_per_day) == (24 * 3600, 20)
