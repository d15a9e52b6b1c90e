"""A run: one life of an agent's process. Its states, the map of transitions, and what an exit means.

The keeper imports this module, so it imports nothing but errors: states are plain strings.
"""

from __future__ import annotations

from hitchpost.errors import HitchpostError

CREATED = "created"
STARTING = "starting"
RUNNING = "running"
STOPPING = "stopping"
STOPPED = "stopped"
FAILED = "failed"
COMPLETED = "completed"
ORPHANED = "orphaned"

TRANSITIONS: dict[str, tuple[str, ...]] = {
    CREATED: (STARTING, FAILED, ORPHANED),
    STARTING: (RUNNING, FAILED, ORPHANED),
    RUNNING: (STOPPING, FAILED, COMPLETED, ORPHANED),
    STOPPING: (STOPPED, FAILED),
    STOPPED: (),
    FAILED: (),
    COMPLETED: (),
    ORPHANED: (),
}

MEANINGS: dict[str, str] = {
    CREATED: "the session exists and has not been started",
    STARTING: "its process is being started",
    RUNNING: "its process is alive",
    STOPPING: "somebody asked it to end and it has not ended yet",
    STOPPED: "it ended because somebody asked",
    FAILED: "it could not start, or it ended with an error",
    COMPLETED: "it ended by itself with code 0",
    ORPHANED: "its workspace was deleted while it was active",
}

TERMINAL = tuple(state for state, following in TRANSITIONS.items() if not following)
LIVE = (STARTING, RUNNING, STOPPING)

KEEPER_LOST = "keeper lost"
TMUX_GONE = "tmux session no longer exists"
SHELL_GONE = "shell process exited"
REBOOT = "interrupted by reboot"
CONTAINER_REMOVED, CONTAINER_STOPPED = "container removed", "container stopped"
ENGINE_ENDED = "container stopped by its engine"
NODE_LOST, NODE_SHUT_DOWN = "node lost", "node shut down"
INTERRUPTIONS = (REBOOT, NODE_LOST, NODE_SHUT_DOWN)
"""The machine under a run has gone: its record is suspended, and the next run goes on."""
UNSEEN = "exit status unknown"
WORKSPACE_GONE = "workspace no longer exists"

USER, SHUTDOWN, REAPER, RESTART = "user", "shutdown", "reaper", "restart"
INTENTS = (USER, SHUTDOWN, REAPER, RESTART)
"""Who asked a run to end. Nobody is ``None``."""


LONGEST_GRACE_S = 86400
"""Longer than this nobody waits for an end: a day."""


class InvalidTransition(HitchpostError):
    """Raised when the transition map does not lead from one state to the other."""

    exit_code = 4
    http_status = 409
    code = "wrong_state"

    def __init__(self, old: str, new: str, story: str = "") -> None:
        if old == new:
            text = f"already in state {old}"
        else:
            following = ", ".join(TRANSITIONS.get(old, ())) or "nothing, it is final"
            text = f"cannot go from {old} to {new}; from {old} the map leads to: {following}"
        super().__init__(f"{text}\n{story}" if story else text)
        self.old, self.new, self.story = old, new, story


def check(old: str, new: str) -> None:
    """Raise ``InvalidTransition`` unless the map leads from ``old`` to ``new``."""
    if new not in TRANSITIONS.get(old, ()):
        raise InvalidTransition(old, new)


def path(old: str, new: str) -> tuple[str, ...]:
    """The states to pass, in order, to get from ``old`` to the terminal state ``new``. Empty when already there.

    An end can be seen late (the keeper died in ``starting``, the agent had run since), and no step of the map is
    skipped. Raises ``InvalidTransition`` when no way leads there.
    """
    if old == new:
        return ()
    ways: list[tuple[str, ...]] = [(state,) for state in TRANSITIONS.get(old, ())]
    for way in ways:
        if way[-1] == new:
            return way
        ways.extend((*way, state) for state in TRANSITIONS[way[-1]])
    raise InvalidTransition(old, new)


def exit_text(code: int | None, signal: str | None, out_of_memory: bool = False) -> str:
    """What a person reads about an end that nobody asked for."""
    why = " (out of memory)" if out_of_memory else ""
    if signal is not None:
        return f"command killed by {signal}{why}"
    if code is not None:
        return f"command exited with code {code}{why}"
    return UNSEEN


def exit_status(code: int | None, signal_number: int | None) -> str:
    """The content of the file ``exit_status``: the code, or 128 + signal, or nothing when nobody saw it."""
    if signal_number is not None:
        return f"{128 + signal_number}\n"
    return "" if code is None else f"{code}\n"


def verdict(
    code: int | None, signal: str | None, intent: str | None, error: str | None = None, out_of_memory: bool = False
) -> tuple[str, str]:
    """The final state of a run and the reason for it. Intent first: an end that was asked for is ``stopped``.

    ``error`` is why no command ever ran, or why nobody could see its end.
    """
    if error is not None:
        return FAILED, error
    if intent is not None:
        return STOPPED, f"asked by {intent}"
    if code == 0 and signal is None:
        return COMPLETED, "command exited with code 0"
    return FAILED, exit_text(code, signal, out_of_memory)


def outcome(
    state: str,
    code: int | None,
    signal: str | None,
    intent: str | None,
    error: str | None = None,
    out_of_memory: bool = False,
) -> tuple[str, str]:
    """The final state of a run that was in ``state``, and the reason. One that was stopping was asked to."""
    final, reason = verdict(code, signal, intent, error, out_of_memory)
    if state == STOPPING and error is None and final != STOPPED:
        return STOPPED, reason
    return final, reason
