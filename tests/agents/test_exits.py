"""How each real agent ends, told exactly: by its own command, by a key, by a signal. No tool outlives it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.agents.driving import SilentTool
from tests.agents.everywhere import everywhere
from tests.agents.homes import AgentHome
from tests.agents.modelserver import ModelServer
from tests.agents.steps import Walk, begin_tool, screen_shown
from tests.agents.ways import WAYS, every
from tests.ground import Ground

pytestmark = pytest.mark.timeout(1800)
Homes = Callable[[str], AgentHome]
KILLED: dict[str, Any] = {"signal": "SIGKILL"}


@pytest.mark.parametrize("name", every("exit: quit", "exit: Ctrl-C", "exit: Ctrl-D"))
def test_a_person_ends_it_at_its_prompt(name: str, ground: Ground, agent_home: Homes, model: ModelServer) -> None:
    with everywhere(ground, agent_home(name)) as told, screen_shown(told.driven):
        walk = Walk(told, model, WAYS[name])
        for number, keys in enumerate(walk.ways.quits.values()):
            if number:
                told.driven.restart()
            told.becomes("waiting")
            walk.settles()
            walk.press(*keys)
            walk.press_until_ended(keys[-1])
            told.ends("completed", code=0)


@pytest.mark.parametrize("name", every("exit: TERM", "exit: HUP", "exit: KILL", "no tool left"))
def test_a_signal_ends_it_while_a_tool_runs(name: str, ground: Ground, agent_home: Homes, model: ModelServer) -> None:
    with everywhere(ground, agent_home(name)) as told, screen_shown(told.driven):
        walk = Walk(told, model, WAYS[name])
        ends = ((signal.SIGTERM, walk.ways.term), (signal.SIGKILL, KILLED), (signal.SIGHUP, walk.ways.hup))
        for sent, end in ends:
            if sent is not signal.SIGTERM:
                told.driven.restart()
            told.becomes("waiting")
            walk.settles()
            if "code" in end:  # one that ends by itself may leave a tool behind, which is told as a survivor
                told.signals(sent)
                told.ends("completed" if end.get("code") == 0 else "failed", **end)
                continue
            tool = SilentTool(walk.place, f"silent{sent:d}")
            begin_tool(walk, tool)
            told.signals(sent)
            told.ends("completed" if end.get("code") == 0 else "failed", **end)
            assert not tool.runs
            tool.end()
