from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitchpost.model import record, run
from hitchpost.model.compat import agent_state
from hitchpost.model.durations import duration
from hitchpost.model.facts import DOCKER, LOCAL, POD, TMUX, Exit, Facts
from hitchpost.model.headline import SECTIONS, colour_of
from hitchpost.model.status import (
    FOREVER_S,
    ROUNDED_S,
    Status,
    as_seen,
    attention,
    is_stale,
    label_after,
    rests,
    session_alive,
    settle,
    status,
    torn_down,
)
from hitchpost.values import fields, replace
from tests.model.made import (
    FACTS_THAT_WAIT,
    NOW,
    RECORDS,
    STATES,
    ago,
    around_a_turn,
    ended,
    exits,
    facts_with,
    moments,
    reported,
    running,
)

ARBITRARY = facts_with(
    state=st.sampled_from(STATES) | st.text(),
    record=st.sampled_from(RECORDS) | st.text(),
    runtime=st.text(),
)
DEAD_IN_A_SANDBOX = {"runtime": DOCKER, "sandbox_alive": True, "session_alive": False}


def labelled(facts: Facts) -> tuple[str, str]:
    return status(facts, NOW).word, status(facts, NOW).label


# The whole


def test_a_status_says_everything_about_a_running_session() -> None:
    assert status(running(earlier_runs_s=323), NOW) == Status(
        word="running",
        label="running",
        state="running",
        reason="",
        attention="working",
        headline="Working",
        detail="",
        since=ago(600),
        rank=6,
        glyph="◐",
        colour="green",
        section="working",
        actions=("reply", "stop", "restart"),
        session_alive=True,
        idle_s=1,
        in_status_s=600,
        total_s=923,
        total_grows=True,
        live=True,
        takes_prompt=True,
        refusal=None,
        quiet_since=None,
        counting="",
        holds_s=2 - ROUNDED_S,
    )


@pytest.mark.ids("A22-5", "F2")
def test_a_status_says_everything_about_a_failed_session() -> None:
    facts = ended(run.FAILED, Exit(code=1, ended_at=ago(185)), state_changed_at=ago(185))
    assert status(facts, NOW) == Status(
        word="failed",
        label="failed: command exited with code 1",
        state="failed",
        reason="command exited with code 1",
        attention="unknown",
        headline="Failed",
        detail="command exited with code 1",
        since=ago(185),
        rank=4,
        glyph="✕",
        colour="red",
        section="needs-you",
        actions=("restart", "archive", "delete"),
        session_alive=False,
        idle_s=0,
        in_status_s=185,
        total_s=415,
        total_grows=False,
        live=False,
        takes_prompt=False,
        refusal=None,
        quiet_since=None,
        counting="",
        holds_s=FOREVER_S,
    )


SECONDS = {"label", "idle_s", "in_status_s", "total_s", "holds_s"}


@pytest.mark.parametrize("kind", FACTS_THAT_WAIT)
@settings(max_examples=200)
@given(st.data())
def test_words_hold_as_long_as_they_say(kind: str, data: st.DataObject) -> None:
    facts = data.draw(FACTS_THAT_WAIT[kind])
    first, later = data.draw(around_a_turn(facts))
    words, then = status(facts, first), status(facts, later)
    if (later - first).total_seconds() < words.holds_s:
        assert {name: getattr(then, name) for name in fields(then) if name not in SECONDS} == {
            name: getattr(words, name) for name in fields(words) if name not in SECONDS
        }
        assert label_after(words, later) == then.label
    assert words.holds_s >= 0


def test_words_that_only_count_hold_for_long() -> None:
    quiet = running(last_activity_at=ago(100))
    words = status(quiet, NOW)
    assert (words.label, words.holds_s) == ("running (idle 1m 40s)", FOREVER_S)
    assert label_after(words, NOW + timedelta(hours=2)) == "running (idle 2h 1m)"


def test_words_do_not_hold_while_a_clock_is_ahead() -> None:
    assert status(running(started_at=NOW + timedelta(seconds=5)), NOW).holds_s == 0


@given(ARBITRARY | facts_with(), moments)
def test_every_combination_of_facts_has_a_status(facts: Facts, now: datetime) -> None:
    shown = status(facts, now)
    assert shown.label.startswith(shown.word)
    assert shown.section in SECTIONS
    assert min(shown.idle_s, shown.in_status_s, shown.total_s) >= 0


