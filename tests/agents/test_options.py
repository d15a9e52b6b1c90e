"""``hitch run --model --permission-mode`` with real agents: each takes them by its own arguments, and they count."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from tests.agents.driving import Driven
from tests.agents.homes import AgentHome
from tests.agents.installed import EVERY
from tests.agents.modelserver import ModelServer
from tests.agents.steps import screen_of, screen_shown
from tests.ground import Ground

pytestmark = pytest.mark.timeout(600)
Homes = Callable[[str], AgentHome]


@dataclass(frozen=True, slots=True)
class Chosen:
    """``model`` comes to the model's server as ``known_as``.

    In ``mode``, nobody is asked about ``deed``, which is ``done`` or not, and the screen ``shows`` a text.
    """

    model: str
    mode: str
    known_as: str = ""
    deed: str = "[[bash touch made]]"
    done: bool = True
    shows: str = ""


CHOSEN = {
    "claude": Chosen("claude-opus-4-5", "acceptEdits", deed="[[write made|x]]"),
    "codex": Chosen("gpt-5.4", "never", deed="[[ask touch made]]", done=False),
    "gemini": Chosen("gemini-2.5-flash", "yolo"),
    "opencode": Chosen("scripted/other", "unasked", known_as="other"),
    "qwen": Chosen("other", "yolo"),
    "copilot": Chosen("other", "plan", deed="[[say well]]", done=False, shows=" Plan · "),
    "aider": Chosen("openai/other", "ask", known_as="other", deed="[[write made|x]]", done=False, shows="ask>"),
}


@pytest.mark.parametrize("name", EVERY)
def test_a_session_chooses_its_model_and_its_permission_mode(
    name: str, ground: Ground, agent_home: Homes, model: ModelServer
) -> None:
    home = agent_home(name)
    if home.name not in CHOSEN:
        said = ground.hitch("run", home.name, "--model", "other", env=home.env, check=2).err
        assert "has no option for the model" in said
        return
    chosen = CHOSEN[home.name]
    if home.name == "opencode":
        settings = home.home / ".config/opencode/opencode.json"
        found = json.loads(settings.read_text())
        models = found["provider"]["scripted"]["models"]
        models["other"] = models["scripted"]
        allowed = {"mode": "primary", "permission": {"bash": "allow", "edit": "allow"}}
        settings.write_text(json.dumps({**found, "agent": {"unasked": allowed}}))
    agent = Driven.begin(ground, home, "--model", chosen.model, "--permission-mode", chosen.mode)
    with screen_shown(agent):
        agent.becomes("waiting")
        agent.send(f"one {chosen.deed}")
        agent.becomes("done")
        assert not [state for state, _ in agent.told() if state == "blocked"]
        assert (home.place / "made").exists() == chosen.done
        assert chosen.shows in screen_of(agent)
        known_as = chosen.known_as or chosen.model
        newest = model.requests()[-1]
        assert known_as in (newest.body.get("model"), newest.path.rpartition("models/")[2].partition(":")[0])
        agent.end()


def test_claude_code_takes_its_permission_mode_from_a_variable(
    ground: Ground, agent_home: Homes, model: ModelServer
) -> None:
    home = agent_home("claude")
    home = replace(home, env={**home.env, "CLAUDE_PERMISSION_MODE": "acceptEdits"})
    claude = Driven.begin(ground, home)
    claude.becomes("waiting")
    claude.send("one [[write made|x]]")
    claude.becomes("done")
    assert (home.place / "made").exists()
    claude.end()
