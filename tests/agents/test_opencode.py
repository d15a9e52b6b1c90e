"""What only opencode does: sub-agents that go on in the background."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.agents.driving import LONG_S
from tests.agents.everywhere import everywhere
from tests.agents.homes import AgentHome
from tests.agents.modelserver import ModelServer
from tests.agents.steps import screen_shown
from tests.ground import Ground
from tests.support import eventually

pytestmark = [pytest.mark.timeout(1800), pytest.mark.all_agents]


@pytest.mark.proves("background work")
def test_a_sub_agent_in_the_background_is_told_beside_the_end_of_the_turn(
    ground: Ground, agent_home: Callable[[str], AgentHome], model: ModelServer
) -> None:
    home = agent_home("opencode")
    home = replace(home, env={**home.env, "OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS": "true"})
    task = {
        "description": "look around",
        "prompt": "side [[hold side]] [[say seen]]",
        "subagent_type": "general",
        "background": True,
    }
    with everywhere(ground, home) as told, screen_shown(told.driven):
        told.becomes("waiting")
        told.send(f"[[call task|{json.dumps(task)}]] [[say begun]]")
        eventually(lambda: model.waiting("side"), LONG_S)
        told.becomes("done", background=1, message="begun")
        model.release("side")
        told.becomes("done", background=0)  # it was told the result, and has answered
        assert "seen" in model.history()[-1]
        told.driven.end()