@pytest.mark.ids("C70-15")
def test_a_state_of_a_newer_version_is_shown_as_it_is_in_the_colour_of_doubt() -> None:
    shown = status(running(state="hibernating"), NOW)
    assert (shown.word, shown.colour) == ("hibernating", "yellow")


# What a list and a prompt box need


def test_who_wants_something_ranks_first_and_has_a_colour_of_its_own() -> None:
    shown = [
        running(report=reported("blocked")),
        running(report=reported("idle")),
        running(report=reported("error")),
        ended(run.FAILED, Exit(code=1)),
        running(probe_failed=True),
        running(report=reported("done")),
        running(),
        ended(run.COMPLETED, Exit(code=0)),
        running(record=record.ARCHIVED, report=reported("blocked")),
    ]
    words = [status(facts, NOW) for facts in shown]
    assert [word.rank for word in words] == [1, 2, 3, 4, 4, 5, 6, 5, 9]
    colours = ["orange", "orange", "violet", "red", "yellow", "blue", "green", "blue", "grey"]
    assert [word.colour for word in words] == colours
    assert [word.live for word in words] == [True, True, True, False, True, True, True, False, True]


@given(facts_with(), moments)
def test_only_an_active_session_takes_a_prompt_while_it_runs_or_rests(facts: Facts, now: datetime) -> None:
    shown = status(facts, now)
    active = facts.record == record.ACTIVE and shown.state == run.RUNNING
    assert shown.takes_prompt == (active or rests(facts))


@given(facts_with(), moments)
def test_the_time_that_a_label_counts_is_in_the_status(facts: Facts, now: datetime) -> None:
    shown = status(facts, now)
    counts = shown.label.endswith(f" {duration(shown.idle_s)})")
    assert counts == (shown.quiet_since is not None) or facts.last_activity_at is facts.started_at is None
    assert shown.quiet_since in (None, facts.last_activity_at or facts.started_at)


# The word: the first match wins


@given(facts_with(record=st.sampled_from((record.ARCHIVED, record.ERROR, record.SUSPENDED))), moments)
def test_a_record_that_is_not_active_hides_everything_else(facts: Facts, now: datetime) -> None:
    assert status(facts, now).word == facts.record


@pytest.mark.ids("X9", "F63")
@given(facts_with(record=st.just(record.ACTIVE), probe_failed=st.just(True), same_boot=st.just(True)), moments)
def test_after_a_failed_probe_the_word_is_unknown_and_never_stale(facts: Facts, now: datetime) -> None:
    assert status(facts, now).word == "unknown"


@pytest.mark.ids("C70-1", "C70-2", "F64")
@given(
    facts_with(
        record=st.just(record.ACTIVE),
        state=st.sampled_from((run.RUNNING, run.COMPLETED)),
        probe_failed=st.just(False),
        keeper_alive=st.just(True),
        workspace_missing=st.just(False),
        exit=st.none() | exits().map(lambda end: replace(end, intent=None, error=None)),
        runtime=st.sampled_from((DOCKER, POD)),
        sandbox_alive=st.just(True),
        sandbox_paused=st.just(False),
        session_alive=st.just(False),
    ),
    moments,
)
def test_a_dead_session_in_a_live_sandbox_is_stale_whatever_its_code(facts: Facts, now: datetime) -> None:
    shown = status(facts, now)
    place = "pod" if facts.runtime == POD else "container"
    assert (shown.word, shown.label) == ("stale", f"stale ({place} running, session dead)")


@given(
    facts_with(
        record=st.just(record.ACTIVE),
        probe_failed=st.just(False),
        keeper_alive=st.sampled_from((True, None)),
        workspace_missing=st.just(False),
        sandbox_alive=st.none(),
    ),
    moments,
)
def test_the_word_is_the_state_of_the_run_when_nothing_else_matches(facts: Facts, now: datetime) -> None:
    assert status(facts, now).word == (run.STOPPED if torn_down(facts) else facts.state)


@given(facts_with(), moments)
def test_the_first_match_wins(facts: Facts, now: datetime) -> None:
    seen = as_seen(facts)
    matches = [
        *(kept for kept in ("archived", "error", "suspended") if seen.record == kept),
        *(["unknown"] if seen.probe_failed else []),
        *(["stale"] if is_stale(seen) else []),
        *(["stopped"] if torn_down(seen) else []),
        seen.state,
    ]
    assert status(facts, now).word == matches[0]


