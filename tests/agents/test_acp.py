"""Real agents over ACP: prompts, permissions, interruptions, errors, and conversations that come back."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from base64 import b64encode
from collections.abc import Callable
from functools import partial

import pytest

from hitchpost.acp import chat
from hitchpost.agents.catalog import load, table
from hitchpost.errors import Refused
from hitchpost.ops.sessions.prompt import prompt
from tests.acp.pictures import png
from tests.agents.driving import LONG_S, Driven, SilentTool
from tests.agents.everywhere import Everywhere, everywhere, hub_with, start_with
from tests.agents.homes import AgentHome
from tests.agents.installed import EVERY_OVER_ACP, OVER_ACP
from tests.agents.modelserver import ModelServer
from tests.agents.test_claude import model_waits
from tests.ground import Ground
from tests.support import eventually

ADAPTERS = [
    pytest.param(name, marks=pytest.mark.all_agents)
    for name in ("opencode", "qwen", "copilot", "claude", "codex", "goose")
]
"""Those whose conversations come back."""
CTRL_C = b"\x03"

TAKE_IMAGES = ("opencode-acp",)
PICTURE = png(190, 60, 60)


@pytest.fixture
def acp_home(agent_home: Callable[[str], AgentHome], request: pytest.FixtureRequest) -> AgentHome:
    return agent_home(f"{request.param}{OVER_ACP}")


def said(driven: Driven) -> list[tuple[str, str]]:
    """What the chat has, with the parts of each message put together."""
    found: list[tuple[str, str]] = []
    for line in chat.read(str(driven.truth.folder))[0]:
        kind, text = line["type"], str(line.get("text") or line.get("state") or "")
        if found and found[-1][0] == kind == "agent":
            text = found.pop()[1] + text
        found.append((kind, text))
    return found


@pytest.mark.timeout(600)
@pytest.mark.proves("started", "working", "permission asked", "answered from the API", "answered from the terminal")
@pytest.mark.proves("interrupted with Ctrl-C", "interrupted at a permission", "interrupted in a tool")
@pytest.mark.proves("turn finished", "API error", "prompt refused", "exit: KILL", "after kill: mid-stream")
@pytest.mark.parametrize("acp_home", EVERY_OVER_ACP, indirect=True)
def test_a_conversation_over_acp(ground: Ground, acp_home: AgentHome, model: ModelServer) -> None:
    ways, deed = table(acp_home.name).get("acp", {}), "ask" if acp_home.name == "codex-acp" else "bash"
    joins, leaves_tools = acp_home.name == "goose-acp", acp_home.name in ("goose-acp", "codex-acp")
    hears_late = acp_home.name == "goose-acp"  # an interruption: only when the model says something
    waits_for_tools, comes_back = "refuses_first" in ways, "loses_loaded" not in ways
    with everywhere(ground, acp_home, "--name", "dev") as told:
        dev = told.driven
        told.becomes("waiting")

        # a turn, and its answer whole
        receipt = told.send("first [[hold think]] [[say hello\nsecond line]]")
        assert receipt["proof"] == "session/prompt"
        model_waits(model, "think")
        told.becomes("working")
        model.release("think")
        told.becomes("done", message="hello")
        assert said(dev)[-2:] == [("agent", "hello\nsecond line"), ("turn", "done")]
        if load(acp_home.name).tells_usage:
            eventually(lambda: dev.hitch("usage", "dev", "--json").json()["total"]["input"] == 100, what="what it used")

        # an image reaches the model where the agent takes one, and is refused elsewhere
        lines = chat.read(str(dev.truth.folder))[0]
        (takes_images,) = (line["images"] for line in lines if line["type"] == "begun")
        assert takes_images or acp_home.name not in TAKE_IMAGES
        told.since = time.time()
        give = partial(prompt, str(ground.home), "dev", "[[say seen]]", actor="test", caller=os.environ)
        if takes_images:
            assert give(images=(PICTURE,)).receipt.proof == "session/prompt"
            told.becomes("done")
            asked_for = "".join(json.dumps(request.body) for request in model.requests())
            # the others hand on what they take their model to read
            assert b64encode(PICTURE).decode() in asked_for or acp_home.name not in TAKE_IMAGES
        else:
            with pytest.raises(Refused, match="takes no images"):
                give(images=(PICTURE,))

        # a permission: allowed, and refused; what is typed in the terminal is a prompt, or an answer
        for choice, is_made in (("yes", True), ("no", False)):
            told.send(f"[[{deed} touch {choice}]]")
            asked = told.becomes("blocked", "permission", message=f"touch {choice}")
            assert {"yes", "no"} <= set(asked["options"])
            assert "waiting for a permission" in dev.refused("do not say this")
            told.answer(choice)
            told.becomes("done" if is_made else after_refusal(acp_home))
            assert (acp_home.place / choice).exists() is is_made
        assert "nothing is asked" in dev.answer("yes", check=4).err
        told.keys(f"[[{deed} touch typed]]\r".encode())
        asked = told.becomes("blocked", "permission", message="touch typed")
        told.keys(b"%d\r" % (asked["options"].index("yes") + 1))
        told.becomes("done")
        assert (acp_home.place / "typed").exists()

        # interrupted while the model is silent, while it asks, and in a tool: each time the next prompt is answered
        told.send("[[trickle 0.2]] [[hold stop]]")
        model_waits(model, "stop")
        told.keys(CTRL_C)
        if hears_late:
            model.release("stop")
        told.becomes("waiting")
        model.release("stop")
        is_answered(told, "well")
        told.send(f"[[{deed} touch never]]")
        told.becomes("blocked", "permission")
        told.keys(CTRL_C)
        told.becomes("waiting")
        assert not (acp_home.place / "never").exists()
        is_answered(told, "better", asks_again=joins)
        tool = SilentTool(acp_home.place, "silent")
        told.send(f"[[{deed} touch begun; {tool.command}]]")
        told.becomes("blocked", "permission")
        told.answer("yes")
        tool.begins()
        told.keys(CTRL_C)
        if waits_for_tools:
            tool.end()
        told.becomes("waiting")
        if not waits_for_tools:
            eventually(lambda: leaves_tools or not tool.runs, LONG_S, what="the end of the tool")
            tool.end()
        is_answered(told, "best", asks_again=joins)

        # killed in the middle of a turn: the agent, with all that it has started
        told.send("second [[hold more]]")
        model_waits(model, "more")
        adapter = descendants(dev.truth.agent_pid())
        assert adapter
        told.signals(signal.SIGKILL)
        told.ends("failed", signal="SIGKILL")
        eventually(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in adapter), what="the end of the adapter")
        model.release("more")
        before = dev.shown()
        assert before["supports_resume"] is comes_back
        told.since = time.time()
        assert ("goes on with its" if comes_back else "begins a new") in dev.resume()
        told.becomes("waiting")
        told.send("third [[say back]]")
        told.becomes("done", message="back")
        history = "\n".join(model.history())
        assert "third [[say back]]" in history
        assert ("first [[hold think]]" in history) is comes_back
        assert [text for kind, text in said(dev) if kind == "agent" and "hello" in text] == ["hello\nsecond line"]

        if not comes_back:
            kept = f".gemini/tmp/*/chats/session-*-{before['conversation'][:8]}.jsonl"
            assert len(list(acp_home.home.glob(kept))) == 1, "it stays for a terminal"

        # an error of the API is no end of a turn
        told.send("[[error 400 out of order]]")
        told.becomes("error", message="out of order")
        dev.end()


def is_answered(told: Everywhere, text: str, *, asks_again: bool = False) -> None:
    """``asks_again``: a prompt that got no answer comes again with this one, and so does its question."""
    told.send(f"[[say {text}]]")
    if asks_again:
        told.becomes("blocked", "permission")
        told.answer("no")
    told.becomes("done", message=text)


def after_refusal(home: AgentHome) -> str:
    """Codex ends its turn then; the others let the model go on."""
    return "waiting" if home.name == "codex-acp" else "done"


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
        receipt = dev.send("fifth [[say here]]", "--resume")
        assert (receipt["started"], receipt["proof"]) == (True, "session/prompt")
        dev.run_number = 3
        assert dev.becomes("done")["message"] == "here"

        # it is reaped, and the next prompt starts it again
        start_with(hub, acp_home)
        assert dev.truth.ended(3) == "stopped"
        hub.stop()
        ground.configure("")
        start_with(hub, acp_home)
        receipt = hub.ask("POST", "/api/sessions/dev/prompt", {"text": "sixth [[say once more]]"}, timeout_s=LONG_S)
        assert (receipt["started"], receipt["proof"]) == (True, "session/prompt")
        dev.run_number = 4
        assert dev.becomes("done")["message"] == "once more"
        assert said_to(model) == ["first", "second", "third", "fourth", "fifth", "sixth"]
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
    return re.findall(r"\b(first|second|third|fourth|fifth|sixth) \[\[", "\n".join(model.history()))


def descendants(pid: int) -> list[int]:
    return [pid for child in children(pid) for pid in (child, *descendants(child))]


def children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]
