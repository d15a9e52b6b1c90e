"""What can be started on this machine: the catalog's agents and the runtimes, and what is missing of them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from hitchpost import settings as config
from hitchpost.agents import catalog
from hitchpost.errors import RuntimeMissing, UsageError
from hitchpost.model.facts import is_elsewhere
from hitchpost.runtimes import base, pod
from hitchpost.settings import Settings


@dataclass(frozen=True, slots=True)
class OfferedAgent:
    """``path`` is where its program is; None when it is not installed, and ``install`` then says how to.

    ``broken`` is what is wrong with its file; empty when nothing is. ``options`` are what a session may choose:
    ``permission_mode``, ``model``. It is ``watched`` where Hitchpost knows what it is doing, and a ``chat`` over ACP.
    It can go on with the conversations of all that have the same ``conversations``.
    """

    name: str
    title: str
    argv: tuple[str, ...]
    path: str | None
    install: str
    broken: str = ""
    options: tuple[str, ...] = ()
    watched: bool = False
    chat: bool = False
    conversations: str = ""


@dataclass(frozen=True, slots=True)
class OfferedRuntime:
    """``missing`` is why it cannot be used; empty when it can."""

    name: str
    available: bool
    missing: str


def agents(caller: Mapping[str, str], settings: Settings) -> list[OfferedAgent]:
    """Programs are looked for where a run started by ``caller`` would look for them."""
    path = {**caller, **config.environment(settings)}.get("PATH")
    return [_agent(name, path) for name in catalog.names()]


def _agent(name: str, path: str | None) -> OfferedAgent:
    try:
        agent = catalog.load(name)
    except UsageError as error:
        return OfferedAgent(name, name, (), None, "", str(error))
    program = shutil.which(agent.argv[0], path=path)
    options = tuple(name for name, _ in agent.options)
    known = {"watched": agent.adapter != "", "chat": agent.adapter == catalog.ACP, "conversations": agent.conversations}
    return OfferedAgent(name, agent.title, agent.argv, program, agent.install, "", options, **known)  # type: ignore[arg-type]


def runtimes() -> list[OfferedRuntime]:
    """Where there is a cluster, sessions run there, also while it is away; elsewhere, on this machine."""
    return [_runtime(name) for name in base.RUNTIMES if is_elsewhere(name) == pod.has_cluster()]


def _runtime(name: str) -> OfferedRuntime:
    try:
        base.load(name).check()
    except RuntimeMissing as error:
        return OfferedRuntime(name, available=False, missing=str(error))
    return OfferedRuntime(name, available=True, missing="")
