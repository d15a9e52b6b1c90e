"""Real agents over ACP: prompts, permissions, interruptions, errors, and conversations that come back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from hitchpost.acp import chat
from hitchpost.agents.catalog import load, table
from tests.agents.driving import LONG_S, Driven, SilentTool
from tests.agents.everywhere import Everywhere, everywhere
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
    joins = leaves_tools = acp_home.name == "goose-acp"
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
        model.release("stop")
        told.becomes("waiting")
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


def descendants(pid: int) -> list[int]:
    return [pid for child in children(pid) for pid in (child, *descendants(child))]


def children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]
