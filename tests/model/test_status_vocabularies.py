"""The five seeds' words for the same facts: the first table of seed-checklist §6, row by row."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitchpost.model import record, run
from hitchpost.model.compat import AGENT_STATES, agent_state, container_name, event_reason, event_status
from hitchpost.model.facts import DOCKER, TMUX, Exit, Facts
from hitchpost.model.status import as_told, settle, status
from hitchpost.values import replace
from tests.model.made import NOW, STATES, ago, ended, facts_with, moments, reported, running
from tests.model.seed_words import adr22, adr31


class Words(NamedTuple):
    """What each seed calls the facts, and the reason where the table gives one. ``""`` stands for the table's dash."""

    adr22: str
    adr31: str
    agent_state: str
    record: str
    event_status: str
    reason: str = ""


def words(facts: Facts, now: datetime = NOW) -> Words:
    return Words(
        adr22(facts, now),
        adr31(facts, now),
        agent_state(facts),
        settle(facts).record,
        event_status(facts, now),
        status(facts, now).reason,
    )


CODE_0 = Exit(code=0)
CODE_3 = Exit(code=3)
SEGV = Exit(signal="SIGSEGV", signal_number=11, core_dumped=True)
KILLED_BY_USER = Exit(code=143, intent=run.USER)
IN_LIVE_SANDBOX = {"runtime": DOCKER, "sandbox_alive": True, "session_alive": False}
WITHOUT_SANDBOX = {"runtime": DOCKER, "sandbox_alive": False, "session_alive": False}

