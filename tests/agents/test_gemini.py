"""The real Gemini CLI, watched by its title and its screen: what is said of it, prompts, answers, conversations."""

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

ESC, CTRL_C = b"\x1b", b"\x03"
Homes = Callable[[str], AgentHome]


@pytest.fixture
def gemini(ground: Ground, agent_home: Homes) -> Driven:
    driven = Driven.begin(ground, agent_home("gemini"))
    driven.becomes("waiting")
    return driven


def test_every_state_is_told_with_its_reason(gemini: Driven, model: ModelServer) -> None:
    place: Path = gemini.home.place

    # a turn: the model thinks, answers, and is done
    assert gemini.send("one [[hold think]] [[say first line]]")["proof"] == "title: working"
    eventually(lambda: model.waiting("think"), LONG_S)
    gemini.becomes("working")
    model.release("think")
    gemini.becomes("done")

    # a permission: refused with Esc in the terminal, then asked again and answered from outside
    gemini.send("two [[bash touch refused]]")
    report = gemini.asks()
    assert (report["message"], report["options"]) == ("Shell touch refused", ["yes", "no"])
    assert "waiting for a permission" in gemini.refused("do not type this")
    gemini.keys(ESC)
    gemini.becomes("waiting")
    assert "nothing is asked" in gemini.answer("yes", check=4).err
    gemini.send("three [[bash touch allowed]]")
    gemini.asks()
    assert "nothing is asked" in gemini.answer("yes", "--request", "0", check=4).err
    gemini.answer("yes")
    gemini.becomes("done")
    gemini.answer("yes", check=4)
    gemini.send("four [[bash touch denied]]")
    gemini.asks()
    gemini.answer("no")
    gemini.becomes("waiting")
    made = [(place / name).exists() for name in ("refused", "allowed", "denied")]
    assert made == [False, True, False]

    # a tool that works in silence
    gemini.send("[[bash until test -e enough; do sleep 0.2; done]]")
    gemini.asks()
    gemini.answer("yes")
    gemini.becomes("working")
    (place / "enough").touch()
    gemini.becomes("done")

    # interrupted while it works, with Esc and with Ctrl-C
    for hold, key in (("stop", ESC), ("halt", CTRL_C)):
        gemini.send(f"wait [[hold {hold}]]")
        eventually(partial(model.waiting, hold), LONG_S)
        gemini.becomes("working")
        gemini.keys(key)
        gemini.becomes("waiting")
        model.release(hold)

    # an error of the API, with its text, until the next turn ends well
    gemini.send("[[error 400 out of order]]")
    assert "out of order" in str(gemini.becomes("error")["message"])
    gemini.send("again [[say well]]")
    gemini.becomes("done")

    # a limit: what is sent would press a key in its dialog
    gemini.send("[[usage-limit no more today]]")
    assert "Usage limit reached" in str(gemini.becomes("blocked", "limit")["message"])
    assert "usage limit" in gemini.refused("do not type this either")
    gemini.answer("stop")
    assert "quota" in str(gemini.becomes("error", "limit")["message"])

    told = gemini.told()
    for state in (("working", ""), ("blocked", "permission"), ("done", ""), ("error", ""), ("idle", "")):
        assert state in told
    gemini.end()
    assert gemini.shown()["label"] == "stopped"


def test_conversations_come_back_and_prompts_arrive_as_they_are(gemini: Driven, model: ModelServer) -> None:
    assert gemini.shown()["supports_resume"] is False
    conversation = gemini.shown()["conversation"]
    assert "as a command" in gemini.refused("/nothing")
    texts = ("two\nlines\n\nand a gap", "☃ naïve 漢字", "# heading", "!touch shell", "ends with \\")
    for text in (*texts, "\n".join(f"line {number} of a long prompt" for number in range(400))):
        assert gemini.send(text)["proof"]
        gemini.becomes("done")
        assert model.history()[-1].strip() == text
    assert not (gemini.home.place / "shell").exists()
    earlier = model.history()

    # killed in the middle of a stream, then at a permission: the same conversation goes on
    gemini.send("third [[hold stream]]")
    eventually(lambda: model.waiting("stream"), LONG_S)
    gemini.kill()
    assert gemini.shown()["supports_resume"] is True
    assert "goes on with its conversation" in gemini.resume()
    model.release("stream")
    gemini.becomes("waiting")
    assert gemini.shown()["conversation"] == conversation
    gemini.send("fourth [[bash touch never]]")
    gemini.asks()
    gemini.kill()
    gemini.resume()
    gemini.becomes("waiting")
    gemini.send("fifth [[say here]]")
    gemini.becomes("done")
    assert [text.split()[0] for text in model.history()[len(earlier) :]] == ["third", "fourth", "fifth"]
    assert not (gemini.home.place / "never").exists()

    # a restart begins anew, and sends nothing by itself
    assert "a new conversation" in gemini.restart()
    gemini.becomes("waiting")
    assert gemini.shown()["conversation"] not in (None, conversation)
    gemini.send("alone")
    gemini.becomes("done")
    assert model.history() == ["alone"]
    gemini.end()


def test_a_start_dialog_is_told_and_never_answered_by_accident(ground: Ground, agent_home: Homes) -> None:
    home = agent_home("gemini")
    settings = home.home / ".gemini/settings.json"
    chosen = json.loads(settings.read_text())
    chosen["security"]["folderTrust"]["enabled"] = True
    settings.write_text(json.dumps(chosen))
    gemini = Driven.begin(ground, home)
    assert "trust this folder" in gemini.becomes("blocked", "dialog")["message"]
    assert "trust this folder" in gemini.refused("this would press Enter")
    assert gemini.shown()["state"] == "running"
    gemini.end()
    assert not (home.home / ".gemini/trustedFolders.json").exists()
