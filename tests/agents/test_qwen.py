"""The real Qwen Code, watched by its title, hooks and screen: what is said of it, prompts, answers, conversations."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.agents.driving import LONG_S, Driven
from tests.agents.homes import AgentHome
from tests.agents.modelserver import ModelServer
from tests.ground import Ground
from tests.support import eventually

pytestmark = [pytest.mark.all_agents, pytest.mark.timeout(300)]

ESC, CTRL_C, CTRL_U = b"\x1b", b"\x03", b"\x15"
Homes = Callable[[str], AgentHome]


@pytest.fixture
def qwen(ground: Ground, agent_home: Homes) -> Driven:
    driven = Driven.begin(ground, agent_home("qwen"))
    driven.becomes("waiting")
    return driven


def sent(qwen: Driven, text: str) -> bool:
    return qwen.hitch("send", qwen.truth.id, text, check=False).code == 0


def test_every_state_is_told_with_its_reason(qwen: Driven, model: ModelServer) -> None:
    place: Path = qwen.home.place

    # a turn: the model thinks, answers, and is done
    assert qwen.send("one [[hold think]] [[say first line]]")["proof"] == "UserPromptSubmit"
    eventually(lambda: model.waiting("think"), LONG_S)
    qwen.becomes("working")
    model.release("think")
    qwen.becomes("done")

    # a permission: refused with Esc in the terminal, then asked again and answered from outside
    qwen.send("two [[bash touch refused]]")
    report = qwen.asks()
    assert (report["message"], report["options"]) == ("run_shell_command: touch refused", ["yes", "no"])
    assert "waiting for a permission" in qwen.refused("do not type this")
    qwen.keys(ESC)
    qwen.becomes("waiting")
    assert "nothing is asked" in qwen.answer("yes", check=4).err
    qwen.send("three [[bash touch allowed]]")
    qwen.asks()
    assert "nothing is asked" in qwen.answer("yes", "--request", "0", check=4).err
    qwen.answer("yes")
    qwen.becomes("done")
    qwen.answer("yes", check=4)
    qwen.send("four [[bash touch denied]]")
    qwen.asks()
    qwen.answer("no")
    qwen.becomes("waiting")
    made = [(place / name).exists() for name in ("refused", "allowed", "denied")]
    assert made == [False, True, False]

    # a tool that works in silence
    qwen.send("[[bash until test -e enough; do sleep 0.2; done]]")
    qwen.asks()
    qwen.answer("yes")
    qwen.becomes("working")
    (place / "enough").touch()
    qwen.becomes("done")

    # interrupted while it works, with Esc and with Ctrl-C: nothing is added to a text that is back in its prompt
    for hold, key in (("stop", ESC), ("halt", CTRL_C)):
        qwen.send(f"wait [[hold {hold}]]")
        eventually(partial(model.waiting, hold), LONG_S)
        qwen.becomes("working")
        qwen.keys(key)
        qwen.becomes("waiting")
        model.release(hold)
        qwen.keys(CTRL_U)  # it may have put the text back into its prompt: then the next is refused
        eventually(partial(sent, qwen, f"on {hold}"), LONG_S)
        qwen.becomes("done")
        assert model.history()[-1] == f"on {hold}"

    # an error of the API, with its text, until the next turn ends well
    qwen.send("[[error 400 out of order]]")
    assert "out of order" in str(qwen.becomes("error")["message"])
    qwen.send("again [[say well]]")
    qwen.becomes("done")

    told = qwen.told()
    for state in (("working", ""), ("blocked", "permission"), ("done", ""), ("error", ""), ("idle", "")):
        assert state in told
    qwen.end()
    assert qwen.shown()["label"] == "stopped"


def test_conversations_come_back_and_prompts_arrive_as_they_are(qwen: Driven, model: ModelServer) -> None:
    assert qwen.shown()["supports_resume"] is False
    conversation = qwen.shown()["conversation"]
    assert "as a command" in qwen.refused("/nothing")
    texts = ("two\nlines\n\nand a gap", "☃ naïve 漢字", "# heading", "!touch shell", "ends with \\")
    for text in (*texts, "\n".join(f"line {number} of a long prompt" for number in range(400))):
        assert qwen.send(text)["proof"] == "UserPromptSubmit"
        qwen.becomes("done")
        assert model.history()[-1].strip() == text
    assert not (qwen.home.place / "shell").exists()
    earlier = model.history()

    # killed in the middle of a stream, then at a permission: the same conversation goes on
    qwen.send("third [[hold stream]]")
    eventually(lambda: model.waiting("stream"), LONG_S)
    qwen.kill()
    assert qwen.shown()["supports_resume"] is True
    assert "goes on with its conversation" in qwen.resume()
    model.release("stream")
    qwen.becomes("waiting")
    assert qwen.shown()["conversation"] == conversation
    qwen.send("fourth [[bash touch never]]")
    qwen.asks()
    qwen.kill()
    qwen.resume()
    qwen.becomes("waiting")
    qwen.send("fifth [[say here]]")
    qwen.becomes("done")
    assert [text.split()[0] for text in model.history()[len(earlier) :]] == ["third", "fourth", "fifth"]
    assert not (qwen.home.place / "never").exists()

    # a restart begins anew, and sends nothing by itself
    assert "a new conversation" in qwen.restart()
    qwen.becomes("waiting")
    assert qwen.shown()["conversation"] not in (None, conversation)
    qwen.send("alone")
    qwen.becomes("done")
    assert model.history() == ["alone"]
    qwen.end()


def test_a_start_dialog_is_told_and_never_answered_by_accident(ground: Ground, agent_home: Homes) -> None:
    home = agent_home("qwen")
    settings = home.home / ".qwen/settings.json"
    chosen = json.loads(settings.read_text())
    chosen["security"]["folderTrust"]["enabled"] = True
    settings.write_text(json.dumps(chosen))
    qwen = Driven.begin(ground, home)
    assert "trust this folder" in qwen.becomes("blocked", "dialog")["message"]
    assert "trust this folder" in qwen.refused("this would press Enter")
    assert qwen.shown()["state"] == "running"
    qwen.end()
    assert not (home.home / ".qwen/trustedFolders.json").exists()
