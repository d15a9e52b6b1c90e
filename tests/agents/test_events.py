"""Every event of a session with each real agent, told alike by ``hitch ps``, the API, the WebSocket and the story."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.agents.everywhere import everywhere
from tests.agents.homes import AgentHome
from tests.agents.modelserver import ModelServer
from tests.agents.steps import STEPS, Walk, screen_shown
from tests.agents.ways import WAYS, every
from tests.ground import Ground

pytestmark = pytest.mark.timeout(1800)
Homes = Callable[[str], AgentHome]


@pytest.mark.parametrize(
    "name",
    every(
        "started",
        "working",
        "turn finished",
        "permission asked",
        "prompt refused",
        "refused with Esc",
        "answered from the terminal",
        "answered from the API",
        "long silent tool",
        "background work",
        "question",
        "interrupted with Esc",
        "interrupted with Ctrl-C",
        "API error",
        "usage limit",
        "cleared",
    ),
)
def test_every_event_is_told_with_its_reason(name: str, ground: Ground, agent_home: Homes, model: ModelServer) -> None:
    with everywhere(ground, agent_home(name)) as told, screen_shown(told.driven):
        walk = Walk(told, model, WAYS[name])
        for step in STEPS:
            step(walk)
        told.driven.end()
        told.ends("stopped", **WAYS[name].term)
