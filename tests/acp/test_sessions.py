"""A session over ACP, as the command line sees it: with a scripted agent on real pipes, below a real keeper."""

from __future__ import annotations

import os
import signal
from typing import Any

from hitchpost import wire
from hitchpost.acp import chat
from hitchpost.runtimes.link import Link
from tests.acp.sessions import begin
from tests.ground import Ground, Truth, alive
from tests.hubs import HubProcess
from tests.support import eventually


def becomes(ground: Ground, dev: Truth, attention: str) -> dict[str, Any]:
    def fits() -> dict[str, Any] | None:
        shown = ground.ps(dev)
        return shown if shown["attention"] == attention else None

    return eventually(fits, what=attention)


def press(dev: Truth, keys: bytes, run: int = 1) -> None:
    with Link.connect(str(dev.run(run)), role="attach", cols=80, rows=24) as link:
        link.send(wire.INPUT, keys)


def last_said(dev: Truth) -> str:
    lines = chat.read(str(dev.folder))[0]
    start = max(at for at, line in enumerate(lines) if line["type"] == "user")
    return "".join(line["text"] for line in lines[start + 1 :] if line["type"] == "agent")


def test_a_turn_a_permission_an_interruption_and_an_error(ground: Ground) -> None:
    dev = begin(ground)
    done = ground.hitch("send", "--json", "--wait", "dev", "hello").json()
    assert (done["proof"], done["session"]["attention"]) == ("session/prompt", "done")
    assert "**bold**" in last_said(dev)
    shown = ground.hitch("logs", "dev").out
    assert "A **bold** word" in shown
    assert shown.count("› hello\n") == 1

    for choice, outcome in (("yes", '"optionId": "a"'), ("no", '"optionId": "r"')):
        ground.hitch("send", "dev", "ask")
        report = becomes(ground, dev, "blocked")["report"]
        assert (report["kind"], report["message"], report["options"]) == ("permission", "touch asked", ["yes", "no"])
        assert "waiting for a permission: touch asked" in ground.hitch("send", "dev", "no", check=4).err
        ground.hitch("answer", "dev", choice)
        becomes(ground, dev, "done")
        assert outcome in last_said(dev)
    ground.hitch("answer", "dev", "yes", check=4)

    # in the terminal: a line is a prompt, or an answer; Ctrl-C interrupts
    press(dev, b"ask me\r")
    becomes(ground, dev, "blocked")
    press(dev, b"2\r")
    becomes(ground, dev, "done")
    assert ground.hitch("logs", "dev").out.count("› ask me\n") == 1, "as it was typed, and not once more"
    assert '"optionId": "r"' in last_said(dev)
    press(dev, b"wait\r")
    eventually(lambda: last_said(dev) == "I am waiting", what="the turn")
    waiting = ground.hitch("send", "dev", "this waits, and is forgotten").out
    assert waiting == "waits for dev, which gets it when it is done\n"
    press(dev, b"\x03")
    becomes(ground, dev, "waiting")

    ground.hitch("send", "dev", "fail")
    assert becomes(ground, dev, "error")["report"]["message"] == "Internal error: out of order"
    turns = ground.hitch("usage", "dev", "--json").json()["total"]
    assert (turns["input"] % 7, turns["output"] % 3) == (0, 0)
    assert turns["turns"] >= 3
    ground.hitch("stop", "dev")
    assert ground.ps(dev)["label"] == "stopped"


