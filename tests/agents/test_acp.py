"""Real agents over ACP: prompts, permissions, interruptions, errors, and conversations that come back."""

from __future__ import annotations

import json
import os
import re
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
from tests.agents.everywhere import hub_with, start_with
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


@pytest.mark.ids("D-3", "D-8", "D-9")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("acp_home", ADAPTERS, indirect=True)
def test_a_conversation_over_acp_comes_back(ground: Ground, acp_home: AgentHome, model: ModelServer) -> None:
    ground.configure('on_shutdown = "suspend"')
    with hub_with(ground, acp_home) as hub:
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

        # the hub is killed in the middle of a turn, which goes on
        dev.send("third [[hold more]] [[say back]]")
        model_waits(model, "more")
        hub.kill()
        start_with(hub, acp_home)
        assert hub.ask("GET", "/api/sessions/dev")["attention"] == "working"
        model.release("more")
        assert dev.becomes("done")["message"] == "back"

        # the hub leaves in the middle of a turn, and takes the agent along
        dev.send("fourth [[hold end]]")
        model_waits(model, "end")
        assert hub.stop() == 0
        model.release("end")
        assert dev.truth.ended(2) == "stopped"
        assert dev.shown()["record"] == "suspended"
        assert "hitch resume dev" in dev.refused("not yet")
        ground.configure("reap_idle_minutes = 0.03\nreap_every_minutes = 0.002")
        assert "goes on with its conversation" in dev.resume()

        # it is reaped, and the next prompt starts it again
        dev.becomes("waiting")
        start_with(hub, acp_home)
        assert dev.truth.ended(3) == "stopped"
        hub.stop()
        ground.configure("")
        start_with(hub, acp_home)
        receipt = hub.ask("POST", "/api/sessions/dev/prompt", {"text": "fifth [[say once more]]"}, timeout_s=LONG_S)
        assert (receipt["started"], receipt["proof"]) == (True, "session/prompt")
        dev.run_number = 4
        assert dev.becomes("done")["message"] == "once more"
        assert said_to(model) == ["first", "second", "third", "fourth", "fifth"]
        assert sum(prompt.text.startswith("first") for prompt in model.prompts()) == 1
        notes = [text for kind, text in said(dev) if kind == "notice"]
        assert len(notes) == 3
        assert all(note.startswith("it goes on with its conversation (session/") for note in notes)
        dev.end()
        assert dev.shown()["state"] == "stopped"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("acp_home", ADAPTERS, indirect=True)
def test_a_session_is_handed_over_between_acp_and_the_terminal(
    ground: Ground, acp_home: AgentHome, model: ModelServer
) -> None:
    name, other = acp_home.name, acp_home.name.removesuffix("-acp")
    dev = Driven.begin(ground, acp_home, "--name", "dev", "--prompt", "first [[say hello]]")
    dev.becomes("done")
    dev.end()
    if load(name).conversations != other:
        assert "cannot go on with a conversation" in dev.hitch("resume", "dev", "--agent", other, check=4).err
        return
    for agent, word in ((other, "second"), (name, "third")):
        dev.run_number += 1
        told = dev.hitch("resume", "dev", "--agent", agent)
        assert f"handed over from {load(name if agent == other else other).title} to {load(agent).title}" in told.err
        assert "the same conversation" in told.out
        dev.becomes("waiting")
        assert dev.shown()["agent"] == agent
        dev.send(f"{word} [[say here]]")
        dev.becomes("done")
        dev.end()
    assert said_to(model) == ["first", "second", "third"]
    assert sum(prompt.text.startswith("first") for prompt in model.prompts()) == 1


def said_to(model: ModelServer) -> list[str]:
    """The first word of each prompt that the model was told last, with all that came before it."""
    return re.findall(r"\b(first|second|third|fourth|fifth) \[\[", "\n".join(model.history()))


def children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]
