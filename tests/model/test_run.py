from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hitchpost.model import run
from tests.model.made import STATES, errors, intents, signals

EVERY_STEP = [(old, new) for old in STATES for new in STATES]
ALLOWED = [(old, new) for old, new in EVERY_STEP if new in run.TRANSITIONS[old]]
REFUSED = [step for step in EVERY_STEP if step not in ALLOWED]


@pytest.mark.ids("A31-2", "A31-3", "X12")
def test_the_map_is_that_of_adr_31() -> None:
    assert run.TRANSITIONS == {
        "created": ("starting", "failed", "orphaned"),
        "starting": ("running", "failed", "orphaned"),
        "running": ("stopping", "failed", "completed", "orphaned"),
        "stopping": ("stopped", "failed"),
        "stopped": (),
        "failed": (),
        "completed": (),
        "orphaned": (),
    }


@pytest.mark.ids("A31-2")
def test_every_state_has_a_meaning() -> None:
    assert run.MEANINGS == {
        "created": "the session exists and has not been started",
        "starting": "its process is being started",
        "running": "its process is alive",
        "stopping": "somebody asked it to end and it has not ended yet",
        "stopped": "it ended because somebody asked",
        "failed": "it could not start, or it ended with an error",
        "completed": "it ended by itself with code 0",
        "orphaned": "its workspace was deleted while it was active",
    }


@pytest.mark.ids("A31-3")
def test_four_states_are_final_and_three_have_a_process() -> None:
    assert (run.TERMINAL, run.LIVE) == (
        ("stopped", "failed", "completed", "orphaned"),
        ("starting", "running", "stopping"),
    )


@pytest.mark.ids("A31-3")
@pytest.mark.parametrize(("old", "new"), ALLOWED)
def test_a_step_of_the_map_is_accepted(old: str, new: str) -> None:
    run.check(old, new)


@pytest.mark.ids("A31-3")
@pytest.mark.parametrize(("old", "new"), REFUSED)
def test_any_other_step_is_refused_by_an_error_that_names_both_states(old: str, new: str) -> None:
    with pytest.raises(run.InvalidTransition) as refusal:
        run.check(old, new)
    error = refusal.value
    assert (error.old, error.new, error.story) == (old, new, "")
    assert (f"already in state {old}" if old == new else f"cannot go from {old} to {new};") in str(error)


class Life(RuleBasedStateMachine):
    """A session and its runs. Every step of the map, and every step that is not in it, is a rule, added below."""

    def __init__(self) -> None:
        super().__init__()
        self.state = run.CREATED
        self.passed = [run.CREATED]

    @precondition(lambda self: self.state in run.TERMINAL)
    @rule()
    def the_session_adds_a_run(self) -> None:
        self.state = run.CREATED
        self.passed = [run.CREATED]

    @invariant()
    def no_state_comes_twice_in_a_run(self) -> None:
        assert len(set(self.passed)) == len(self.passed)

    @invariant()
    def a_run_is_over_exactly_when_nothing_leads_on(self) -> None:
        assert (self.state in run.TERMINAL) == all(step in REFUSED for step in EVERY_STEP if step[0] == self.state)

    @invariant()
    def a_process_has_lived_only_after_starting(self) -> None:
        if self.state in (run.RUNNING, run.STOPPING, run.STOPPED, run.COMPLETED):
            assert self.passed[:2] == [run.CREATED, run.STARTING]

    @invariant()
    def only_a_run_that_was_asked_to_end_is_stopped(self) -> None:
        assert (run.STOPPED in self.passed) <= (run.STOPPING in self.passed)


def _add_rule(old: str, new: str) -> None:
    def go(self: Life) -> None:
        run.check(old, new)
        self.state = new
        self.passed.append(new)

    def be_refused(self: Life) -> None:
        with pytest.raises(run.InvalidTransition) as refusal:
            run.check(old, new)
        assert old in str(refusal.value)
        assert new in str(refusal.value)

    step = go if (old, new) in ALLOWED else be_refused
    step.__name__ = f"{old}_to_{new}"
    setattr(Life, step.__name__, precondition(lambda self: self.state == old)(rule()(step)))


for _old, _new in EVERY_STEP:
    _add_rule(_old, _new)

# The longest way through the map has five steps: these are enough for two runs, with refusals between their steps.
Life.TestCase.settings = settings(stateful_step_count=20)
TestLife = pytest.mark.ids("A31-3", "X1")(Life.TestCase)


@pytest.mark.ids("A31-3")
@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("running", "running", "already in state running"),
        (
            "running",
            "stopped",
            "cannot go from running to stopped; from running the map leads to: stopping, failed, completed, orphaned",
        ),
        (
            "failed",
            "starting",
            "cannot go from failed to starting; from failed the map leads to: nothing, it is final",
        ),
        ("asleep", "running", "cannot go from asleep to running; from asleep the map leads to: nothing, it is final"),
    ],
)
def test_the_refusal_says_where_the_map_leads(old: str, new: str, text: str) -> None:
    with pytest.raises(run.InvalidTransition) as refusal:
        run.check(old, new)
    assert str(refusal.value) == text


def test_the_refusal_tells_the_story_when_it_knows_it() -> None:
    error = run.InvalidTransition("failed", "running", "12:00 failed: keeper lost")
    assert str(error) == (
        "cannot go from failed to running; from failed the map leads to: nothing, it is final\n"
        "12:00 failed: keeper lost"
    )


