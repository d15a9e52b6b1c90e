"""Where an agent lives, as its keeper sees it. Each place is one module here and one line in ``MODULES``."""

from __future__ import annotations

import sys

from hitchpost import runspec
from hitchpost.errors import HitchpostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from hitchpost.keeper.keeper import Keeper
    from hitchpost.keeper.tree import Tree

    class Source(Protocol):
        """What a keeper asks of the place where its agent lives.

        A source tells its keeper what it hears: ``on_output``, ``agent_exited``, ``output_closed``, ``lost``.
        """

        pid: int
        """The agent's first process; 0 while there is none."""
        tree: Tree
        """What the agent has started."""
        tier: str
        """What keeps its processes together, for ``run.json``."""
        input_fd: int
        """Where what is typed goes."""
        wait_status: int | None
        """How the agent ended; None while nobody has seen it."""
        usage: object
        answers_queries: bool
        """Whether something between keeper and agent answers what the agent asks its terminal."""

        def start(self) -> dict[str, object]:
            """Start the agent, or find it. Fields for ``run.json``. Raises ``StartFailed`` or ``OSError``."""

        def listen(self) -> None:
            """It is written down that the agent runs: from now on tell the keeper what it prints."""

        def want_room(self, wanted: bool) -> None:
            """Whether bytes wait to be typed: then call ``keeper.type`` as soon as some can be."""

        def reads_lines(self) -> bool:
            """Whether the agent gets its input line by line, which limits their length."""

        def hides_input(self) -> bool:
            """Whether it reads a line that its terminal does not show, as programs read passwords.

            False where that cannot be known."""

        def unread_bytes(self) -> int:
            """What the terminal holds that the agent could read and has not; whole lines, where it reads by lines."""

        def set_size(self, cols: int, rows: int) -> bool:
            """False when the size is not the keeper's to change."""

        def reap(self) -> None:
            """Collect the dead."""

        def why_lost(self) -> str | None:
            """Why the agent had to end, or why nobody could see its end; None when neither is so."""

        def oom_kills(self) -> int: ...

        def release(self) -> None:
            """The end is written down: give back what held the agent's processes together."""


class StartFailed(HitchpostError):
    """Raised when the agent could not be started. The text says which program or folder, and why."""


MODULES = {
    runspec.PtySource: "pty",
    runspec.PaneSource: "tmux_pane",
    runspec.ControlSource: "tmux_control",
    runspec.ContainerSource: "container",
}


def open_source(keeper: Keeper) -> Source:
    """The source that the keeper's spec names. Only its own module is loaded."""
    name = f"{__name__}.{MODULES[type(keeper.spec.source)]}"
    __import__(name)
    source: Source = sys.modules[name].open_source(keeper)
    return source
