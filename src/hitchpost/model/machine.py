"""The life of a run: ``handle(run, event) -> (run, effects)``. Pure: no clock, no disk, no processes.

Events say what was seen or asked; effects say what to do, in this order. A keeper feeds events and carries out effects.
Recovery does the same for a run whose keeper is gone. Moments (``now``) are seconds of a clock that never goes back.

The keeper imports this module, so it stays light.
"""

from __future__ import annotations

from hitchpost.model.run import (
    COMPLETED,
    FAILED,
    LIVE,
    ORPHANED,
    RUNNING,
    STARTING,
    STOPPED,
    STOPPING,
    WORKSPACE_GONE,
    outcome,
    path,
)
from hitchpost.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Effects = tuple["Effect", ...]

POLITE_S = 3.0
"""How long the agent alone has to end, before everything below it is asked to."""
ROUND_S, LONGEST_ROUND_S = 0.02, 1.0
ORPHANS_S = 0.25
"""How long what a killed agent has left behind has to end."""
NEVER = float("inf")


@value
class Run:
    """One run, as far as its end is concerned. Times without a value are ``NEVER``.

    ``ends_survivors``: what the agent leaves behind is ended with it; ``ends_orphans``: if it was killed. ``exited``:
    the agent is gone. ``closed``: so is its terminal, and all of its output is read. ``counting``: its end is being
    worked out. ``over``: nothing follows.
    """

    state: str = STARTING
    grace_s: float = 10.0
    ends_survivors: bool = False
    ends_orphans: bool = False
    intent: str | None = None
    exited: bool = False
    closed: bool = False
    counting: bool = False
    over: bool = False
    ask_tree_at: float = NEVER
    force_at: float = NEVER
    look_at: float = NEVER
    round_s: float = ROUND_S / 2

    @property
    def next_at(self) -> float:
        """When ``DeadlinePassed`` is due."""
        return min(self.ask_tree_at, self.force_at, self.look_at)


# Events -----------------------------------------------------------------------------------------------------------


class Event:
    """Something that was seen, or asked for."""


@value
class AgentStarted(Event):
    """The agent runs."""

    reason: str = "the agent runs"
    evidence: object = None


@value
class StartFailed(Event):
    """No agent runs, or one runs that nobody could find again."""

    why: str


@value
class StopRequested(Event):
    """Somebody (``by``) asks for the end, which may take ``grace_s``."""

    by: str
    reason: str
    grace_s: float
    now: float


@value
class SourceLost(Event):
    """The agent has lost what it ran in, such as its tmux pane, and cannot go on."""

    grace_s: float
    now: float


@value
class AgentExited(Event):
    """The agent's first process has ended. ``killed``: by a signal, at ``now``."""

    now: float = 0.0
    killed: bool = False


@value
class TerminalClosed(Event):
    """The agent has ended, and all of its output is read. ``killed``: by a signal."""

    now: float
    killed: bool = False


@value
class TreeSeen(Event):
    """So many processes are left of what the agent started. Answers ``LookAtTree``."""

    count: int
    now: float


@value
class Forced(Event):
    """So many processes were there when force was used. Answers ``Force``."""

    count: int
    now: float


@value
class DeadlinePassed(Event):
    """``Run.next_at`` has come."""

    now: float


@value
class WorkspaceGone(Event):
    """The folder that the agent works in was deleted or replaced."""

    evidence: object = None


@value
class EndCounted(Event):
    """How the agent ended. Answers ``CountEnd``; recovery tells it of a run whose keeper is gone.

    ``error`` is why no command ever ran, or why nobody could see its end. ``since`` is when the end came about, where
    that was some time ago.
    """

    code: int | None = None
    signal: str | None = None
    error: str | None = None
    out_of_memory: bool = False
    evidence: object = None
    since: str | None = None


# Effects ----------------------------------------------------------------------------------------------------------


class Effect:
    """Something to do."""


@value
class WriteIntent(Effect):
    """Write down who asked for the end. Comes before any signal."""

    by: str
    reason: str
    grace_s: float


@value
class WriteState(Effect):
    """Write the state down, and tell it."""

    state: str
    reason: str
    evidence: object = None
    since: str | None = None


@value
class AskAgent(Effect):
    """Ask the agent itself to end, by the signal that it ends well with."""


@value
class AskTree(Effect):
    """Ask everything that is left to end."""


@value
class LookAtTree(Effect):
    """Count what is left, and answer with ``TreeSeen``."""


@value
class Force(Effect):
    """Kill what is left, and answer with ``Forced``."""


@value
class CountEnd(Effect):
    """Work out how the run ended, and answer with ``EndCounted``."""


@value
class WriteExit(Effect):
    """Write down how the run ended. Comes before the final state."""

    error: str | None = None


@value
class TellEnd(Effect):
    """Tell everybody who listens: all of it is on disk."""

    state: str
    reason: str


# The machine ------------------------------------------------------------------------------------------------------


def handle(run: Run, event: Event) -> tuple[Run, Effects]:
    """Apply ``event``. What comes too late, or says nothing new, changes nothing."""
    if run.over:
        return run, ()
    return HANDLERS[type(event)](run, event)


def _on_started(run: Run, event: AgentStarted) -> tuple[Run, Effects]:
    if run.state != STARTING:
        return run, ()  # another keeper had written it down
    return replace(run, state=RUNNING), (WriteState(RUNNING, event.reason, event.evidence),)


def _on_start_failed(run: Run, event: StartFailed) -> tuple[Run, Effects]:
    if run.state != STARTING:
        return run, ()  # it runs: whatever fails now is no start
    steps = _steps(run.state, FAILED, event.why, {"error": event.why})
    return replace(run, state=FAILED, over=True), (WriteExit(event.why), *steps)