@pytest.mark.parametrize(
    ("old", "new", "states"),
    [
        ("running", "completed", ("completed",)),
        ("starting", "completed", ("running", "completed")),
        ("starting", "stopped", ("running", "stopping", "stopped")),
        ("created", "failed", ("failed",)),
        ("stopping", "failed", ("failed",)),
        ("failed", "failed", ()),
    ],
)
def test_the_path_to_an_end_passes_every_state_between(old: str, new: str, states: tuple[str, ...]) -> None:
    assert run.path(old, new) == states


def reachable(old: str) -> set[str]:
    return {old}.union(*(reachable(new) for new in run.TRANSITIONS[old]))


@pytest.mark.ids("A31-3")
@given(st.sampled_from(STATES), st.sampled_from(STATES))
def test_a_path_is_made_of_steps_of_the_map_or_there_is_none(old: str, new: str) -> None:
    if new not in reachable(old):
        with pytest.raises(run.InvalidTransition):
            run.path(old, new)
        return
    states = run.path(old, new)
    for step in zip((old, *states), states, strict=False):
        run.check(*step)
    assert (old, *states)[-1] == new


@pytest.mark.ids("X12")
@pytest.mark.parametrize(
    ("old", "new"),
    [("stopping", "orphaned"), ("stopping", "completed"), ("stopped", "completed"), ("asleep", "failed")],
)
def test_there_is_no_path_where_the_map_leads_nowhere(old: str, new: str) -> None:
    with pytest.raises(run.InvalidTransition, match=f"cannot go from {old} to {new};"):
        run.path(old, new)


@pytest.mark.ids("A22-5")
@pytest.mark.parametrize(
    ("code", "signal", "text"),
    [
        (3, None, "command exited with code 3"),
        (None, "SIGSEGV", "command killed by SIGSEGV"),
        (None, None, "exit status unknown"),
    ],
)
def test_an_end_reads_as_its_code_or_its_signal_or_as_unknown(code: int | None, signal: str | None, text: str) -> None:
    assert run.exit_text(code, signal) == text


@pytest.mark.ids("A22-8")
@pytest.mark.parametrize(
    ("code", "signal_number", "content"), [(0, None, "0\n"), (3, None, "3\n"), (None, 11, "139\n"), (None, None, "")]
)
def test_the_exit_status_file_holds_the_code_or_128_and_the_signal_or_nothing(
    code: int | None, signal_number: int | None, content: str
) -> None:
    assert run.exit_status(code, signal_number) == content


@pytest.mark.parametrize(
    ("code", "signal", "intent", "error", "state", "why"),
    [
        pytest.param(
            0, None, None, None, "completed", "command exited with code 0", marks=pytest.mark.ids("F1", "A22-4")
        ),
        pytest.param(3, None, None, None, "failed", "command exited with code 3", marks=pytest.mark.ids("F2", "A22-5")),
        pytest.param(137, None, None, None, "failed", "command exited with code 137", marks=pytest.mark.ids("F7")),
        pytest.param(None, "SIGKILL", None, None, "failed", "command killed by SIGKILL", marks=pytest.mark.ids("F3")),
        pytest.param(0, "SIGKILL", None, None, "failed", "command killed by SIGKILL", marks=pytest.mark.ids("X3")),
        pytest.param(None, None, None, None, "failed", "exit status unknown", marks=pytest.mark.ids("A31-9")),
        pytest.param(143, None, "user", None, "stopped", "asked by user", marks=pytest.mark.ids("A31-9", "X4")),
        pytest.param(0, None, "shutdown", None, "stopped", "asked by shutdown", marks=pytest.mark.ids("A31-9")),
        pytest.param(None, "SIGKILL", "reaper", None, "stopped", "asked by reaper", marks=pytest.mark.ids("A31-9")),
        pytest.param(None, None, "restart", None, "stopped", "asked by restart", marks=pytest.mark.ids("A31-9")),
        pytest.param(
            None,
            None,
            None,
            "no such program: claud",
            "failed",
            "no such program: claud",
            marks=pytest.mark.ids("F5", "A31-9"),
        ),
        pytest.param(None, None, "user", "keeper lost", "failed", "keeper lost", marks=pytest.mark.ids("F17")),
    ],
)
def test_the_verdict_on_an_end(code, signal, intent, error, state: str, why: str) -> None:
    assert run.verdict(code, signal, intent, error) == (state, why)


@pytest.mark.ids("A31-9")
def test_a_run_is_asked_to_end_by_a_user_a_shutdown_the_reaper_or_a_restart() -> None:
    assert run.INTENTS == ("user", "shutdown", "reaper", "restart")


ends = st.tuples(st.none() | st.integers(0, 255), st.none() | signals.map(lambda signal: signal[0]), intents, errors)


@pytest.mark.ids("A31-9", "X3")
@given(ends)
def test_a_run_is_completed_only_by_a_seen_code_0_that_nobody_asked_for(end) -> None:
    code, signal, intent, error = end
    state, _ = run.verdict(code, signal, intent, error)
    assert (state == run.COMPLETED) == (code == 0 and signal is None and intent is None and error is None)


@pytest.mark.ids("A31-9", "X4")
@given(ends)
def test_a_run_that_was_asked_to_end_is_stopped_whatever_its_code(end) -> None:
    code, signal, intent, _ = end
    state, _ = run.verdict(code, signal, intent)
    assert (state == run.STOPPED) == (intent is not None)


@given(ends)
def test_every_verdict_is_final_and_has_a_reason(end) -> None:
    state, why = run.verdict(*end)
    assert (state in run.TERMINAL, why != "") == (True, True)


def test_the_keeper_can_load_this_module_with_errors_alone() -> None:
    tree = ast.parse(Path(run.__file__).read_text())
    imported = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imported == ["from __future__ import annotations", "from hitchpost.errors import HitchpostError"]