# Stale


@pytest.mark.ids("C70-1")
@pytest.mark.parametrize("runtime", [LOCAL, TMUX])
@pytest.mark.parametrize("state", STATES)
def test_local_and_tmux_are_not_stale_in_any_state(state: str, runtime: str) -> None:
    facts = running(state=state, runtime=runtime, sandbox_alive=True, session_alive=False)
    assert status(facts, NOW).word == state


@pytest.mark.ids("C70-1")
@given(facts_with(runtime=st.sampled_from((LOCAL, TMUX))), moments)
def test_a_runtime_without_a_sandbox_is_never_stale(facts: Facts, now: datetime) -> None:
    assert (is_stale(facts), status(facts, now).word == "stale") == (False, False)


@pytest.mark.ids("C70-6")
@pytest.mark.parametrize("state", [run.CREATED, run.STARTING])
def test_a_session_that_is_being_launched_is_not_stale(state: str) -> None:
    assert labelled(running(state=state, **DEAD_IN_A_SANDBOX)) == (state, state)


@pytest.mark.parametrize("state", [run.STOPPING, run.STOPPED])
def test_a_session_that_was_asked_to_end_is_not_stale_though_nobody_saw_its_end(state: str) -> None:
    assert labelled(running(state=state, **DEAD_IN_A_SANDBOX)) == (state, state)


def test_a_session_that_failed_though_it_was_asked_to_end_is_not_stale() -> None:
    facts = ended(run.FAILED, Exit(intent=run.USER, error="cannot remove the container"), **DEAD_IN_A_SANDBOX)
    assert labelled(facts) == ("failed", "failed: cannot remove the container")


@pytest.mark.ids("F61")
def test_a_paused_sandbox_is_not_stale() -> None:
    facts = running(**DEAD_IN_A_SANDBOX, sandbox_paused=True)
    assert labelled(facts) == ("running", "running (paused)")


@pytest.mark.ids("F66")
def test_a_session_that_could_not_start_is_not_stale_in_the_container_that_was_left() -> None:
    facts = ended(run.FAILED, Exit(error="tmux is missing in the image"), started_at=None, **DEAD_IN_A_SANDBOX)
    assert labelled(facts) == ("failed", "failed: tmux is missing in the image")


@pytest.mark.ids("C70-5")
def test_a_lost_keeper_leaves_a_stale_container_when_the_session_in_it_is_dead() -> None:
    shown = status(running(**DEAD_IN_A_SANDBOX, keeper_alive=False), NOW)
    assert (shown.word, shown.state, shown.reason) == ("stale", "failed", "keeper lost")


# The label


@pytest.mark.ids("A31-14")
@pytest.mark.parametrize(
    ("quiet_s", "label"),
    [(0, "running"), (29.9, "running"), (30, "running (idle 30s)"), (135, "running (idle 2m 15s)")],
)
def test_idle_is_an_attribute_of_a_running_session(quiet_s: float, label: str) -> None:
    assert labelled(running(last_activity_at=ago(quiet_s))) == ("running", label)


@pytest.mark.ids("A31-7")
def test_each_kind_of_session_has_its_own_idea_of_idle() -> None:
    quiet = running(last_activity_at=ago(200))
    labels = [status(replace(quiet, idle_after_s=after_s), NOW).label for after_s in (30, 300)]
    assert labels == ["running (idle 3m 20s)", "running"]


def test_a_session_without_any_output_is_idle_since_its_start() -> None:
    assert labelled(running(last_activity_at=None, started_at=ago(45))) == ("running", "running (idle 45s)")


