"""Where the real agents are that ``script/agents`` has installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from script.agents import AGENTS, INSTALLABLE, USUAL, USUAL_OVER_ACP, Agent

EVERY = tuple(pytest.param(name, marks=() if name in USUAL else pytest.mark.all_agents) for name in AGENTS)
"""For ``parametrize``: the usual agents in every run, the others with ``script/test --all-agents``."""
OVER_ACP = "-acp"
NAMES_OVER_ACP = ("opencode", "claude", "codex", "qwen", "copilot", "goose", "gemini")
EVERY_OVER_ACP = tuple(
    pytest.param(name, marks=() if {name, f"{name}{OVER_ACP}"} & {*USUAL_OVER_ACP} else pytest.mark.all_agents)
    for name in NAMES_OVER_ACP
)
"""The same for agents over ACP."""


def program(name: str) -> Agent:
    """What speaks for the agent: over ACP that is a program of its own, or the agent itself."""
    return INSTALLABLE.get(name) or INSTALLABLE[name.removesuffix(OVER_ACP)]


def command(name: str) -> Path:
    """The agent's program. Skips the test when it is not installed."""
    agent = program(name)
    if not agent.path.exists():
        pytest.skip(f"{agent.name} {agent.version()} is not installed: script/agents {agent.name}")
    return agent.path
