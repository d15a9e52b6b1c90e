"""The life of a run, as lists of events and effects."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitchpost.model import machine, run
from hitchpost.model.machine import (
    NEVER,
    ORPHANS_S,
    AgentExited,
    AgentStarted,
    AskAgent,
    AskTree,
    CountEnd,
    DeadlinePassed,
    Effect,
    EndCounted,
    Event,
    Force,
    Forced,
    LookAtTree,
    Run,
    SourceLost,
    StartFailed,
    StopRequested,
    TellEnd,
    TerminalClosed,
    TreeSeen,
    WorkspaceGone,
    WriteExit,
    WriteIntent,
    WriteState,
    handle,
)
from hitchpost.values import replace

NEW, RUNNING = Run(), Run(state=run.RUNNING)
UNSEEN = EndCounted()
STOP = StopRequested("user", "enough", 10.0, now=100.0)


def fed(start: Run, *events: Event) -> tuple[Run, list[Effect]]:
    effects: list[Effect] = []
    for event in events:
        start, more = handle(start, event)
        effects += more
    return start, effects


def written(effects: list[Effect]) -> list[str]:
    return [effect.state for effect in effects if isinstance(effect, WriteState)]


def test_a_run_that_ends_by_itself_is_completed_and_what_it_left_is_not_looked_at() -> None:
    life, effects = fed(Run(), AgentStarted(), AgentExited(), TerminalClosed(5.0), EndCounted(code=0))
    assert effects == [
        WriteState(run.RUNNING, "the agent runs"),
        CountEnd(),
        WriteExit(),
        WriteState(run.COMPLETED, "command exited with code 0"),
        TellEnd(run.COMPLETED, "command exited with code 0"),
    ]
    assert life.over
    assert life.next_at == NEVER


def test_a_start_that_failed_has_an_exit_before_its_state() -> None:
    life, effects = fed(Run(), StartFailed("program not found: x"))
    assert effects == [
        WriteExit("program not found: x"),
        WriteState(run.FAILED, "program not found: x", {"error": "program not found: x"}),
    ]
    assert life.over


def test_what_runs_already_cannot_fail_to_start() -> None:
    assert fed(RUNNING, StartFailed("too late")) == (RUNNING, [])


def test_a_terminal_closes_once() -> None:
    life, effects = fed(RUNNING, STOP, TerminalClosed(101.0))
    assert effects[-1] == LookAtTree()
    assert fed(life, TerminalClosed(102.0)) == (life, [])


def test_an_end_is_counted_once() -> None:
    life, effects = fed(RUNNING, STOP, TerminalClosed(101.0), TreeSeen(0, 101.0), Forced(0, 101.0), TreeSeen(0, 102.0))
    assert effects.count(CountEnd()) == 1
    assert life.counting


def test_who_asked_is_on_disk_before_any_signal() -> None:
    life, effects = fed(RUNNING, STOP)
    assert effects == [
        WriteIntent("user", "enough", 10.0),
        WriteState(run.STOPPING, "enough", {"by": "user", "grace_s": 10.0}),
        AskAgent(),
    ]
    assert (life.ask_tree_at, life.force_at) == (103.0, 110.0)


def test_who_asks_before_the_agent_runs_is_written_down_and_no_state_is() -> None:
    life, effects = fed(NEW, STOP)
    assert effects == [WriteIntent("user", "enough", 10.0), AskAgent()]
    assert life.state == run.STARTING


def test_a_deadline_that_has_not_come_changes_nothing() -> None:
    life, _ = fed(RUNNING, STOP)
    assert fed(life, DeadlinePassed(102.9)) == (life, [])


def test_an_end_without_grace_is_forced_at_once() -> None:
    life, effects = fed(RUNNING, StopRequested("user", "", 0.0, now=1.0))
    assert AskAgent() not in effects
    life, effects = fed(life, DeadlinePassed(1.0))
    assert effects == [Force()]
    assert life.force_at > 1.0


def test_the_second_asking_changes_only_a_longer_grace_time() -> None:
    life, _ = fed(RUNNING, STOP)
    assert fed(life, StopRequested("reaper", "idle", 60.0, now=101.0)) == (life, [])
    sooner, effects = fed(life, StopRequested("user", "", 0.0, now=101.0))
    assert (sooner.force_at, sooner.intent, effects) == (101.0, "user", [])


def test_an_agent_that_was_asked_is_stopped_whatever_its_code() -> None:
    _, effects = fed(RUNNING, STOP, AgentExited(), TerminalClosed(101.0), TreeSeen(0, 101.0), EndCounted(code=143))
    assert written(effects) == [run.STOPPING, run.STOPPED]
    assert effects[-1] == TellEnd(run.STOPPED, "asked by user")


def test_asking_after_the_end_only_ends_what_was_left() -> None:
    life, effects = fed(RUNNING, AgentExited(), STOP, TerminalClosed(101.0))
    assert (life.intent, effects) == (None, [LookAtTree()])
    life, effects = fed(life, TreeSeen(2, 101.0))
    assert (effects, life.force_at) == ([AskTree()], 111.0)


def test_the_tree_is_asked_once_and_looked_at_until_it_is_empty() -> None:
    life, _ = fed(RUNNING, STOP, AgentExited())
    life, effects = fed(life, TerminalClosed(101.0), TreeSeen(3, 101.0))
    assert effects == [LookAtTree(), AskTree()]
    assert life.force_at == 110.0
    life, effects = fed(life, DeadlinePassed(101.02), TreeSeen(1, 101.02), DeadlinePassed(101.04), TreeSeen(0, 101.04))
    assert effects == [LookAtTree(), LookAtTree(), CountEnd()]


def test_force_is_used_again_and_again_ever_more_rarely() -> None:
    life, _ = fed(RUNNING, STOP)
    moments = []
    for _ in range(12):
        moment = life.force_at
        life, effects = fed(life, DeadlinePassed(moment), Forced(1, moment))
        assert Force() in effects
        moments.append(round(life.force_at - moment, 6))
    assert moments[0] == machine.ROUND_S
    assert moments == sorted(moments)
    assert moments[-1] == machine.LONGEST_ROUND_S
    assert fed(life, Forced(0, life.force_at)) == (life, []), "its output is not read yet"
    closed, _ = fed(life, AgentExited(), TerminalClosed(life.force_at))
    assert fed(closed, Forced(0, 200.0))[1] == [CountEnd()]


def test_a_lost_source_ends_the_agent_and_is_no_stop() -> None:
    life, effects = fed(RUNNING, SourceLost(1.0, now=50.0))
    assert effects == [AskAgent()]
    assert (life.intent, life.ask_tree_at, life.force_at, life.ends_survivors) == (None, 50.5, 51.0, True)
    assert fed(fed(RUNNING, STOP)[0], SourceLost(1.0, now=101.0))[1] == []
    _, effects = fed(life, AgentExited(), TerminalClosed(51.0), TreeSeen(0, 51.0), EndCounted(error=run.TMUX_GONE))
    assert written(effects) == [run.FAILED]


def test_what_a_killed_agent_has_started_is_ended_with_it_where_that_is_wished() -> None:
    watched = replace(RUNNING, ends_orphans=True)
    life, effects = fed(watched, AgentExited(), TerminalClosed(5.0, killed=True), TreeSeen(1, 5.0))
    assert (effects, life.force_at) == ([LookAtTree(), AskTree()], 5.0 + ORPHANS_S)
    for run_before, killed in ((watched, False), (RUNNING, True)):
        _, effects = fed(run_before, AgentExited(), TerminalClosed(5.0, killed=killed))
        assert effects == [CountEnd()]


def test_what_a_killed_agent_has_started_is_ended_before_its_terminal_closes() -> None:
    """It may be what holds the terminal open."""
    watched = replace(RUNNING, ends_orphans=True)
    life, effects = fed(watched, AgentExited(5.0, killed=True), TreeSeen(1, 5.0))
    assert (effects, life.force_at) == ([AskTree()], 5.0 + ORPHANS_S)
    assert fed(life, DeadlinePassed(5.0 + ORPHANS_S))[1] == [Force()]
    assert fed(life, TerminalClosed(5.1, killed=True), TreeSeen(1, 5.1), TreeSeen(0, 5.2))[1] == [
        LookAtTree(),
        CountEnd(),
    ]
    for run_before in (RUNNING, fed(watched, STOP)[0], fed(watched, AgentExited())[0]):
        assert fed(run_before, AgentExited(5.0, killed=True))[1] == []


def test_a_deleted_workspace_is_told_once_and_ends_nothing() -> None:
    life, effects = fed(RUNNING, WorkspaceGone(), WorkspaceGone())
    assert effects == [WriteState(run.ORPHANED, run.WORKSPACE_GONE)]
    assert life.next_at == NEVER
    _, effects = fed(life, AgentExited(), TerminalClosed(1.0), EndCounted(code=0))
    assert effects == [CountEnd(), WriteExit(), TellEnd(run.ORPHANED, "command exited with code 0")]


def test_a_keeper_that_takes_over_writes_no_state_again() -> None:
    assert fed(RUNNING, AgentStarted()) == (RUNNING, [])


def test_recovery_goes_by_the_steps_of_the_map() -> None:
    _, effects = fed(Run(), EndCounted(code=0, since="then"))
    assert written(effects) == [run.RUNNING, run.COMPLETED]
    assert all(effect.since == "then" for effect in effects if isinstance(effect, WriteState))
    assert written(fed(Run(state=run.STOPPING), EndCounted(code=1))[1]) == [run.STOPPED]
    assert written(fed(Run(state=run.STOPPING), EndCounted(error=run.KEEPER_LOST))[1]) == [run.FAILED]


def test_nothing_follows_the_end() -> None:
    life, _ = fed(Run(), AgentStarted(), TerminalClosed(1.0), EndCounted(code=1))
    for event in (STOP, AgentExited(), TerminalClosed(2.0), WorkspaceGone(), EndCounted(code=0), DeadlinePassed(9.0)):
        assert fed(life, event) == (life, [])


@pytest.mark.parametrize("event", [TreeSeen(0, 1.0), Forced(0, 1.0)])
def test_an_empty_tree_is_no_end_while_output_comes(event: Event) -> None:
    assert fed(RUNNING, event) == (RUNNING, [])


# Any order of events, and a crash between any two effects ---------------------------------------------------------


@dataclass
class World:
    """What the effects have made of the disk, and the processes of an agent that ends or does not when it is asked."""

    life: Run = NEW
    now: float = 0.0
    states: list[str] = field(default_factory=lambda: [run.STARTING])
    exit: EndCounted | None = None
    intent: str | None = None
    told: bool = False
    end: EndCounted = UNSEEN
    effects_left: int = 10_000

    def feed(self, *events: Event) -> None:
        queue = list(events)
        while queue:
            event = queue.pop(0)
            self.life, effects = handle(self.life, event)
            for effect in effects:
                if self.effects_left == 0:
                    raise Crashed
                self.effects_left -= 1
                queue += self.carry_out(effect)

    def carry_out(self, effect: Effect) -> list[Event]:
        if isinstance(effect, WriteIntent):
            self.intent = effect.by
        elif isinstance(effect, WriteState):
            run.check(self.states[-1], effect.state)
            self.states.append(effect.state)
        elif isinstance(effect, WriteExit):
            assert self.exit is None
            self.exit = EndCounted(error=effect.error) if effect.error else self.end
        elif isinstance(effect, TellEnd):
            self.told = True
        elif isinstance(effect, AskAgent | AskTree | Force):
            assert self.life.intent is None or self.intent is not None, "a signal before the intent"
        elif isinstance(effect, LookAtTree):
            return [TreeSeen(self.left, self.now)]
        if isinstance(effect, Force):
            self.left = max(0, self.left - 1)
            return [Forced(self.left, self.now)]
        return [self.end] if isinstance(effect, CountEnd) else []

    left: int = 2

    def recover(self) -> None:
        """Another process finds what is on disk, and nobody else is there."""
        seen = self.exit or EndCounted(error=run.KEEPER_LOST)
        self.life = Run(self.states[-1], intent=self.intent)
        self.effects_left = 10_000
        exit_before = self.exit
        self.exit, self.end = None, seen
        self.feed(seen)
        assert exit_before is None or self.exit == exit_before


class Crashed(Exception):
    pass


moments = st.floats(0.0, 5.0)
ends = st.builds(
    EndCounted,
    code=st.sampled_from([None, 0, 1, 143]),
    signal=st.sampled_from([None, "SIGKILL"]),
    error=st.sampled_from([None, None, run.TMUX_GONE]),
)
kinds = st.lists(
    st.sampled_from(["stop", "stop now", "lost", "exited", "closed", "gone", "later", "started"]), max_size=12
)


@settings(max_examples=600)
@given(kinds, ends, st.lists(moments, min_size=12, max_size=12), st.integers(0, 12), st.booleans())
def test_whatever_happens_in_any_order_and_wherever_it_is_cut_off_every_promise_holds(
    order: list[str], end: EndCounted, pauses: list[float], crash_after: int, kills: bool
) -> None:
    world = World(end=end, effects_left=crash_after, life=Run(ends_survivors=kills))
    exited = False
    try:
        world.feed(AgentStarted())
        for kind, pause in zip(order, pauses, strict=False):
            world.now += pause
            exited = exited or kind in ("exited", "closed")
            world.feed(
                {
                    "stop": StopRequested("user", "", 3.0, world.now),
                    "stop now": StopRequested("restart", "", 0.0, world.now),
                    "lost": SourceLost(1.0, world.now),
                    "exited": AgentExited(),
                    "closed": TerminalClosed(world.now),
                    "gone": WorkspaceGone(),
                    "later": DeadlinePassed(world.now),
                    "started": AgentStarted(),
                }[kind]
            )
        world.feed(AgentExited(), TerminalClosed(world.now))
        for _ in range(1000):
            if world.life.over:
                break
            world.now = max(world.now, world.life.next_at)
            world.feed(DeadlinePassed(world.now))
        assert world.life.over, "it ends"
    except Crashed:
        world.recover()
    final = world.states[-1]
    assert final in run.TERMINAL
    assert world.exit is not None
    assert all(new in run.TRANSITIONS[old] for old, new in itertools.pairwise(world.states))
    seen = world.exit
    if final == run.COMPLETED:
        assert (seen.code, seen.signal, seen.error, world.intent) == (0, None, None, None)
    if final == run.STOPPED:
        assert world.intent is not None
    if world.intent is not None and seen.error is None and final != run.ORPHANED:
        assert final == run.STOPPED
    if seen.error is not None and final not in (run.ORPHANED, run.STOPPED):
        assert final == run.FAILED


def test_every_event_has_a_handler() -> None:
    kinds = {kind for kind in vars(machine).values() if isinstance(kind, type) and issubclass(kind, Event)}
    assert set(machine.HANDLERS) == kinds - {Event}
