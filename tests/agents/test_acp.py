"""Real agents over ACP: prompts, permissions, interruptions, errors, and conversations that come back."""

from __future__ import annotations

import json
import os
import signal
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from hitchpost.acp import chat
from hitchpost.agents.catalog import load
from hitchpost.errors import Refused
from hitchpost.ops.sessions.prompt import prompt
from tests.acp.pictures import png
from tests.agents.driving import LONG_S, Driven
from tests.agents.homes import AgentHome
from tests.agents.modelserver import ModelServer
from tests.agents.test_claude import model_waits
from tests.ground import Ground
from tests.support import eventually

ADAPTERS = [pytest.param(name, marks=pytest.mark.all_agents) for name in ("opencode", "qwen", "copilot")]

TAKE_IMAGES = ("opencode-acp",)


@pytest.fixture
def acp_home(agent_home: Callable[[str], AgentHome], request: pytest.FixtureRequest) -> AgentHome:
    home = agent_home(request.param)
    return replace(home, name=f"{home.name}-acp")


def said(driven: Driven) -> list[tuple[str, str]]:
    """What the chat has, with the parts of each message put together."""
    found: list[tuple[str, str]] = []
    for line in chat.read(str(driven.truth.folder))[0]:
        kind, text = line["type"], str(line.get("text") or line.get("state") or "")
        if found and found[-1][0] == kind == "agent":
            text = found.pop()[1] + text
        found.append((kind, text))
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("acp_home", ADAPTERS, indirect=True)
def test_a_conversation_over_acp(ground: Ground, acp_home: AgentHome, model: ModelServer) -> None:
    dev = Driven.begin(ground, acp_home, "--name", "dev")
    dev.becomes("waiting")

    # a turn, and its answer whole
    receipt = dev.send("one [[hold think]] [[say first\nsecond line]]")
    assert receipt["proof"] == "session/prompt"
    model_waits(model, "think")
    assert dev.shown()["attention"] == "working"
    model.release("think")
    assert dev.becomes("done")["message"] == "first"
    assert said(dev)[-2:] == [("agent", "first\nsecond line"), ("turn", "done")]
    if load(acp_home.name).tells_usage:
        eventually(lambda: dev.hitch("usage", "dev", "--json").json()["total"]["input"] == 100, what="what it used")

    # an image reaches the model where the agent takes one, and is refused elsewhere
    lines = chat.read(str(dev.truth.folder))[0]
    (takes_images,) = (line["images"] for line in lines if line["type"] == "begun")
    assert takes_images or acp_home.name not in TAKE_IMAGES
    picture = png(190, 60, 60)
    give = partial(prompt, str(ground.home), "dev", "[[say seen]]", actor="test", caller=os.environ, images=(picture,))
    if takes_images:
        assert give().receipt.proof == "session/prompt"
        eventually(lambda: dev.becomes("done")["message"] == "seen", LONG_S)
        assert b64encode(picture).decode() in json.dumps(model.requests()[-1].body)
    else:
        with pytest.raises(Refused, match="takes no images"):
            give()

    # a permission: allowed, and refused
    for choice, is_made in (("yes", True), ("no", False)):
        dev.send(f"[[bash touch {choice}]]")
        asked = dev.asks()
        assert f"touch {choice}" in asked["message"]
        assert {"yes", "no"} <= set(asked["options"])
        assert "waiting for a permission" in dev.refused("do not say this")
        dev.answer(choice)
        dev.becomes("done")
        assert (acp_home.place / choice).exists() is is_made
    assert "nothing is asked" in dev.answer("yes", check=4).err

    # interrupted while it works, and while it asks
    dev.send("wait [[hold stop]]")
    model_waits(model, "stop")
    dev.keys(b"\x03")
    model.release("stop")
    dev.becomes("waiting")
    dev.send("[[bash touch never]]")
    dev.asks()
    dev.keys(b"\x03")
    dev.becomes("waiting")
    assert not (acp_home.place / "never").exists()

    # an error of the API is no end of a turn
    dev.send("[[error 400 out of order]]")
    assert "out of order" in dev.becomes("error")["message"]

    # what a person types in the terminal is a prompt, too
    dev.keys(b"[[say typed]]\r")
    eventually(lambda: dev.becomes("done")["message"] == "typed", LONG_S)
    dev.end()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("acp_home", ADAPTERS, indirect=True)
def test_a_conversation_over_acp_comes_back(ground: Ground, acp_home: AgentHome, model: ModelServer) -> None:
    dev = Driven.begin(ground, acp_home, "--name", "dev", "--prompt", "first [[say hello]]")
    dev.becomes("done")

    # killed in the middle of a turn: the agent, with all that it has started
    dev.send("second [[hold think]]")
    model_waits(model, "think")
    adapter = children(dev.truth.agent_pid())
    assert adapter
    os.kill(dev.truth.agent_pid(), signal.SIGKILL)
    assert dev.truth.ended() == "failed"
    eventually(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in adapter), what="the end of the adapter")
    model.release("think")
    assert "goes on with its conversation" in dev.resume()
    dev.becomes("waiting")
    dev.send("third [[say back]]")
    dev.becomes("done")
    whole = [
        request.conversation.prompts for request in model.requests() if "third" in request.conversation.prompts[-1]
    ]
    assert "first [[say hello]]" in "".join(whole[-1])
    notes = [text for kind, text in said(dev) if kind == "notice"]
    assert len(notes) == 1
    assert notes[0].startswith("it goes on with its conversation (session/")
    dev.end()
    assert dev.shown()["state"] == "stopped"


def children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]