@pytest.mark.parametrize(
    ("word", "kind", "label"),
    [
        ("blocked", None, "running (needs you 1m 30s)"),
        ("blocked", "permission", "running (needs permission 1m 30s)"),
        ("blocked", "question", "running (question 1m 30s)"),
        ("blocked", "dialog", "running (shows a dialog 1m 30s)"),
        ("blocked", "auth", "running (not signed in 1m 30s)"),
        ("error", None, "running (error 1m 30s)"),
        ("error", "limit", "running (error: usage limit, 1m 30s)"),
        ("done", None, "running (finished 1m 30s)"),
        ("idle", None, "running (your turn 1m 30s)"),
        ("working", None, "running"),
        ("unknown", None, "running"),
        ("unknown", "starting", "running"),
    ],
)
@pytest.mark.parametrize("quiet_s", [0, 200])
def test_what_an_agent_reports_is_in_its_label_with_the_time_since_then(
    word: str, kind: str | None, label: str, quiet_s: float
) -> None:
    report = replace(reported(word), kind=kind, at=ago(90))
    shown = status(running(last_activity_at=ago(quiet_s), report=report), NOW)
    assert (shown.label, shown.quiet_since) == (label, ago(90) if "1m 30s" in label else None)


@pytest.mark.ids("F10")
def test_a_process_that_was_stopped_by_a_signal_is_running_and_says_so() -> None:
    assert labelled(running(process_stopped=True)) == ("running", "running (process stopped)")
    assert labelled(running(keeper_stopped=True)) == ("running", "running (keeper stopped)")


@pytest.mark.ids("C70-2", "F17")
@pytest.mark.parametrize("state", [run.RUNNING, run.STOPPING])
def test_an_agent_that_outlived_its_keeper_is_not_told_as_ended(state: str) -> None:
    facts = running(runtime=DOCKER, state=state, sandbox_alive=True, session_alive=True, keeper_alive=False)
    assert settle(facts) == facts
    assert labelled(facts) == (state, f"{state} (keeper lost)")
    assert status(facts, NOW).attention == "unknown"
    for gone in ({"session_alive": False}, {"session_alive": None}, {"same_boot": False}):
        assert settle(replace(facts, **gone)).state == run.FAILED


def test_what_a_failed_run_left_behind_is_told() -> None:
    end = Exit(error=run.KEEPER_LOST, survivors=1)
    told = ("failed", "failed: keeper lost (left 1 process behind)")
    assert labelled(ended(run.FAILED, end)) == told
    assert labelled(running(keeper_alive=False, left=1)) == told  # and before anybody has written it down


def test_what_is_unknown_says_what_was_seen():
    assert labelled(running(probe_failed=True)) == ("unknown", "unknown")
    stopped = running(probe_failed=True, keeper_stopped=True, doubt="keeper stopped")
    assert labelled(stopped) == ("unknown", "unknown (keeper stopped)")


@pytest.mark.ids("F61")
def test_a_paused_sandbox_comes_before_a_stopped_process_in_the_label() -> None:
    facts = running(runtime=DOCKER, sandbox_alive=True, sandbox_paused=True, process_stopped=True)
    assert labelled(facts) == ("running", "running (paused)")


@pytest.mark.parametrize(
    ("state", "end", "label"),
    [
        pytest.param(run.COMPLETED, Exit(code=0), "completed", marks=pytest.mark.ids("F1")),
        pytest.param(
            run.COMPLETED, Exit(code=0, survivors=2), "completed (left 2 processes behind)", marks=pytest.mark.ids("F8")
        ),
        pytest.param(
            run.COMPLETED, Exit(code=0, survivors=1), "completed (left 1 process behind)", marks=pytest.mark.ids("F8")
        ),
        (run.COMPLETED, None, "completed"),
        pytest.param(run.FAILED, Exit(code=3), "failed: command exited with code 3", marks=pytest.mark.ids("A22-5")),
        pytest.param(
            run.FAILED,
            Exit(signal="SIGSEGV", signal_number=11),
            "failed: command killed by SIGSEGV",
            marks=pytest.mark.ids("F4"),
        ),
        (run.FAILED, Exit(), "failed: exit status unknown"),
        (run.FAILED, None, "failed: exit status unknown"),
        (run.STOPPED, Exit(code=143, intent=run.USER), "stopped"),
        (run.STOPPED, Exit(code=143, intent=run.USER, survivors=2), "stopped"),
        pytest.param(run.ORPHANED, None, "orphaned: workspace no longer exists", marks=pytest.mark.ids("F50")),
    ],
)
def test_the_label_of_an_end(state: str, end: Exit | None, label: str) -> None:
    assert labelled(ended(state, end)) == (state, label)