def test_what_an_agent_says_that_it_costs_is_counted_once(ground: Ground, hub: HubProcess) -> None:
    """It tells a sum, which may go on in its next process, or begin anew."""
    begin(ground)
    turns: list[float] = []

    def paid(*words: str) -> float | None:
        """What all turns have cost until now."""
        ground.hitch("send", "--wait", "dev", " ".join(("pay", *words)))

        def counted() -> dict[str, Any] | None:
            total: dict[str, Any] = ground.hitch("usage", "dev", "--json").json()["total"]
            return total if total["input"] == 7 * (len(turns) + 1) else None

        turns.append(eventually(counted, what="what it used")["cost_usd"])
        return turns[-1]

    assert [paid("9", "EUR"), paid("NaN"), paid("-1")] == [None] * 3
    assert [paid("0.25"), paid("0.75"), paid("0.75"), paid("9", "EUR")] == [0.25, 0.75, 0.75, 0.75]
    ground.hitch("stop", "dev")
    ground.hitch("resume", "dev")
    assert [paid("0.875"), paid("0.125")] == [0.875, 1.0]
    said = ground.hitch("usage", "--by", "session", "--json").json()
    assert [(one["key"], one["turns"], one["cost_usd"]) for one in said["sums"]] == [("dev", 9, 1.0)]
    assert hub.ask("GET", "/api/usage?session=dev")["total"]["cost_usd"] == 1.0
    assert "$1.00" in ground.hitch("usage", "dev").out
    ground.hitch("stop", "dev")
    words = ("run", "scripted-acp", "--name", "two", "--wait", "--json", "--prompt", "pay 0.5")
    assert ground.hitch(*words).json()["usage"]["cost_usd"] == 0.5
    ground.hitch("stop", "two")


def test_the_conversation_goes_on_after_a_kill_and_nothing_of_the_agent_is_left(ground: Ground) -> None:
    dev = begin(ground)
    ground.hitch("send", "--wait", "dev", "the word is hay")
    client = dev.agent_pid()
    with open(f"/proc/{client}/task/{client}/children") as file:
        (agent,) = (int(word) for word in file.read().split())
    os.kill(client, signal.SIGKILL)
    assert dev.ended() == "failed"
    eventually(lambda: not alive(agent), what="the end of the agent")
    assert "goes on with its conversation" in ground.hitch("resume", "dev").err
    ground.hitch("send", "--wait", "dev", "remember")
    assert last_said(dev) == "the word is hay "
    assert [line["text"] for line in chat.read(str(dev.folder))[0] if line["type"] == "notice"] == [
        "it goes on with its conversation (session/resume)"
    ]
    # Ctrl-D ends it, and what a restart begins is another conversation
    press(dev, b"\x04", run=2)
    assert dev.ended(2) == "completed"
    ground.hitch("restart", "dev")
    ground.hitch("send", "--wait", "dev", "remember")
    assert last_said(dev) == ""
    ground.hitch("stop", "dev")


def test_the_runtime_acp_is_the_agent_that_speaks_it(ground: Ground) -> None:
    ground.hitch("stop", begin(ground).id)
    dev = Truth(ground.home, ground.hitch("run", "scripted", "--runtime", "acp", "--json").json()["id"])
    assert (ground.ps(dev)["agent"], ground.ps(dev)["runtime"]) == ("scripted-acp", "local")
    ground.hitch("stop", dev.id)
    for words in (("aider",), ("--", "true")):
        refused = ground.hitch("run", "--runtime", "acp", *words, check=2).err
        known = "claude, codex, copilot, gemini, goose, opencode, qwen, scripted"
        assert f"expected an agent that speaks ACP: {known}" in refused


def test_an_agent_that_ends_ends_its_session_with_its_code(ground: Ground) -> None:
    dev = begin(ground)
    with open(f"/proc/{dev.agent_pid()}/task/{dev.agent_pid()}/children") as file:
        agent = int(file.read())
    ground.hitch("send", "dev", "wait")
    ground.hitch("send", "dev", "this is not sent")
    os.kill(agent, signal.SIGTERM)
    assert dev.ended() == "failed"
    assert dev.exit()["signal"] == "SIGTERM"
    told = [(line["type"], line["text"]) for line in chat.read(str(dev.folder))[0] if "prompt" in line]
    assert told == [("user", "wait"), ("queued", "this is not sent"), ("not_sent", "this is not sent")]
