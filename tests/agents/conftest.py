"""Fixtures for tests with real agents: a scripted model, and a home for each agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.agents import homes, installed, proofs
from tests.agents.homes import AgentHome
from tests.agents.modelserver import ModelServer
from tests.support import LeakWatch


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--all-agents") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(proofs.Collecting(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if words := proofs.claimed(item):
            item.user_properties.append(("proves", words))
    if config.getoption("--all-agents"):
        return
    for item in items:
        if item.get_closest_marker("all_agents"):
            item.add_marker(pytest.mark.skip(reason="runs with script/test --all-agents"))


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A scripted model. It is closed before the check for leaks, and fails the test when it was told nonsense."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def agent_home(model: ModelServer, leak_watch: LeakWatch, request: pytest.FixtureRequest) -> Callable[[str], AgentHome]:
    """Makes the home of an agent for the test's model: ``agent_home("claude")``. Skips when it is not installed.

    What the test proves, it proves of this agent.
    """

    def make(name: str) -> AgentHome:
        request.node.user_properties.append(("agent", name))
        return homes.make(name, installed.command(name), leak_watch.scratch / name, model)

    return make