@pytest.mark.parametrize(
    ("end", "label"),
    [(Exit(error=run.REBOOT), "suspended: interrupted by reboot"), (Exit(code=0), "suspended"), (None, "suspended")],
)
def test_a_suspended_session_says_what_suspended_it_where_that_is_known(end: Exit | None, label: str) -> None:
    assert labelled(ended(run.FAILED, end, record=record.SUSPENDED)) == ("suspended", label)


@pytest.mark.parametrize("kept", [record.ARCHIVED, record.ERROR])
def test_the_label_of_a_closed_record_is_its_word(kept: str) -> None:
    assert labelled(ended(run.FAILED, Exit(code=1), record=kept)) == (kept, kept)


# The colour


@pytest.mark.ids("C70-10", "E-5", "X3")
def test_only_bad_ends_are_red_and_doubt_is_yellow() -> None:
    colours = {
        "created": "grey",
        "starting": "blue",
        "running": "green",
        "stopping": "blue",
        "stopped": "grey",
        "completed": "blue",
        "failed": "red",
        "orphaned": "red",
        "stale": "yellow",
        "unknown": "yellow",
        "suspended": "grey",
        "archived": "grey",
        "error": "red",
    }
    assert {word: colour_of(word) for word in colours} == colours


# Times


def test_time_in_status_counts_from_the_last_change_or_from_creation() -> None:
    new = running(state=run.CREATED, state_changed_at=None, started_at=None)
    times = [status(facts, NOW).in_status_s for facts in (running(), new)]
    assert times == [600, 700]


@pytest.mark.ids("A31-14")
def test_a_session_that_has_run_since_its_start_has_been_running_for_all_of_its_time() -> None:
    facts = running(started_at=ago(600.9), state_changed_at=ago(600.1))
    words = status(facts, NOW)
    assert (words.in_status_s, words.total_s, words.total_grows) == (600.9, 600.9, True)


@pytest.mark.ids("A31-14")
def test_an_agent_that_is_gone_unseen_has_worked_until_its_last_sign_of_life() -> None:
    facts = running(keeper_stopped=True, last_activity_at=ago(100), last_alive_at=ago(90))
    assert status(facts, NOW).total_s == 600, "only its keeper is stopped"
    words = status(replace(facts, probe_failed=True, doubt="keeper stopped"), NOW)
    assert (words.label, words.total_s, words.in_status_s) == ("unknown (keeper stopped)", 510, 90)
    assert not words.total_grows


def test_total_time_stands_still_once_the_run_has_ended() -> None:
    facts = ended(run.COMPLETED, Exit(code=0, ended_at=ago(200)), earlier_runs_s=50)
    assert [status(facts, moment).total_s for moment in (NOW, NOW + timedelta(days=1))] == [450, 450]


def test_total_time_without_a_known_end_reaches_to_the_last_moment_that_is_known() -> None:
    lost = running(keeper_alive=False, last_activity_at=ago(100))
    orphaned = ended(run.ORPHANED, state_changed_at=ago(50), last_activity_at=ago(100))
    neither = ended(run.FAILED, state_changed_at=None, last_activity_at=None)
    assert [status(facts, NOW).total_s for facts in (lost, orphaned, neither)] == [500, 550, 0]


def test_total_time_of_a_session_that_never_started_is_that_of_its_earlier_runs() -> None:
    facts = running(state=run.CREATED, started_at=None, earlier_runs_s=70)
    assert status(facts, NOW).total_s == 70


@given(facts_with(state=st.sampled_from([state for state in STATES if state != run.RUNNING])), moments)
def test_only_a_running_session_is_idle(facts: Facts, now: datetime) -> None:
    assert status(facts, now).idle_s == 0


# Settling


@pytest.mark.ids("F17")
@pytest.mark.parametrize("same_boot", [True, None])
@pytest.mark.parametrize("state", run.LIVE)
def test_a_run_without_its_keeper_has_failed(state: str, same_boot: bool | None) -> None:
    facts = running(state=state, keeper_alive=False, same_boot=same_boot)
    end = Exit(error="keeper lost", ended_at=ago(1), ended_at_known=False)
    assert settle(facts) == replace(facts, state="failed", state_changed_at=ago(1), exit=end)


