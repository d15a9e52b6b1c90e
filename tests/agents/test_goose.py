"""The real goose: what is said of it, prompts, answers, and conversations that come back."""

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
ESC, CTRL_C = b"\x1b", b"\x03"
Homes = Callable[[str], AgentHome]


@pytest.fixture
def goose(ground: Ground, agent_home: Homes) -> Driven:
    return Driven.begin(ground, agent_home("goose"))


def forget(goose: Driven) -> None:
    """It sends a prompt that got no answer again, with the next one."""

    def cleared() -> int:
        return goose.hitch("logs", goose.truth.id).out.count("Chat context cleared.")

    before = cleared()
    goose.send("/clear", "--force")
    eventually(lambda: cleared() > before, LONG_S)
    goose.becomes("waiting")


def test_every_state_is_told_with_its_reason(goose: Driven, model: ModelServer) -> None:
    place: Path = goose.home.place
    goose.becomes("waiting")

    # a turn: the model thinks, answers, and is done. What is sent meanwhile would be lost
    receipt = goose.send("one [[hold think]] [[say first line]]")
    assert receipt["proof"] == "prompt"
    assert goose.shown()["attention"] == "working"
    eventually(lambda: model.waiting("think"), LONG_S)
    goose.becomes("working")
    assert "loses what is typed" in goose.refused("not now")
    model.release("think")
    assert "first line" in goose.becomes("done")["message"]

    # a permission: refused with Esc in the terminal
    goose.send("[[bash touch asked]]")
    report = goose.asks()
    assert "touch asked" in report["message"]
    assert report["options"] == ["yes", "no"]
    assert "waiting for a permission: " in goose.refused("do not type this")
    goose.keys(ESC)
    goose.becomes("waiting")
    assert not (place / "asked").exists()
    assert "nothing is asked" in goose.answer("yes", check=4).err
    forget(goose)

    # a tool that is silent for long, once it was allowed
    goose.send("[[bash while ! test -e go; do sleep 0.1; done]] [[say it went]]")
    goose.asks()
    goose.answer("yes")
    goose.becomes("working")
    assert goose.told()[-1] == ("working", "")
    (place / "go").touch()
    assert "it went" in goose.becomes("done")["message"]

    # interrupted while it works
    goose.send("wait [[hold stop]]")
    eventually(lambda: model.waiting("stop"), LONG_S)
    goose.becomes("working")
    goose.keys(CTRL_C)
    goose.becomes("waiting")
    model.release("stop")
    forget(goose)

    # an error of the API, with its text
    goose.send("[[error 400 out of order]]")
    assert "out of order" in goose.becomes("error")["message"]

    told = goose.told()
    for state in (("working", ""), ("blocked", "permission"), ("done", ""), ("error", ""), ("idle", "")):
        assert state in told
    goose.end()
    assert goose.shown()["label"] == "stopped"


def test_answers_count_once_and_conversations_come_back(goose: Driven, model: ModelServer) -> None:
    place: Path = goose.home.place
    goose.becomes("waiting")
    assert goose.shown()["supports_resume"] is False

    goose.send("first [[bash touch yes]]")
    goose.asks()
    goose.answer("yes")
    goose.becomes("done")
    assert (place / "yes").exists()
    goose.answer("yes", check=4)
    goose.send("second [[bash touch no]]")
    goose.asks()
    goose.answer("no")
    goose.becomes("done")
    assert not (place / "no").exists()

    # killed in the middle of a stream, then at a permission: the same conversation goes on
    conversation = goose.shown()["conversation"]
    goose.send("third [[hold stream]]")
    eventually(lambda: model.waiting("stream"), LONG_S)
    goose.kill()
    assert goose.shown()["supports_resume"] is True
    assert "goes on with its conversation" in goose.resume()
    model.release("stream")
    goose.becomes("waiting")
    assert goose.shown()["conversation"] == conversation
    goose.send("fourth [[bash touch never]]")
    goose.asks()
    goose.kill()
    goose.resume()
    goose.becomes("waiting")
    goose.send("fifth [[say here]]")
    goose.asks()  # the fourth prompt got no answer: it comes again, with the fifth
    goose.answer("no")
    goose.becomes("done")
    said = "\n".join(model.history())  # it joins prompts that got no answer
    assert [word for word in said.split() if word in ("first", "second", "third", "fourth", "fifth")] == [
        *("first", "second", "third", "fourth", "fifth")
    ]
    assert not (place / "never").exists()

    # a restart begins anew, and sends nothing by itself
    assert "a new conversation" in goose.restart()
    goose.becomes("waiting")
    assert goose.shown()["conversation"] != conversation
    goose.send("alone")
    goose.becomes("done")
    assert model.history() == ["alone"]
    goose.end()


def test_prompts_arrive_as_they_are(goose: Driven, model: ModelServer) -> None:
    goose.becomes("waiting")
    long = "\n".join(f"line {number} of a long prompt" for number in range(300))
    for text in ("two\nlines\n\nand a gap", long, "☃ naïve 漢字", "@nobody", "-h", "ends with \\", "!touch shell"):
        assert goose.send(text)["proof"] == "prompt"
        goose.becomes("done")
        assert model.history()[-1].rstrip() == text
    assert not (goose.home.place / "shell").exists()
    assert "as a command" in goose.refused("/exit")
    goose.keys(b"left over")
    eventually(lambda: b"over" in goose.truth.output()[-2000:], LONG_S)
    assert "unsent text" in goose.refused("not this")
    goose.end()


def test_a_start_dialog_is_told_and_never_answered_by_accident(ground: Ground, agent_home: Homes) -> None:
    home = agent_home("goose")
    settings = home.home / "goose/config/config.yaml"
    lines = settings.read_text().splitlines(keepends=True)
    settings.write_text("".join(line for line in lines if "TELEMETRY" not in line))
    goose = Driven.begin(ground, home)
    report = goose.becomes("blocked", "dialog")
    assert "usage data" in report["message"]
    assert "usage data" in goose.refused("y")
    assert goose.shown()["state"] == "running"
    goose.end()
    assert "TELEMETRY" not in settings.read_text()
