"""Where the real agents are that ``script/agents`` has installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from script.agents import AGENTS, USUAL

EVERY = tuple(pytest.param(name, marks=() if name in USUAL else pytest.mark.all_agents) for name in AGENTS)
"""For ``parametrize``: the usual agents in every run, the others with ``script/test --all-agents``."""


def command(name: str) -> Path:
    """The agent's program. Skips the test when it is not installed."""
    agent = AGENTS[name]
    if not agent.path.exists():
        pytest.skip(f"{name} {agent.version()} is not installed: script/agents {name}")
    return agent.path