ROWS: dict[str, list[tuple[Facts, Words]]] = {
    "run alive, output changing": [
        (running(), Words("working", "running", "running", "active", "active")),
        (running(runtime=TMUX), Words("working", "running", "running", "active", "active")),
        (
            running(runtime=DOCKER, sandbox_alive=True, session_alive=True),
            Words("working", "running", "running", "active", "active"),
        ),
        (
            running(last_activity_at=ago(2), report=reported("working")),
            Words("working", "running", "running", "active", "active"),
        ),
    ],
    "run alive, quiet": [
        (
            running(last_activity_at=ago(135)),
            Words("idle", "running (idle 2m 15s)", "running", "active", "active"),
        ),
        (
            running(last_activity_at=ago(30)),
            Words("idle", "running (idle 30s)", "running", "active", "active"),
        ),
        (
            running(last_activity_at=None),
            Words("idle", "running (idle 10m 0s)", "running", "active", "active"),
        ),
        (
            running(last_activity_at=ago(10)),
            Words("idle", "running", "running", "active", "active"),
        ),
    ],
    "run alive, agent asks": [
        (
            running(last_activity_at=ago(10), report=reported(word)),
            Words("idle", "running", "running", "active", "waiting"),
        )
        for word in ("idle", "blocked", "done")
    ],
    "sandbox alive, session dead, nobody asked": [
        (
            running(**IN_LIVE_SANDBOX),
            Words("failed", "failed", "stale", "active", "error", "exit status unknown"),
        ),
        (
            ended(run.FAILED, Exit(), **IN_LIVE_SANDBOX),
            Words("failed", "failed", "stale", "active", "error", "exit status unknown"),
        ),
        (
            running(**IN_LIVE_SANDBOX, keeper_alive=False),
            Words("failed", "failed", "stale", "active", "error", "keeper lost"),
        ),
    ],
    "exit 0": [
        (
            ended(run.COMPLETED, CODE_0),
            Words("completed", "completed", "stopped", "active", "stopped", "command exited with code 0"),
        ),
        (
            ended(run.COMPLETED, CODE_0, **IN_LIVE_SANDBOX),
            Words("completed", "completed", "stale", "active", "stopped", "command exited with code 0"),
        ),
        (
            running(exit=CODE_0, **IN_LIVE_SANDBOX),
            Words("completed", "completed", "stale", "active", "stopped", "command exited with code 0"),
        ),
        (
            ended(run.COMPLETED, CODE_0, **WITHOUT_SANDBOX),
            Words("completed", "completed", "stopped", "active", "stopped", "command exited with code 0"),
        ),
    ],
    "exit ≠ 0 or signal": [
        (
            ended(run.FAILED, CODE_3),
            Words("failed", "failed", "error", "active", "error", "command exited with code 3"),
        ),
        (
            ended(run.FAILED, CODE_3, **IN_LIVE_SANDBOX),
            Words("failed", "failed", "stale", "active", "error", "command exited with code 3"),
        ),
        (
            ended(run.FAILED, SEGV),
            Words("failed", "failed", "error", "active", "error", "command killed by SIGSEGV"),
        ),
        (
            ended(run.FAILED, SEGV, **IN_LIVE_SANDBOX),
            Words("failed", "failed", "stale", "active", "error", "command killed by SIGSEGV"),
        ),
        (
            ended(run.FAILED, CODE_3, **WITHOUT_SANDBOX),
            Words("failed", "failed", "stopped", "active", "error", "command exited with code 3"),
        ),
        (
            ended(run.FAILED, SEGV, **WITHOUT_SANDBOX),
            Words("failed", "failed", "stopped", "active", "error", "command killed by SIGSEGV"),
        ),
    ],
    "stopped by user": [
        (
            ended(run.STOPPED, KILLED_BY_USER),
            Words("", "stopped", "stopped", "active", "stopped", "asked by user"),
        ),
        (
            ended(run.STOPPED, KILLED_BY_USER, **IN_LIVE_SANDBOX),
            Words("", "stopped", "stopped", "active", "stopped", "asked by user"),
        ),
        (
            ended(run.STOPPED, None, **IN_LIVE_SANDBOX),
            Words("", "stopped", "stopped", "active", "stopped", "exit status unknown"),
        ),
    ],
    "ended by hub shutdown": [
        (
            ended(run.STOPPED, Exit(code=143, intent=run.SHUTDOWN), record=record.SUSPENDED),
            Words("", "stopped", "stopped", "suspended", "idle", "asked by shutdown"),
        ),
    ],
    "ended by idle reap": [
        (
            ended(run.STOPPED, Exit(code=0, intent=run.REAPER)),
            Words("", "stopped", "stopped", "active", "idle", "asked by reaper"),
        )
    ],
    "reboot": [
        (
            running(keeper_alive=False, same_boot=False),
            Words("failed", "failed", "stopped", "suspended", "idle", "interrupted by reboot"),
        ),
        (
            running(keeper_alive=False, same_boot=False, **WITHOUT_SANDBOX),
            Words("failed", "failed", "stopped", "suspended", "idle", "interrupted by reboot"),
        ),
        (
            ended(run.FAILED, Exit(error=run.REBOOT), record=record.SUSPENDED),
            Words("failed", "failed", "stopped", "suspended", "idle", "interrupted by reboot"),
        ),
    ],
    "created": [
        (running(state=run.CREATED), Words("", "created", "stopped", "active", "active")),
        (running(state=run.CREATED, **WITHOUT_SANDBOX), Words("", "created", "stopped", "active", "active")),
    ],
    "starting": [
        (running(state=run.STARTING), Words("", "starting", "starting", "active", "active")),
        (running(state=run.STARTING, **IN_LIVE_SANDBOX), Words("", "starting", "starting", "active", "active")),
        (running(state=run.STARTING, **WITHOUT_SANDBOX), Words("", "starting", "starting", "active", "active")),
    ],
    "stopping": [
        (running(state=run.STOPPING), Words("", "stopping", "stopping", "active", "active")),
        (running(state=run.STOPPING, **IN_LIVE_SANDBOX), Words("", "stopping", "stopping", "active", "active")),
        (running(state=run.STOPPING, **WITHOUT_SANDBOX), Words("", "stopping", "stopping", "active", "active")),
    ],
    "container paused by hand": [
        (
            running(runtime=DOCKER, sandbox_alive=True, sandbox_paused=True, last_activity_at=ago(quiet_s)),
            Words("", "running (paused)", "running", "active", "active"),
        )
        for quiet_s in (1, 10, 600)
    ],
    "container removed by hand, no intent": [
        (
            ended(run.FAILED, Exit(error="container removed"), **WITHOUT_SANDBOX),
            Words("", "failed", "stopped", "active", "error", "container removed"),
        ),
        (
            running(keeper_alive=False, lost="container removed", **WITHOUT_SANDBOX),
            Words("", "failed", "stopped", "active", "error", "container removed"),
        ),
    ],
    "torn down by the user": [
        (
            ended(run.STOPPED, Exit(signal="SIGKILL", signal_number=9, intent=run.USER), **WITHOUT_SANDBOX),
            Words("", "stopped", "stopped", "active", "stopped", "asked by user"),
        ),
        *(
            (
                ended(state, Exit(code=code, torn_down_at=ago(5)), **WITHOUT_SANDBOX),
                Words("", "stopped", "stopped", "active", "stopped", f"command exited with code {code}"),
            )
            for state, code in ((run.FAILED, 3), (run.COMPLETED, 0))
        ),
    ],
    "archived by the user": [
        (
            ended(state, end, record=record.ARCHIVED, **health),
            Words("", state, "stopped", "archived", "stopped", why),
        )
        for state, end, health, why in (
            (run.STOPPED, KILLED_BY_USER, {}, "asked by user"),
            (run.COMPLETED, CODE_0, {}, "command exited with code 0"),
            (run.FAILED, CODE_3, {}, "command exited with code 3"),
            (run.FAILED, CODE_3, IN_LIVE_SANDBOX, "command exited with code 3"),
            (run.ORPHANED, None, {}, "workspace no longer exists"),
        )
    ],
    "workspace gone": [
        (
            ended(run.ORPHANED),
            Words("", "orphaned", "error", "active", "error", "workspace no longer exists"),
        ),
        (
            running(workspace_missing=True),
            Words("", "orphaned", "error", "active", "error", "workspace no longer exists"),
        ),
    ],
    "start failed": [
        (
            ended(run.FAILED, Exit(error="no such program: claud"), started_at=None, **health),
            Words("failed", "failed", "error", "active", "error", "no such program: claud"),
        )
        for health in ({}, IN_LIVE_SANDBOX, WITHOUT_SANDBOX)
    ],
}