@pytest.mark.ids("F40", "X5")
@pytest.mark.parametrize(
    ("kept", "becomes"),
    [("active", "suspended"), ("suspended", "suspended"), ("archived", "archived"), ("error", "error")],
)
def test_a_reboot_interrupts_the_run_and_suspends_an_active_record(kept: str, becomes: str) -> None:
    facts = running(keeper_alive=False, same_boot=False, record=kept)
    end = Exit(error="interrupted by reboot", ended_at=ago(1), ended_at_known=False)
    since = ago(1) if kept == "active" else None
    assert settle(facts) == replace(
        facts, state="failed", state_changed_at=ago(1), exit=end, record=becomes, record_changed_at=since
    )


@pytest.mark.parametrize("same_boot", [True, False])
def test_an_end_that_was_written_counts_more_than_a_lost_keeper_or_a_reboot(same_boot: bool) -> None:
    facts = running(keeper_alive=False, same_boot=same_boot, exit=Exit(code=0, ended_at=ago(60)))
    assert settle(facts) == replace(facts, state="completed", state_changed_at=ago(60))


def test_an_end_without_a_time_leaves_the_time_of_the_last_change() -> None:
    facts = running(keeper_alive=False, exit=Exit(code=1))
    assert settle(facts) == replace(facts, state="failed")


@pytest.mark.ids("A31-9", "X4")
@pytest.mark.parametrize("code", [0, 143])
def test_a_run_that_was_stopping_has_stopped_even_if_its_end_does_not_say_who_asked(code: int) -> None:
    facts = running(state=run.STOPPING, keeper_alive=False, exit=Exit(code=code))
    assert settle(facts) == replace(facts, state="stopped")


def test_a_run_that_was_stopping_and_met_an_error_has_failed() -> None:
    facts = running(state=run.STOPPING, keeper_alive=False, exit=Exit(error="keeper lost"))
    assert settle(facts) == replace(facts, state="failed")


@given(facts_with(keeper_alive=st.sampled_from((True, None))))
def test_absence_of_evidence_is_not_death(facts: Facts) -> None:
    assert settle(facts) == facts


@given(facts_with(state=st.sampled_from((run.CREATED, *run.TERMINAL))))
def test_there_is_nothing_to_settle_before_the_start_and_after_the_end(facts: Facts) -> None:
    assert settle(facts) == facts


@pytest.mark.ids("A31-3")
@given(facts_with())
def test_the_map_leads_to_whatever_a_run_is_settled_or_seen_as(facts: Facts) -> None:
    for later in (settle(facts), as_seen(facts)):
        run.path(facts.state, later.state)
        assert later.record == facts.record or later.record in record.RECORD_TRANSITIONS[facts.record]


@pytest.mark.ids("A31-9")
@given(facts_with(state=st.sampled_from((run.CREATED, *run.LIVE)), exit=st.none()), moments)
def test_an_end_that_nobody_saw_is_never_completed(facts: Facts, now: datetime) -> None:
    assert run.COMPLETED not in (settle(facts).state, status(facts, now).state, status(facts, now).word)


@given(facts_with(), moments)
def test_writing_down_what_was_settled_changes_no_word(facts: Facts, now: datetime) -> None:
    assert status(settle(facts), now) == status(facts, now)


# What was seen before it was written


@given(facts_with())
def test_what_was_seen_is_seen_once(facts: Facts) -> None:
    assert as_seen(as_seen(facts)) == as_seen(facts)


@pytest.mark.ids("F50")
def test_a_running_session_whose_workspace_is_gone_is_orphaned_at_once() -> None:
    facts = running(workspace_missing=True)
    assert as_seen(facts) == replace(facts, state="orphaned")


@pytest.mark.ids("X12")
@pytest.mark.parametrize("state", [state for state in STATES if state != run.RUNNING])
def test_a_missing_workspace_changes_no_other_state(state: str) -> None:
    facts = running(state=state, workspace_missing=True)
    assert as_seen(facts) == facts


@pytest.mark.ids("C70-2", "C70-7")
def test_a_sandbox_that_a_person_tore_down_after_a_crash_leaves_a_stopped_session() -> None:
    crashed = ended(run.FAILED, Exit(code=3, ended_at=ago(60), torn_down_at=ago(5)), runtime="docker")
    left = status(replace(crashed, sandbox_alive=False, session_alive=False), NOW)
    assert (left.word, left.label, left.colour, left.state, left.in_status_s) == (
        "stopped",
        "stopped",
        "grey",
        "failed",
        5,
    )
    still = status(replace(crashed, sandbox_alive=True, session_alive=False), NOW)
    assert (still.word, still.colour) == ("stale", "yellow")


