"""The real Copilot CLI: what is said of it, prompts, answers, and conversations that come back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.driving import LONG_S, Driven
from tests.agents.homes import AgentHome, write_json
from tests.agents.modelserver import ModelServer
from tests.ground import Ground
from tests.support import eventually

pytestmark = [pytest.mark.all_agents, pytest.mark.timeout(300)]
ESC, CTRL_C = b"\x1b", b"\x03"
PROOF = "userPromptSubmitted"
Homes = Callable[[str], AgentHome]


@pytest.fixture
def copilot(ground: Ground, agent_home: Homes) -> Driven:
    return Driven.begin(ground, agent_home("copilot"))


def test_every_state_is_told_with_its_reason(copilot: Driven, model: ModelServer) -> None:
    place: Path = copilot.home.place
    copilot.becomes("waiting")

    # a turn: the model thinks, answers, and is done. A question could take the Enter of what is typed meanwhile
    assert copilot.send("one [[hold think]] [[say first line]]")["proof"] == PROOF
    eventually(lambda: model.waiting("think"), LONG_S)
    copilot.becomes("working")
    assert "not sent" in copilot.refused("not now")
    model.release("think")
    copilot.becomes("done")

    # a permission: refused with Esc in the terminal
    copilot.send("[[bash touch asked]]")
    report = copilot.asks()
    assert "touch asked" in report["message"]
    assert report["options"] == ["yes", "no"]
    assert "waiting for a permission: " in copilot.refused("do not type this")
    copilot.leaves("blocked", ESC)
    copilot.becomes("waiting")
    assert not (place / "asked").exists()
    assert "nothing is asked" in copilot.answer("yes", check=4).err

    # a tool that is silent for long, once it was allowed
    copilot.send("[[bash while ! test -e go; do sleep 0.1; done]] [[say it went]]")
    copilot.asks()
    copilot.answer("yes")
    copilot.becomes("working")
    (place / "go").touch()
    copilot.becomes("done")

    # interrupted while it works
    copilot.send("wait [[hold stopped]]")
    eventually(lambda: model.waiting("stopped"), LONG_S)
    copilot.becomes("working")
    copilot.keys(CTRL_C)
    copilot.becomes("waiting")
    model.release("stopped")

    # an error of the API, with its text
    copilot.send("[[error 400 out of order]]")
    eventually(lambda: "out of order" in str(copilot.becomes("error")["message"]), LONG_S)

    told = copilot.told()
    for state in (("working", ""), ("blocked", "permission"), ("done", ""), ("error", ""), ("idle", "")):
        assert state in told
    copilot.end()
    assert copilot.shown()["label"] == "stopped"


def test_answers_count_once_and_conversations_come_back(copilot: Driven, model: ModelServer) -> None:
    place: Path = copilot.home.place
    copilot.becomes("waiting")
    assert copilot.shown()["supports_resume"] is False

    copilot.send("first [[bash touch yes]]")
    copilot.asks()
    copilot.answer("yes")
    copilot.becomes("done")
    assert (place / "yes").exists()
    copilot.answer("yes", check=4)
    copilot.send("second [[bash touch no]]")
    copilot.asks()
    copilot.answer("no")
    copilot.becomes("waiting")
    assert not (place / "no").exists()

    # killed in the middle of a stream: the same conversation goes on
    conversation = copilot.shown()["conversation"]
    copilot.send("third [[hold stream]]")
    eventually(lambda: model.waiting("stream"), LONG_S)
    copilot.kill()
    assert copilot.shown()["supports_resume"] is True
    assert "goes on with its conversation" in copilot.resume()
    model.release("stream")
    copilot.becomes("waiting")
    assert copilot.shown()["conversation"] == conversation
    copilot.send("fourth [[say here]]")
    copilot.becomes("done")
    assert [prompt.split()[0] for prompt in model.history()] == ["first", "second", "third", "fourth"]

    # a restart begins anew, and sends nothing by itself
    assert "a new conversation" in copilot.restart()
    copilot.becomes("waiting")
    assert copilot.shown()["conversation"] != conversation
    copilot.send("alone")
    copilot.becomes("done")
    assert model.history() == ["alone"]
    copilot.end()


def test_prompts_arrive_as_they_are(copilot: Driven, model: ModelServer) -> None:
    copilot.becomes("waiting")
    long = "\n".join(f"line {number} of a long prompt" for number in range(300))
    for text in ("two\nlines\n\nand a gap", long, "☃ naïve 漢字", "-h", "# remember", "ends with \\", "/nothing"):
        assert copilot.send(text)["proof"] == PROOF
        copilot.becomes("done")
        assert model.history()[-1].strip() == text
    assert "as a command" in copilot.refused(" !touch shell")
    assert not (copilot.home.place / "shell").exists()
    copilot.keys(b"left over")
    eventually(lambda: b"over" in copilot.truth.output()[-2000:], LONG_S)
    assert "unsent text" in copilot.refused("not this")
    copilot.end()


def test_a_start_dialog_is_told_and_never_answered_by_accident(ground: Ground, agent_home: Homes) -> None:
    home = agent_home("copilot")
    settings = home.home / ".copilot/config.json"
    write_json(settings, {"banner": "never"})
    copilot = Driven.begin(ground, home)
    assert "trust this folder" in copilot.becomes("blocked", "dialog")["message"]
    assert "trust this folder" in copilot.refused("this would press Enter")
    assert copilot.shown()["state"] == "running"
    copilot.end()
    assert str(home.place) not in settings.read_text()


def test_a_missing_sign_in_is_told_with_what_to_do(ground: Ground, agent_home: Homes) -> None:
    home = agent_home("copilot")
    env = {name: text for name, text in home.env.items() if not name.startswith("COPILOT_")}
    copilot = Driven.begin(ground, AgentHome(home.name, home.home, home.place, {**env, "COPILOT_AUTO_UPDATE": "false"}))
    assert "/login" in copilot.becomes("blocked", "auth")["message"]
    assert "/login" in copilot.refused("hello")
    copilot.end()