CASES = [
    pytest.param(facts, expected, id=f"{row} ({number})" if number > 1 else row)
    for row, cases in ROWS.items()
    for number, (facts, expected) in enumerate(cases, 1)
]


@pytest.mark.ids("A22-6", "A31-9", "C70-1", "C70-2", "D-2", "E-3", "X1", "X2", "X3", "X4", "X5")
@pytest.mark.parametrize(("facts", "expected"), CASES)
def test_each_seed_has_its_own_words_for_the_same_facts(facts: Facts, expected: Words) -> None:
    assert words(facts) == expected


@pytest.mark.ids("X9", "F22", "F63")
@pytest.mark.parametrize(("facts", "expected"), CASES)
def test_a_failed_probe_changes_none_of_the_words_and_leaves_the_session_s_life_unknown(
    facts: Facts, expected: Words
) -> None:
    unprobed = replace(facts, probe_failed=True)
    shown = status(unprobed, NOW)
    hidden_by_record = settle(facts).record != record.ACTIVE
    assert (words(unprobed), shown.session_alive) == (expected, None)
    assert shown.word == (expected.record if hidden_by_record else "unknown")


@pytest.mark.ids("X9")
@given(facts_with(), moments)
def test_no_word_of_the_seeds_depends_on_whether_a_probe_failed(facts: Facts, now: datetime) -> None:
    assert words(replace(facts, probe_failed=True), now) == words(replace(facts, probe_failed=False), now)


@pytest.mark.ids("C70-1", "C70-15")
def test_a_container_is_named_after_its_session() -> None:
    assert container_name("k3v9q0x2m7ab") == "agent-k3v9q0x2m7ab"


def test_the_words_of_cr_070_are_in_its_order() -> None:
    assert AGENT_STATES == ("stopped", "starting", "running", "stale", "stopping", "error")


@given(facts_with(state=st.sampled_from(STATES) | st.text(), runtime=st.text()), moments)
def test_every_seed_has_a_word_of_its_own_for_any_facts(facts: Facts, now: datetime) -> None:
    said = words(facts, now)
    assert said.adr22 in ("", "working", "idle", "completed", "failed")
    assert said.adr31.startswith(as_told(facts).state)
    assert said.agent_state in AGENT_STATES
    assert said.event_status in ("active", "waiting", "idle", "error", "stopped")


@given(facts_with(), moments)
def test_writing_down_what_was_settled_changes_no_word_of_the_seeds(facts: Facts, now: datetime) -> None:
    assert words(settle(facts), now) == words(facts, now)


@pytest.mark.ids("X2")
@given(facts_with(state=st.sampled_from(run.LIVE), keeper_alive=st.just(True), sandbox_alive=st.none()), moments)
def test_story_2_9_never_calls_a_live_process_idle(facts: Facts, now: datetime) -> None:
    facts = replace(facts, workspace_missing=False)
    assert event_status(facts, now) != "idle"


@pytest.mark.ids("X2")
@pytest.mark.parametrize(
    ("intent", "word"), [("user", "stopped"), ("restart", "stopped"), ("shutdown", "idle"), ("reaper", "idle")]
)
def test_story_2_9_calls_a_session_idle_that_the_system_ended_even_while_its_record_is_active(
    intent: str, word: str
) -> None:
    assert event_status(ended(run.STOPPED, Exit(code=143, intent=intent)), NOW) == word


@pytest.mark.ids("X3")
@given(facts_with(exit=st.just(CODE_0), state=st.just(run.COMPLETED)), moments)
def test_story_2_9_never_calls_exit_0_an_error(facts: Facts, now: datetime) -> None:
    assert event_status(facts, now) != "error"


@pytest.mark.ids("E-3")
@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (ended(run.FAILED, Exit(code=1)), "Exit code 1"),
        (ended(run.FAILED, SEGV), "Process crashed"),
        (running(keeper_alive=False), "Process crashed"),
        (running(**IN_LIVE_SANDBOX), "Process crashed"),
        (ended(run.FAILED), "Process crashed"),
        (
            ended(run.FAILED, Exit(error="program not found: x"), started_at=None),
            "Failed to start: program not found: x",
        ),
    ],
)
def test_story_2_9_gives_the_code_or_says_that_the_process_crashed(facts: Facts, text: str) -> None:
    assert event_reason(facts) == text
