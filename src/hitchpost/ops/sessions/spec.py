"""``SessionSpec``: what a person asks for. The command line, the hub's routes and every other door build one."""

from __future__ import annotations

from hitchpost.agents import catalog
from hitchpost.errors import UsageError
from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hitchpost.agents.catalog import Agent

NO_ENV: Mapping[str, str] = {}


@value
class SandboxOptions:
    """The options of ``hitch run --runtime docker``; None and empty mean the settings' own."""

    image: str | None = None
    mounts: tuple[str, ...] = ()
    network: str | None = None
    memory: str | None = None
    cpus: float | None = None
    config: str | None = None
    keep_failed: bool = False

    @property
    def anything(self) -> bool:
        return self != SandboxOptions()


@value
class SessionSpec:
    """A session to be made. ``command`` is a whole one, or further arguments of ``agent``.

    A first prompt is one of those, too, where the agent takes it that way, unless it is to be typed. ``folder`` is
    where the person is; ``workspace`` and ``branch`` name another place to work in.
    """

    folder: str
    agent: str | None = None
    command: tuple[str, ...] = ()
    branch: str | None = None
    workspace: str | None = None
    exclusive: bool = False
    share: bool = False
    name: str | None = None
    description: str = ""
    runtime: str = "local"
    prompt: str | None = None
    prompt_is_typed: bool = False
    env: Mapping[str, str] = NO_ENV
    size: tuple[int, int] = (80, 24)
    sandbox: SandboxOptions = SandboxOptions()
    idle_after_s: float | None = None

    def kind(self) -> Agent:
        """What runs. Raises ``UsageError`` when that is nothing, or an agent that nobody knows."""
        if self.agent is not None:
            return catalog.load(self.agent)
        if not self.command:
            raise UsageError(
                "say what to run: hitch run AGENT, or hitch run -- COMMAND …; hitch agents lists the agents"
            )
        return catalog.unknown(self.command)

    def argv(self, kind: Agent, prompt: str | None = None) -> tuple[str, ...]:
        """The arguments of every run; with ``prompt``, of the first one, where the agent takes it that way."""
        return kind.command(self.command, prompt) if self.agent is not None else self.command
