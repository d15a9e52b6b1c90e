"""What an agent is doing, from what several sources say of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitchpost.model.attention import (
    BLOCKED,
    DIALOG,
    DONE,
    ERROR,
    IDLE,
    LIMIT,
    LONGEST_MESSAGE,
    PERMISSION,
    SETTLE_S,
    UNKNOWN,
    WORKING,
    Evidence,
    is_said,
    judge,
    plain,
    refusal,
    settles_at,
)

ORDER = ("osc7501", "hooks", "file", "screen")


def said(*evidence: Evidence) -> dict[str, Evidence]:
    return {one.source: one for one in evidence}


def osc(state: str, at: float = 100.0, **more: object) -> Evidence:
    return Evidence("osc7501", state, at, **more)  # type: ignore[arg-type]


def hooks(state: str, at: float = 100.0, **more: object) -> Evidence:
    return Evidence("hooks", state, at, **more)  # type: ignore[arg-type]


def test_nobody_has_said_anything() -> None:
    assert judge(ORDER, {}, 100.0) is None


def test_the_best_source_has_the_word() -> None:
    assert judge(ORDER, said(hooks(WORKING, 99.0), osc(IDLE)), 200.0) == osc(IDLE)


def test_a_lesser_source_counts_where_the_best_is_silent() -> None:
    assert judge(ORDER, said(hooks(WORKING)), 100.0) == hooks(WORKING)


def test_what_others_know_of_the_same_state_completes_it() -> None:
    asked = hooks(BLOCKED, 100.1, kind=PERMISSION, message="Bash: touch q", request="1", options=("yes", "no"))
    verdict = judge(ORDER, said(osc(BLOCKED, message="approve Bash: touch q"), asked), 101.0)
    assert verdict == osc(BLOCKED, kind=PERMISSION, message="approve Bash: touch q", request="1", options=("yes", "no"))


def test_what_was_said_long_before_completes_nothing() -> None:
    assert judge(ORDER, said(osc(BLOCKED), hooks(BLOCKED, 90.0, request="1")), 101.0) == osc(BLOCKED)


def test_a_turn_that_ended_is_completed_with_what_goes_on() -> None:
    verdict = judge(ORDER, said(osc(IDLE), hooks(DONE, 100.1, background=2)), 200.0)
    assert verdict == osc(IDLE, background=2)


def test_a_lesser_source_that_says_otherwise_later_makes_it_unknown() -> None:
    evidence = said(osc(IDLE), hooks(WORKING, 101.0))
    assert judge(ORDER, evidence, 101.0) == osc(IDLE)
    assert settles_at(ORDER, evidence, 101.0) == 101.0 + SETTLE_S
    verdict = judge(ORDER, evidence, 101.0 + SETTLE_S)
    assert verdict is not None
    assert (verdict.state, verdict.message) == (UNKNOWN, "osc7501 says idle, but hooks says working")
    assert settles_at(ORDER, evidence, 101.0 + SETTLE_S) is None


def test_a_lesser_source_that_was_left_behind_says_nothing() -> None:
    """No hook tells of an interrupt: the last thing that they said is older than the word of the agent."""
    evidence = said(hooks(WORKING, 99.0), osc(IDLE, 100.0))
    assert judge(ORDER, evidence, 500.0) == osc(IDLE)
    assert settles_at(ORDER, evidence, 100.0) is None


def test_what_better_sources_cannot_say_counts_beside_their_prompt() -> None:
    dialog = Evidence("file", BLOCKED, 105.0, kind=DIALOG, adds=True)
    assert judge(ORDER, said(osc(DONE), dialog), 110.0) == dialog
    assert judge(ORDER, said(osc(WORKING), dialog), 110.0) == osc(WORKING)
    failed = Evidence("screen", ERROR, 105.0, message="API error", adds=True)
    assert judge(ORDER, said(osc(IDLE), failed), 110.0) == failed


def test_that_a_turn_was_interrupted_counts_beside_its_end() -> None:
    cancelled = Evidence("screen", IDLE, 99.0, message="cancelled", adds=True)
    assert judge(ORDER, said(osc(DONE), cancelled), 100.0) == cancelled


def test_a_source_that_is_not_in_the_order_is_not_heard() -> None:
    assert judge(("hooks",), said(osc(WORKING)), 100.0) is None


STATES = st.sampled_from((IDLE, WORKING, BLOCKED, DONE, ERROR))
EVIDENCE = st.builds(
    Evidence,
    source=st.sampled_from(ORDER),
    state=STATES,
    at=st.floats(0, 100),
    message=st.sampled_from(("", "text")),
    adds=st.booleans(),
)


@given(st.lists(EVIDENCE, max_size=5), st.floats(0, 200))
def test_a_verdict_is_what_somebody_said_or_unknown(evidence: list[Evidence], now: float) -> None:
    verdict = judge(ORDER, said(*evidence), now)
    assert verdict is None or verdict.state in (UNKNOWN, *(one.state for one in evidence))
    assert (verdict is None) == (not evidence)


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (None, None),
        ({"state": IDLE}, None),
        ({"state": DONE}, None),
        ({"state": ERROR}, None),
        ({"state": WORKING}, None),
        ({"state": BLOCKED}, "the agent is waiting for a permission"),
        ({"state": BLOCKED, "kind": "question", "message": "Which?"}, "the agent is asking a question: Which?"),
        ({"state": BLOCKED, "kind": LIMIT}, "the agent has reached a usage limit"),
        ({"state": UNKNOWN}, "it is not known whether the agent is at its prompt"),
        ({"state": UNKNOWN, "message": "no report"}, "it is not known whether the agent is at its prompt: no report"),
    ],
)
def test_a_prompt_is_refused_with_the_reason(report: dict[str, object] | None, why: str | None) -> None:
    assert refusal(report) == why


def test_an_agent_that_loses_what_is_typed_while_it_works_gets_none() -> None:
    assert refusal({"state": WORKING}, queues=False) == "the agent is working and loses what is typed now"


def test_an_agents_text_is_one_line_that_no_terminal_obeys() -> None:
    assert plain("touch\x1b[2J\nq\u202e ") == "touch [2J q"
    assert plain("x" * LONGEST_MESSAGE) == "x" * LONGEST_MESSAGE
    assert plain("x" * 10_000) == plain(plain("x" * 10_000)) == "x" * (LONGEST_MESSAGE - 1) + "…"
    assert plain("ls" + " " * 10_000 + "; rm -r /") == "ls…"


@pytest.mark.parametrize(
    ("source", "state", "message", "expected"),
    [
        ("osc7501", IDLE, "a\nb", True),
        ("osc7501", IDLE, "other", False),
        ("osc7501", WORKING, "a\nb", False),
        ("hooks", IDLE, "a\nb", False),
    ],
)
def test_only_the_last_word_of_the_same_source_counts_as_said(source: str, state: str, message: str, expected: bool):
    assert is_said(said(osc(IDLE, message="a b")), source, state, message) is expected