@pytest.mark.ids("F60", "C70-2")
@pytest.mark.parametrize("why", [run.CONTAINER_REMOVED, run.CONTAINER_STOPPED, run.ENGINE_ENDED])
def test_a_session_whose_keeper_and_sandbox_are_gone_failed_as_the_runtime_tells(why: str) -> None:
    facts = running(runtime=DOCKER, keeper_alive=False, sandbox_alive=False, lost=why)
    words = status(facts, NOW)
    assert (words.label, agent_state(facts)) == (f"failed: {why}", "stopped")


def test_how_a_session_ended_whose_sandbox_is_gone_is_its_keepers_to_say() -> None:
    facts = running(runtime=DOCKER, sandbox_alive=False)
    assert as_seen(facts) == facts


def test_a_running_session_that_was_not_looked_at_is_running() -> None:
    facts = running(runtime=DOCKER)
    assert as_seen(facts) == facts


def test_a_running_session_has_not_ended_where_there_is_no_sandbox_to_lose() -> None:
    facts = running(runtime=LOCAL, sandbox_alive=False)
    assert as_seen(facts) == facts


# Health


@pytest.mark.ids("C70-13")
@pytest.mark.parametrize("saw", [True, False])
def test_whether_the_session_lives_is_what_the_runtime_saw(saw: bool) -> None:
    assert session_alive(running(session_alive=saw, keeper_alive=not saw)) is saw


@pytest.mark.parametrize("alive", [True, False, None])
@pytest.mark.parametrize("state", [run.RUNNING, run.STOPPING, run.ORPHANED])
def test_without_a_runtime_to_look_the_keeper_vouches_for_the_session(state: str, alive: bool | None) -> None:
    assert session_alive(running(state=state, keeper_alive=alive)) is alive


@pytest.mark.ids("C70-1", "C70-14")
@pytest.mark.parametrize("state", [run.CREATED, run.STARTING, run.STOPPED, run.FAILED, run.COMPLETED])
def test_no_session_lives_before_the_start_and_after_the_end(state: str) -> None:
    assert session_alive(running(state=state)) is False


@pytest.mark.ids("X9")
@given(facts_with(probe_failed=st.just(True)), moments)
def test_after_a_failed_probe_nobody_knows_whether_the_session_lives(facts: Facts, now: datetime) -> None:
    assert status(facts, now).session_alive is None


# Attention


@pytest.mark.parametrize(
    ("word", "wants"),
    [("idle", "waiting"), ("working", "working"), ("blocked", "blocked"), ("done", "done"), ("error", "error")],
)
def test_the_agent_s_own_report_says_what_it_wants(word: str, wants: str) -> None:
    assert attention(running(report=reported(word), last_activity_at=ago(600)), NOW) == wants


@pytest.mark.parametrize("report", [None, reported("clear")])
@pytest.mark.parametrize(("quiet_s", "wants"), [(2.9, "working"), (3, "idle"), (600, "idle")])
@pytest.mark.ids("A22-6", "A22-10")
def test_without_a_report_recent_output_means_work(report, quiet_s: float, wants: str) -> None:
    assert attention(running(report=report, last_activity_at=ago(quiet_s)), NOW) == wants


@pytest.mark.ids("A22-6")
@pytest.mark.parametrize(("age_s", "wants"), [(2, "working"), (600, "idle")])
def test_an_agent_that_never_wrote_works_at_first_and_is_idle_then(age_s: float, wants: str) -> None:
    assert attention(running(last_activity_at=None, started_at=ago(age_s)), NOW) == wants


@pytest.mark.parametrize(
    ("state", "wants"),
    [
        (run.CREATED, "unknown"),
        (run.STARTING, "unknown"),
        (run.STOPPING, "unknown"),
        (run.STOPPED, "done"),
        (run.COMPLETED, "done"),
        (run.FAILED, "unknown"),
        (run.ORPHANED, "unknown"),
    ],
)
def test_a_session_that_is_not_running_wants_nothing_whatever_it_said_before(state: str, wants: str) -> None:
    assert attention(running(state=state, report=reported("blocked")), NOW) == wants


