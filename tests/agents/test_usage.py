"""Real agents: what they have used is what the model's own server counted, and answers come back whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.agents.driving import LONG_S, Driven
from tests.agents.homes import AgentHome
from tests.agents.modelserver import ModelServer
from tests.ground import Ground, Truth
from tests.support import eventually

EACH_IN, EACH_OUT = 100, 20
"""What the scripted model says of each of its answers."""


def used(driven: Driven, *words: str) -> dict[str, Any]:
    total: dict[str, Any] = driven.hitch("usage", *words, "--json").json()["total"]
    return total


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "tool", "extra"),
    [("claude", "bash", ()), ("codex", "ask", ("-s", "workspace-write", "-a", "on-request"))],
    ids=["claude", "codex"],
)
def test_usage_is_what_the_model_counted_and_survives_its_session(
    ground: Ground,
    agent_home: Callable[[str], AgentHome],
    model: ModelServer,
    name: str,
    tool: str,
    extra: tuple[str, ...],
) -> None:
    home = agent_home(name)
    long = "first\nsecond " + "word " * 500 + "last"
    words = ("run", name, "--name", "dev", "--workspace", str(home.place), "--wait", "--json", "--timeout", "240")
    prompt = ("--prompt", f"[[say {long}]]")
    done = ground.hitch(*words, *prompt, "--", *home.argv, *extra, env=home.env, timeout_s=300).json()
    assert (done["outcome"], done["answer"].split()) == ("finished", long.split())
    assert (done["usage"]["input"], done["usage"]["output"]) == (EACH_IN, EACH_OUT)

    dev = Driven(ground, home, Truth(ground.home, done["session"]["id"]))
    # a turn of two answers: one that calls a tool, and one after it
    dev.send(f"[[{tool} touch made]] [[say done]]")
    dev.asks()
    dev.answer("yes")
    dev.becomes("done")
    answers = len(model.requests())
    eventually(lambda: used(dev, "dev")["input"] == EACH_IN * answers, LONG_S, what=f"{answers} answers")
    assert used(dev, "dev")["output"] == EACH_OUT * answers
    by_agent = dev.hitch("usage", "--by", "agent", "--json").json()["sums"]
    assert [(one["key"], one["turns"]) for one in by_agent] == [(name, 2)]

    # killed in the middle, it comes back with its conversation: what went before is not counted again
    dev.kill()
    dev.resume()
    dev.becomes("waiting")
    dev.send("[[say third]]")
    dev.becomes("done")
    answers = len(model.requests())
    eventually(lambda: used(dev, "dev")["input"] == EACH_IN * answers, LONG_S, what=f"{answers} answers in all")
    dev.end()
    dev.hitch("rm", "--force", "dev")
    assert used(dev)["input"] == EACH_IN * answers
