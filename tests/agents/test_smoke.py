"""Each real agent, without a terminal: one turn with the scripted model, in which it runs a command."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

import pytest

from tests.agents.homes import AgentHome
from tests.agents.installed import EVERY
from tests.agents.modelserver import ModelServer

HEADLESS = {
    "claude": ("claude", "-p", "{prompt}", "--allowedTools=Bash"),
    "codex": ("codex", "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "{prompt}"),
    "gemini": ("gemini", "--yolo", "--prompt", "{prompt}"),
    "opencode": ("opencode", "run", "--auto", "{prompt}"),
    "qwen": ("qwen", "--yolo", "--prompt", "{prompt}"),
    "copilot": ("copilot", "--allow-all-tools", "-p", "{prompt}"),
    "goose": ("goose", "run", "-t", "{prompt}"),
    "aider": ("aider", "--yes-always", "--message", "{prompt}"),
}


def headless(agent: str, prompt: str) -> list[str]:
    # opencode puts quotes around a word that has spaces in it, and joins the words.
    told = prompt.split(" ") if agent == "opencode" else [prompt]
    return [word for place in HEADLESS[agent] for word in (told if place == "{prompt}" else [place])]


def told(home: AgentHome, argv: Sequence[str]) -> str:
    done = subprocess.run(
        argv,
        cwd=home.place,
        env={**home.env, "GOOSE_MODE": "auto"} if home.name == "goose" else home.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", EVERY)
def test_a_real_agent_does_a_turn_with_the_scripted_model(
    name: str, model: ModelServer, agent_home: Callable[[str], AgentHome]
):
    home = agent_home(name)
    deed = "[[write made|by hand]]" if home.name == "aider" else "[[bash printf 'by hand' > made]]"
    prompt = f"Please {deed} and [[say all is well]]"
    assert "all is well" in told(home, headless(home.name, prompt))
    assert (home.place / "made").read_text().rstrip("\n") == "by hand"
    assert model.history() == [prompt]
    assert [seen.text for seen in model.prompts()] == [prompt]


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("claude", ("claude", "--continue", "-p")),
        ("codex", ("codex", "exec", "resume", "--last", "--skip-git-repo-check")),
    ],
)
def test_the_model_sees_the_history_of_a_resumed_conversation(
    name: str, again: Sequence[str], model: ModelServer, agent_home: Callable[[str], AgentHome]
):
    home = agent_home(name)
    told(home, headless(name, "first [[bash true]]"))
    told(home, [*again, "second [[say here]]"])
    assert model.history() == ["first [[bash true]]", "second [[say here]]"]
    assert [seen.text for seen in model.prompts()] == ["first [[bash true]]", "second [[say here]]"]
    assert len({request.session for request in model.requests()}) == 1
