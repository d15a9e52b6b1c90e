"""What every runtime can do. No decision is made here: a runtime starts, looks, and ends."""

from __future__ import annotations

from importlib import import_module

from hitchpost.errors import UsageError
from hitchpost.model.facts import Exit
from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Runtime(Protocol):
        name: str
        has_sandbox: bool

        def start(self, launch: Launch) -> Started:
            """Start the run and wait until the agent runs or could not be started."""

        def health(self, session_folder: str, run: int, *, session: str) -> Health:
            """Look, without changing anything."""

        def check(self) -> None:
            """Raise ``RuntimeMissing`` when this machine lacks what the runtime needs."""

        def clear_away(self, session_folder: str) -> None:
            """The session is being removed: end what of it outlives its runs."""

        def unpause(self, session_folder: str) -> None:
            """Let a sandbox go on that somebody has paused."""

        def tear_down(self, session_folder: str) -> None:
            """Somebody stopped the session: end what it ran in too, its container or its tmux server."""

        def take_over(self, launch: Launch) -> Started:
            """Put a keeper in the place of one that is gone, beside an agent that lives. The agent notices nothing."""

        def leftovers(self, session_folder: str, run: int) -> Leftovers:
            """How many processes are still there of a run whose keeper is gone. Nothing is done to them."""

        def end_leftovers(self, session_folder: str, run: int, *, session: str) -> Leftovers:
            """End every process that is still there of a run whose keeper is gone."""


@value
class Launch:
    """One run to be started. The caller holds the keeper's lock in ``lock_fd`` and gives it away with the start.

    ``env`` is the agent's whole environment; its values go to the agent and nowhere else.
    """

    session: str
    session_folder: str
    run: int
    argv: tuple[str, ...]
    env: dict[str, str]
    folder: str
    folder_dev: int
    folder_ino: int
    lock_fd: int
    lease_fds: tuple[int, ...] = ()
    cols: int = 80
    rows: int = 24
    grace_s: float = 10.0
    quit_signal: str = "SIGTERM"
    quit_group: bool = False
    survivors: str = "keep"
    log_cap_bytes: int = 64 * 1024 * 1024
    pids_max: int = 0
    memory_max_bytes: int = 0
    sandbox: dict[str, object] | None = None
    env_flags: tuple[tuple[str, str], ...] = ()


@value
class Started:
    """The answer to a launch. ``error`` is None when the agent runs; ``kept`` is False when no keeper was started.

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
class Leftovers:
    """What a dead keeper left: how many processes there are or were ended, and what cannot be known about the rest."""

    count: int
    unknown: str = ""


RUNTIMES = {
    "local": "hitchpost.runtimes.local:Local",
    "tmux": "hitchpost.runtimes.tmux:Tmux",
    "docker": "hitchpost.runtimes.docker:Docker",
}
ALL = {**RUNTIMES, "adopted": "hitchpost.runtimes.adopted:AdoptedPane"}
"""With those that nothing can be started on."""


def load(name: str) -> Runtime:
    if name not in ALL:
        raise UsageError(f"unknown runtime {name!r}; known are: {', '.join(RUNTIMES)}")
    module, _, kind = ALL[name].partition(":")
    runtime: Runtime = getattr(import_module(module), kind)()
    return runtime