def _on_stop(run: Run, event: StopRequested) -> tuple[Run, Effects]:
    """Asked again, only a shorter grace time changes anything."""
    moment = event.now + event.grace_s
    if run.intent is not None:
        return replace(run, force_at=min(run.force_at, moment)), ()
    if run.exited:
        return replace(run, ends_survivors=True), ()
    effects: list[Effect] = [WriteIntent(event.by, event.reason, event.grace_s)]
    asked = replace(run, intent=event.by, force_at=moment)
    if run.state == RUNNING:
        why = event.reason or f"asked by {event.by}"
        effects.append(WriteState(STOPPING, why, {"by": event.by, "grace_s": event.grace_s}))
        asked = replace(asked, state=STOPPING)
    if event.grace_s > 0:
        effects.append(AskAgent())
        asked = replace(asked, ask_tree_at=event.now + min(POLITE_S, event.grace_s / 2))
    return asked, tuple(effects)


def _on_lost(run: Run, event: SourceLost) -> tuple[Run, Effects]:
    """Nobody asked for this end, so it is no stop."""
    if run.intent is not None or run.exited:
        return run, ()
    force_at, ask_tree_at = event.now + event.grace_s, event.now + event.grace_s / 2
    return replace(run, ends_survivors=True, force_at=force_at, ask_tree_at=ask_tree_at), (AskAgent(),)


def _on_exited(run: Run, event: AgentExited) -> tuple[Run, Effects]:
    """What a killed agent has started may hold its terminal open: it is ended at once, and so the terminal closes."""
    if run.exited or not event.killed or not run.ends_orphans or run.intent is not None:
        return replace(run, exited=True), ()
    force_at = event.now + min(run.grace_s, ORPHANS_S)
    ended = replace(run, exited=True, ends_survivors=True, look_at=event.now + ROUND_S, force_at=force_at)
    return ended, (AskTree(),)


def _on_closed(run: Run, event: TerminalClosed) -> tuple[Run, Effects]:
    """What the agent started follows it where that was asked for."""
    if run.closed:
        return run, ()
    run = replace(run, exited=True, closed=True)
    if event.killed and run.ends_orphans and run.intent is None:
        run = replace(run, ends_survivors=True, grace_s=min(run.grace_s, ORPHANS_S))
    if run.intent is None and not run.ends_survivors:
        return _count(run)
    return run, (LookAtTree(),)


def _on_tree(run: Run, event: TreeSeen) -> tuple[Run, Effects]:
    if not run.closed:
        return run, ()
    if event.count == 0:
        return _count(run)
    if run.look_at < NEVER:
        return replace(run, look_at=event.now + ROUND_S), ()
    force_at = run.force_at if run.intent is not None else event.now + run.grace_s
    return replace(run, look_at=event.now + ROUND_S, ask_tree_at=NEVER, force_at=force_at), (AskTree(),)


def _on_deadline(run: Run, event: DeadlinePassed) -> tuple[Run, Effects]:
    effects: list[Effect] = []
    if event.now >= run.ask_tree_at:
        run = replace(run, ask_tree_at=NEVER)
        effects.append(AskTree())
    if event.now >= run.force_at:
        round_s = min(2 * run.round_s, LONGEST_ROUND_S)
        run = replace(run, force_at=event.now + round_s, round_s=round_s)
        effects.append(Force())
    elif event.now >= run.look_at:
        effects.append(LookAtTree())
        run = replace(run, look_at=event.now + ROUND_S)
    return run, tuple(effects)


def _on_forced(run: Run, event: Forced) -> tuple[Run, Effects]:
    """Force is used again and again until nothing is left. The rounds grow rare for what the kernel will not let go."""
    return _count(run) if run.closed and event.count == 0 else (run, ())


def _count(run: Run) -> tuple[Run, Effects]:
    if run.counting:
        return run, ()
    return replace(run, counting=True, ask_tree_at=NEVER, force_at=NEVER, look_at=NEVER), (CountEnd(),)


def _on_workspace_gone(run: Run, event: WorkspaceGone) -> tuple[Run, Effects]:
    """The agent goes on: nobody has asked for its end."""
    if run.state != RUNNING:
        return run, ()
    return replace(run, state=ORPHANED), (WriteState(ORPHANED, WORKSPACE_GONE, event.evidence),)


def _on_end(run: Run, event: EndCounted) -> tuple[Run, Effects]:
    """The exit first, then the state, then the word. What was final before its end stays what it was."""
    final, reason = outcome(run.state, event.code, event.signal, run.intent, event.error, event.out_of_memory)
    if run.state not in LIVE:
        return replace(run, over=True), (WriteExit(event.error), TellEnd(run.state, reason))
    steps = _steps(run.state, final, reason, event.evidence, event.since)
    return replace(run, state=final, over=True), (WriteExit(event.error), *steps, TellEnd(final, reason))


def _steps(old: str, final: str, reason: str, evidence: object, since: str | None = None) -> Effects:
    return tuple(WriteState(state, reason, evidence, since) for state in path(old, final))


HANDLERS: dict[type, Callable[..., tuple[Run, Effects]]] = {
    AgentStarted: _on_started,
    StartFailed: _on_start_failed,
    StopRequested: _on_stop,
    SourceLost: _on_lost,
    AgentExited: _on_exited,
    TerminalClosed: _on_closed,
    TreeSeen: _on_tree,
    Forced: _on_forced,
    DeadlinePassed: _on_deadline,
    WorkspaceGone: _on_workspace_gone,
    EndCounted: _on_end,
}

FINAL = (STOPPED, FAILED, COMPLETED)
