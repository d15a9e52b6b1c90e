"""The real aider: what is said of it, prompts, answers, and conversations that come back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.driving import LONG_S, Driven
from tests.agents.homes import AgentHome
from tests.agents.modelserver import ModelServer
from tests.ground import Ground
from tests.support import eventually

pytestmark = [pytest.mark.all_agents, pytest.mark.timeout(300)]
CTRL_C = b"\x03"
Homes = Callable[[str], AgentHome]


@pytest.fixture
def aider(ground: Ground, agent_home: Homes) -> Driven:
    return Driven.begin(ground, agent_home("aider"))


def test_every_state_is_told_with_its_reason(aider: Driven, model: ModelServer) -> None:
    place: Path = aider.home.place
    aider.becomes("waiting")

    # a turn: the model thinks, answers, and is done. What is typed meanwhile would answer the next question
    assert aider.send("one [[hold think]] [[say first line]]")["proof"] == "prompt"
    assert aider.shown()["attention"] == "working"
    eventually(lambda: model.waiting("think"), LONG_S)
    aider.becomes("working")
    assert "not sent" in aider.refused("yes")
    model.release("think")
    assert "first line" in aider.becomes("done")["message"]

    # a permission: refused with its own key in the terminal
    aider.send("[[write asked.txt|hello]]")
    report = aider.asks()
    assert report["message"] == "Create new file? asked.txt"
    assert report["options"] == ["yes", "no"]
    assert "waiting for a permission: " in aider.refused("y")
    aider.keys(b"n\r")
    aider.becomes("waiting")
    assert not (place / "asked.txt").exists()
    assert "nothing is asked" in aider.answer("yes", check=4).err

    # interrupted while it works
    aider.send("wait [[hold stop]]")
    eventually(lambda: model.waiting("stop"), LONG_S)
    aider.becomes("working")
    aider.keys(CTRL_C)
    aider.becomes("waiting")
    model.release("stop")

    # an error of the API, with its text
    aider.send("[[error 400 out of order]]")
    assert "out of order" in aider.becomes("error")["message"]

    told = aider.told()
    for state in (("working", ""), ("blocked", "permission"), ("done", ""), ("error", ""), ("idle", "")):
        assert state in told
    aider.end()
    assert aider.shown()["label"] == "stopped"


def test_answers_count_once_and_conversations_come_back(aider: Driven, model: ModelServer) -> None:
    place: Path = aider.home.place
    aider.becomes("waiting")
    assert aider.shown()["supports_resume"] is False

    aider.send("first [[write no.txt|hello]]")
    aider.asks()
    aider.answer("no")
    aider.becomes("waiting")
    assert not (place / "no.txt").exists()
    aider.answer("yes", check=4)
    aider.send("second [[write yes.txt|hello]]")
    aider.asks()
    aider.answer("yes")
    aider.becomes("done")
    assert (place / "yes.txt").read_text().strip() == "hello"

    # killed in the middle of a stream: the same conversation goes on
    conversation = aider.shown()["conversation"]
    aider.send("third [[hold stream]]")
    eventually(lambda: model.waiting("stream"), LONG_S)
    aider.kill()
    assert aider.shown()["supports_resume"] is True
    assert "goes on with its conversation" in aider.resume()
    model.release("stream")
    aider.becomes("waiting")
    assert aider.shown()["conversation"] == conversation
    aider.send("fourth [[say here]]")
    aider.becomes("done")
    said = "\n".join(model.history())
    for word in ("first", "second", "third", "fourth"):
        assert said.count(word) == 1

    # a restart begins anew, and sends nothing by itself
    assert "a new conversation" in aider.restart()
    aider.becomes("waiting")
    assert aider.shown()["conversation"] != conversation
    aider.send("alone")
    aider.becomes("done")
    assert model.history() == ["alone"]
    aider.end()


def test_prompts_arrive_as_they_are(aider: Driven, model: ModelServer) -> None:
    aider.becomes("waiting")
    long = "\n".join(f"line {number} of a long prompt" for number in range(300))
    for text in (
        "two\nlines\n\nand a gap",
        long,
        "☃ naïve 漢字",
        "-h",
        "ends with \\",
        "/nothing",
        "!touch shell",
        "{",
    ):
        assert aider.send(text)["proof"] == "prompt"
        aider.becomes("done")
        assert model.history()[-1].strip() == text
    assert not (aider.home.place / "shell").exists()
    aider.keys(b"left over")
    eventually(lambda: b"over" in aider.truth.output()[-2000:], LONG_S)
    assert "unsent text" in aider.refused("not this")
    aider.end()


def test_a_start_dialog_is_told_and_never_answered_by_accident(ground: Ground, agent_home: Homes) -> None:
    home = agent_home("aider")
    settings = home.home / ".aider.conf.yml"
    settings.write_text(settings.read_text().replace("git: false\n", ""))
    aider = Driven.begin(ground, home)
    report = aider.becomes("blocked", "dialog")
    assert "No git repo found" in report["message"]
    assert "No git repo found" in aider.refused("y")
    aider.answer("no")
    aider.becomes("waiting")
    assert not (home.place / ".git").exists()
    aider.end()


def test_a_missing_key_is_told_with_what_to_do(ground: Ground, agent_home: Homes) -> None:
    home = agent_home("aider")
    settings = home.home / ".aider.conf.yml"
    lines = settings.read_text().splitlines(keepends=True)
    settings.write_text("".join(line for line in lines if not line.startswith("model:")))
    env = {name: text for name, text in home.env.items() if not name.startswith("OPENAI_")}
    aider = Driven.begin(ground, AgentHome(home.name, home.home, home.place, env))
    assert "no key" in aider.becomes("blocked", "auth")["message"]
    assert "no key" in aider.refused("y")
    aider.end()