@pytest.mark.ids("X9")
@given(facts_with(probe_failed=st.just(True)), moments)
def test_after_a_failed_probe_nobody_knows_what_the_agent_wants(facts: Facts, now: datetime) -> None:
    assert attention(facts, now) == "unknown"


@pytest.mark.ids("A22-2", "A22-3", "F20", "F23")
@pytest.mark.parametrize("why", ["tmux session no longer exists", "shell process exited"])
def test_a_runtime_that_knows_why_its_keeper_is_gone_says_so(why: str) -> None:
    facts = Facts(created_at=NOW, state="running", runtime="tmux", keeper_alive=False, same_boot=True, lost=why)
    assert settle(facts) == replace(facts, state="failed", exit=Exit(error=why, ended_at_known=False))
    assert status(facts, NOW).label == f"failed: {why}"


@pytest.mark.ids("A31-14")
@pytest.mark.parametrize(("record", "seconds"), [("active", 60), ("archived", 5), ("suspended", 5), ("error", 5)])
def test_the_time_in_a_status_is_that_of_the_word_that_is_shown(record: str, seconds: float) -> None:
    facts = ended("completed", record=record, record_changed_at=ago(5), state_changed_at=ago(60))
    assert status(facts, NOW).in_status_s == seconds


@pytest.mark.ids("A31-14")
@given(facts_with(state=st.sampled_from(run.LIVE), keeper_alive=st.just(False), runtime=st.just("local")), moments)
def test_times_are_the_same_before_and_after_somebody_wrote_the_end_down(facts: Facts, now: datetime) -> None:
    known = settle(facts)
    written = replace(
        facts,
        state=known.state,
        state_changed_at=known.state_changed_at,
        exit=known.exit,
        record=known.record,
        record_changed_at=known.record_changed_at,
        same_boot=None,
    )
    before, after = status(facts, now), status(written, now)
    assert (after.in_status_s, after.total_s) == (before.in_status_s, before.total_s)


@pytest.mark.ids("A31-14")
def test_time_in_which_nothing_ran_is_no_work() -> None:
    lost = running(keeper_alive=False, started_at=ago(25), state_changed_at=ago(25), last_activity_at=ago(20))
    for later_s in (0, 100):
        words = status(lost, NOW + timedelta(seconds=later_s))
        assert (words.total_s, words.in_status_s) == (5, 20 + later_s)
    signed = replace(lost, last_alive_at=ago(15))
    assert (status(signed, NOW).total_s, status(signed, NOW).in_status_s) == (10, 15)


@pytest.mark.ids("D-9", "X7")
@pytest.mark.parametrize(
    ("facts", "wakes"),
    [
        (ended(run.COMPLETED, Exit(code=0)), True),
        (ended(run.STOPPED, Exit(code=143, intent=run.REAPER)), True),
        (ended(run.STOPPED, Exit(code=143, intent=run.USER)), False),
        (ended(run.STOPPED, Exit(code=143, intent=run.SHUTDOWN)), False),
        (ended(run.STOPPED), False),
        (ended(run.FAILED, Exit(code=1)), False),
        (ended(run.COMPLETED, Exit(code=0), record=record.SUSPENDED), False),
        (ended(run.STOPPED, Exit(intent=run.REAPER), record=record.ARCHIVED), False),
        (running(), False),
        (running(keeper_alive=False), False),
        (running(state=run.STOPPING, keeper_alive=False, exit=Exit(code=143, intent=run.REAPER)), True),
        (running(keeper_alive=False, exit=Exit(code=0)), True),
    ],
)
def test_a_prompt_wakes_what_was_done_or_ended_for_being_idle_and_nothing_else(facts: Facts, wakes: bool) -> None:
    assert rests(facts) is wakes


def test_a_teardown_is_no_second_stop_of_what_was_stopped_already() -> None:
    end = Exit(code=0, intent="user", ended_at=ago(60), torn_down_at=ago(5))
    stopped = ended(run.STOPPED, end, runtime="docker", sandbox_alive=False, state_changed_at=ago(60))
    assert status(stopped, NOW).in_status_s == 60


def test_an_orphan_that_lives_still_works() -> None:
    orphan = running(state=run.ORPHANED, workspace_missing=True, last_activity_at=ago(30), last_alive_at=ago(20))
    assert status(orphan, NOW).total_s == 600
