"""The real opencode, watched by its own server: what is said of it, prompts, answers, conversations that come back."""

from __future__ import annotations

import os
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


@pytest.fixture
def opencode(ground: Ground, agent_home: Callable[[str], AgentHome]) -> Driven:
    driven = Driven.begin(ground, agent_home("opencode"))
    driven.becomes("waiting")
    return driven


def test_every_state_is_told_with_its_reason(opencode: Driven, model: ModelServer) -> None:
    place: Path = opencode.home.place

    # a turn: the model thinks, answers, and is done
    assert opencode.send("one [[hold think]] [[say first line]]")["proof"] == "message"
    eventually(lambda: model.waiting("think"), LONG_S)
    opencode.becomes("working")
    model.release("think")
    assert opencode.becomes("done")["message"] == "first line"

    # a permission: refused with Esc in the terminal, then asked again and answered from outside
    opencode.send("two [[bash touch refused]]")
    report = opencode.asks()
    assert (report["message"], report["options"]) == ("bash: touch refused", ["yes", "no", "always"])
    assert "waiting for a permission: bash: touch refused" in opencode.refused("do not type this")
    opencode.keys(ESC)
    eventually(lambda: opencode.shown()["attention"] != "blocked", LONG_S)
    opencode.becomes("waiting")
    assert "nothing is asked" in opencode.answer("yes", check=4).err
    opencode.send("three [[bash touch allowed]]")
    opencode.asks()
    opencode.answer("yes")
    opencode.becomes("done")
    assert "nothing is asked" in opencode.answer("yes", check=4).err
    opencode.send("four [[bash touch denied]] [[say I see]]")
    opencode.asks()
    opencode.answer("no", "--message", "not that one")
    eventually(lambda: opencode.shown()["attention"] in ("done", "waiting"), LONG_S)
    made = [(place / name).exists() for name in ("refused", "allowed", "denied")]
    assert made == [False, True, False]

    # a tool that works in silence
    opencode.send("[[bash until test -e enough; do sleep 0.2; done]]")
    opencode.asks()
    opencode.answer("yes")
    opencode.becomes("working")
    (place / "enough").touch()
    opencode.becomes("done")

    # interrupted while it works
    opencode.send("wait [[hold stop]]")
    eventually(lambda: model.waiting("stop"), LONG_S)
    opencode.becomes("working")
    opencode.keys(ESC)
    eventually(lambda: b"again to interrupt" in opencode.truth.output(), LONG_S)
    opencode.keys(ESC)
    opencode.becomes("waiting")
    model.release("stop")

    # an error of the API, with its text
    opencode.send("[[error 400 out of order]]")
    assert "out of order" in str(opencode.becomes("error")["message"])

    # a question, answered from outside
    opencode.send("[[question Which colour?|Red|Blue]] [[say chosen]]")
    report = opencode.becomes("blocked", "question")
    assert (report["message"], report["options"]) == ("Which colour?", ["Red", "Blue"])
    opencode.answer("Blue")
    assert opencode.becomes("done")["message"] == "chosen"

    told = opencode.told()
    for state in (("working", ""), ("blocked", "permission"), ("done", ""), ("error", ""), ("idle", "")):
        assert state in told
    opencode.keys(CTRL_C)  # this ends it
    eventually(lambda: not opencode.shown()["live"], LONG_S)
    assert opencode.shown()["label"] == "completed"


def test_conversations_come_back_and_prompts_arrive_as_they_are(opencode: Driven, model: ModelServer) -> None:
    assert (opencode.shown()["supports_resume"], opencode.shown()["conversation"]) == (False, None)
    texts = ("two\nlines\n\nand a gap\tand a tab", "☃ naïve 漢字", "@nobody", "/new", "!touch shell", "ends with \\")
    for text in (*texts, "\n".join(f"line {number} of a long prompt" for number in range(400))):
        assert opencode.send(text)["proof"] == "message"
        opencode.becomes("done")
        assert model.history()[-1] == text
    assert not (opencode.home.place / "shell").exists()
    conversation = opencode.shown()["conversation"]
    earlier = model.history()

    # killed in the middle of a stream, then at a permission: the same conversation goes on
    opencode.send("third [[hold stream]]")
    eventually(lambda: model.waiting("stream"), LONG_S)
    opencode.kill()
    assert opencode.shown()["supports_resume"] is True
    assert "goes on with its conversation" in opencode.resume()
    model.release("stream")
    opencode.becomes("waiting")
    assert opencode.shown()["conversation"] == conversation
    opencode.send("fourth [[bash touch never]]")
    opencode.asks()
    opencode.kill()
    opencode.resume()
    opencode.becomes("waiting")
    opencode.send("fifth [[say here]]")
    opencode.becomes("done")
    assert [text.split()[0] for text in model.history()[len(earlier) :]] == ["third", "fourth", "fifth"]
    assert not (opencode.home.place / "never").exists()

    # a restart begins anew, and sends nothing by itself
    assert "a new conversation" in opencode.restart()
    opencode.becomes("waiting")
    opencode.send("alone")
    opencode.becomes("done")
    assert model.history() == ["alone"]
    assert opencode.shown()["conversation"] not in (None, conversation)
    opencode.end()


def test_nobody_else_speaks_with_its_server(opencode: Driven) -> None:
    import http.client
    import json

    run = opencode.truth.run(opencode.run_number)
    argv = json.loads((run / "run.json").read_text())["argv"]
    link = http.client.HTTPConnection("127.0.0.1", int(argv[argv.index("--port") + 1]), timeout=20)
    link.request("GET", "/permission")
    assert link.getresponse().status == 401
    link.close()
    environ = Path(f"/proc/{opencode.truth.agent_pid()}/environ").read_bytes().split(b"\0")
    password = next(item.partition(b"=")[2] for item in environ if item.startswith(b"OPENCODE_SERVER_PASSWORD="))
    stored = [file for file in opencode.truth.folder.rglob("*") if file.is_file() and not os.path.islink(file)]
    assert not [file for file in stored if password in file.read_bytes()]
    opencode.end()
