"""``SessionSpec``: what a person asks for. The command line, the hub's routes and every other door build one."""

from __future__ import annotations

from hitchpost.agents import catalog, prepare
from hitchpost.agents.catalog import ACP
from hitchpost.errors import UsageError
from hitchpost.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hitchpost.agents.catalog import Agent

NO_ENV: Mapping[str, str] = {}
OVER_ACP = "-acp"


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
    where the person is; ``workspace`` and ``branch`` name another place to work in. ``permission_mode`` and ``model``
    are the agent's own words for them; empty means what the agent does by itself. ``fork_of`` is the conversation that
    it branches off. ``when_limit`` is what happens at a usage limit; empty means as the settings say. ``repository`` is
    the address of one that is cloned for it on another machine, and ``profile`` what it gets there; ``owner`` is the
    person whose session it is.
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
    permission_mode: str = ""
    model: str = ""
    fork_of: str = ""
    when_limit: str = ""
    repository: str = ""
    profile: str = ""
    owner: str = ""

    def spoken_to(self) -> SessionSpec:
        """Where ``runtime`` is ACP, which is a way to speak and no place: the agent that is spoken to that way, here.

        Raises ``UsageError`` when there is none.
        """
        if self.runtime != ACP:
            return self
        known = [name.removesuffix(OVER_ACP) for name in catalog.names() if name.endswith(OVER_ACP)]
        if self.agent not in known:
            raise UsageError(
                f"expected an agent that speaks ACP: {', '.join(known)}; got {self.agent or 'a command'}", field="agent"
            )
        return replace(self, agent=f"{self.agent}{OVER_ACP}", runtime="local")

    def kind(self) -> Agent:
        """What runs. Raises ``UsageError`` when that is nothing, or an agent that nobody knows."""
        if self.agent is not None:
            return catalog.load(self.agent)
        if not self.command:
            raise UsageError(
                "say what to run: hitch run AGENT, or hitch run -- COMMAND …; hitch agents lists the agents"
            )
        return catalog.unknown(self.command)

    def argv(self, kind: Agent) -> tuple[str, ...]:
        """The arguments of every run."""
        return kind.command(self.command) if self.agent is not None else self.command

    def check_options(self, kind: Agent) -> None:
        """Raises ``UsageError`` when the agent has no option for what is asked."""
        prepare.options(kind, permission_mode=self.permission_mode, model=self.model)
