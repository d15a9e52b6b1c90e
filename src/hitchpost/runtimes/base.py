"""What every runtime can do. No decision is made here: a runtime starts, looks, and ends."""

from __future__ import annotations

import sys

from hitchpost.errors import UsageError
from hitchpost.model.facts import Exit
from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from hitchpost.runspec import RunSpec
    from hitchpost.store.sandbox import MountSource

    class Runtime(Protocol):
        name: str
        ends_with_keeper: bool
        """Whether an agent cannot outlive its keeper, which is its parent."""
        cannot_start_again: str
        """What to do instead, for a program that somebody else has started; empty everywhere else."""
        has_own_screen: bool
        """Whether ``attach_command`` draws the terminal, so that nobody else needs to."""
        rests_in_place: bool
        """Whether the sandbox of a session that was ended because it was idle waits for its next run."""

        def start(self, spec: RunSpec, sandbox: Sandbox | None) -> Started:
            """Start the run and wait until the agent runs or could not be started."""

        def health(self, session_folder: str, run: int, *, session: str) -> Health:
            """Look, without changing anything."""

        def attach_command(self, session_folder: str, run: int, read_only: bool) -> OwnClient | None:
            """The place's own way in, when there is one and it answers. Raises ``Refused`` when it does not answer."""

        def explain(self, session_folder: str, run: int, *, over: bool) -> list[tuple[str, str, str]]:
            """What can be seen of the place itself: fact, value, and where it was looked at."""

        def check(self, session_folder: str = "") -> None:
            """Raise ``RuntimeMissing`` when this machine lacks what the runtime needs, or what runs this session."""

        def clear_away(self, session_folder: str) -> None:
            """The session is being removed: end what of it outlives its runs."""

        def unpause(self, session_folder: str) -> None:
            """Let a sandbox go on that somebody has paused."""

        def tear_down(self, session_folder: str) -> None:
            """Somebody stopped the session: end what it ran in too, its container or its tmux server."""

        def give_up(self, session_folder: str) -> None:
            """Somebody gives up a sandbox that cannot be reached: from now on it counts as gone."""

        def take_over(self, spec: RunSpec) -> Started:
            """Put a keeper in the place of one that is gone, beside an agent that lives. The agent notices nothing."""

        def leftovers(self, session_folder: str, run: int) -> Leftovers:
            """How many processes are still there of a run whose keeper is gone. Nothing is done to them."""

        def end_leftovers(self, session_folder: str, run: int, *, session: str) -> Leftovers:
            """End every process that is still there of a run whose keeper is gone."""


@value
class Sandbox:
    """What a container is to be like, for one run. ``env_names`` may go inside; ``git`` is the git folder that does.

    ``env_flags`` are arguments of the agent that stand for variables which are set inside.
    """

    image: str
    network: str
    sources: tuple[MountSource, ...] = ()
    memory_bytes: int = 4 << 30
    cpus: float | None = None
    env_names: tuple[str, ...] = ()
    env_flags: tuple[tuple[str, str], ...] = ()
    keep_failed: bool = False
    git: GitFolder | None = None


@value
class GitFolder:
    """A session's own git folder, and where it goes in its container; ``pointer`` is empty in a main worktree."""

    folder: str
    at: str
    objects: str
    objects_at: str
    pointer: str = ""


@value
class Started:
    """The answer to a start. ``error`` is None when the agent runs; ``kept`` is False when no keeper was started.

    ``field`` is what of the request the error is about, where that is known.
    """

    pid: int | None
    error: str | None = None
    kept: bool = True
    field: str = ""


@value
class Health:
    """Three-valued: None is "not known" or "no such thing", and never means dead.

    ``lost`` is why a dead keeper is dead, where the runtime can tell; ``doubt`` why a failed probe says nothing;
    ``exit`` how the agent ended, where something other than its keeper has seen it.
    """

    keeper_alive: bool | None
    sandbox_alive: bool | None
    session_alive: bool | None
    probe_failed: bool = False
    sandbox_paused: bool = False
    process_stopped: bool = False
    keeper_stopped: bool = False
    lost: str = ""
    doubt: str = ""
    exit: Exit | None = None


@value
class OwnClient:
    """A program that shows the agent's terminal, to be run in the session's folder."""

    argv: tuple[str, ...]
    env: dict[str, str]


@value
class Leftovers:
    """What a dead keeper left: how many processes there are or were ended, and what cannot be known about the rest."""

    count: int
    unknown: str = ""


RUNTIMES = {
    "local": "hitchpost.runtimes.local:Local",
    "tmux": "hitchpost.runtimes.tmux:Tmux",
    "docker": "hitchpost.runtimes.docker:Docker",
    "pod": "hitchpost.runtimes.pod:InPod",
}
ALL = {**RUNTIMES, "adopted": "hitchpost.runtimes.adopted:AdoptedPane"}
"""With those that nothing can be started on."""
KEPT_AT_ONCE = ("local",)
"""Those that need nothing but a keeper: it can be started ahead of its run."""


def load(name: str) -> Runtime:
    if name not in ALL:
        raise UsageError(f"unknown runtime {name!r}; choose one of: {', '.join(RUNTIMES)}")
    module, _, kind = ALL[name].partition(":")
    __import__(module)
    runtime: Runtime = getattr(sys.modules[module], kind)()
    return runtime
