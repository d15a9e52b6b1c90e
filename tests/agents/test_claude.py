"""The real Claude Code: what is said of it, prompts, answers, and conversations that come back."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

import pytest

from hitchpost.agents.rules import composed, load
from tests.agents.driving import COMMAND, LONG_S, TEXTS, Driven, SilentTool
from tests.agents.everywhere import Everywhere, everywhere
from tests.agents.homes import KEY, AgentHome
from tests.agents.modelserver import ModelServer
from tests.agents.test_starts import says_why
from tests.agents.writing import RESETS_IN_S
from tests.ground import Ground
from tests.support import eventually

ESC, CTRL_C, CTRL_D, ENTER = b"\x1b", b"\x03", b"\x04", b"\r"
COMPOSER = load("claude").composer
Homes = Callable[[str], AgentHome]


def emptied(told: Everywhere, text: str) -> None:
    """Take an unsent text out of the prompt: Claude puts one back there that it was interrupted at."""
    assert COMPOSER is not None
    session, composer = told.driven.truth.id, COMPOSER
    eventually(lambda: text in told.driven.hitch("peek", session).out, what=f"{text!r} on the screen")

    def is_gone() -> bool:
        told.keys(b"\x15")
        return not composed(composer, told.driven.hitch("peek", session).out)

    eventually(is_gone, LONG_S, what="an empty prompt")


def model_waits(model: ModelServer, name: str) -> None:
    eventually(lambda: model.waiting(name), LONG_S)


def is_written(claude: Driven, conversation: str, text: str) -> bool:
    """Whether it is in the file of the conversation, which Claude writes a little later. Killed before, it is lost."""
    files = claude.home.home.glob(f".claude/projects/*/{conversation}.jsonl")
    return any(text in file.read_text() for file in files)


@pytest.mark.timeout(300)
@pytest.mark.proves("started", "working", "long silent tool", "permission asked", "question", "refused with Esc")
@pytest.mark.proves("interrupted with Esc", "interrupted with Ctrl-C", "turn finished", "API error", "usage limit")
@pytest.mark.proves("background work", "cleared", "prompt refused", "exit: quit")
def test_every_state_is_told_with_its_reason(ground: Ground, agent_home: Homes, model: ModelServer) -> None:
    ground.configure('limit_prompt = "go on [[say back]]"')
    with everywhere(ground, agent_home("claude"), "--when-limit", "wait") as told:
        told.becomes("waiting")

        # a turn: the model thinks, answers, and is done
        receipt = told.send("one [[hold think]] [[say first line]]")
        assert receipt["proof"] == "UserPromptSubmit"
        assert told.driven.shown()["attention"] == "working"
        model_waits(model, "think")
        told.becomes("working")
        model.release("think")
        told.becomes("done", message="first line")

        # a tool that says nothing for as long as it runs
        tool = SilentTool(told.driven.home.place, "silent")
        told.send(f"[[bash {tool.command}]]")
        tool.begins()
        told.becomes("working")
        tool.end()
        told.becomes("done")

        # a permission: refused with Esc in the terminal
        told.send("[[bash touch asked]]")
        told.becomes("blocked", "permission", message="touch asked", options=["yes", "no"])
        assert "waiting for a permission: " in told.driven.refused("do not type this")
        told.leaves("blocked", ESC)
        told.becomes("waiting")
        assert not (told.driven.home.place / "asked").exists()
        assert "nothing is asked" in told.driven.answer("yes", check=4).err

        # a question
        told.send("[[question Which colour?|Red|Blue]]")
        told.becomes("blocked", "question", message="Which colour?")
        assert "asking a question" in told.driven.refused("do not type this")
        told.leaves("blocked", ESC)
        told.becomes("waiting")

        # interrupted while it works, with Esc and with Ctrl-C
        for number, key in enumerate((ESC, CTRL_C)):
            told.send(f"wait [[hold stop{number}]]")
            model_waits(model, f"stop{number}")
            told.becomes("working")
            told.leaves("working", key)
            told.becomes("waiting")
            model.release(f"stop{number}")
            emptied(told, f"wait [[hold stop{number}]]")

        # errors of the API, with their text
        told.send("[[error 400 out of order]]")
        told.becomes("error", message="400")

        # a usage limit that ends soon: it goes on by itself. One whose end is not told stays as it is
        told.send("[[usage-limit please try again in 3 seconds]]")
        told.becomes("done", message="back")
        assert ("error", "limit") in told.driven.told()
        assert model.history()[-2:] == ["[[usage-limit please try again in 3 seconds]]", "go on [[say back]]"]
        told.send("[[usage-limit come back later]]")
        told.becomes("error", "limit", message="come back later")

        # a dialog of its own: what is sent would be typed into it
        told.send("/config", "--force")
        told.becomes("blocked")
        assert "not sent" in told.driven.refused("do not type this either")
        told.leaves("blocked", ESC)
        told.since = 0
        told.becomes("error")  # as before: the turn's end is still the last word

        # a task that goes on after the turn
        behind = SilentTool(told.driven.home.place, "behind")
        told.send(f"[[background {behind.command}]]")
        behind.begins()
        told.becomes("done", background=1, message="as the test wants")
        behind.end()
        told.becomes("done", background=0)

        # another conversation, begun in the terminal
        before = told.driven.shown()["conversation"]
        told.send("/clear", "--force")
        told.becomes("waiting")
        eventually(lambda: told.driven.shown()["conversation"] != before, LONG_S)
        assert told.driven.shown()["supports_resume"] is False

        told.send("/quit", "--force")
        told.ends("completed", code=0)


@pytest.mark.timeout(300)
@pytest.mark.proves("answered from the API", "answered from the terminal", "restarted afresh", "no tool left")
@pytest.mark.proves("after kill: mid-stream", "after kill: at a permission", "after kill: mid-tool")
@pytest.mark.proves("exit: KILL", "exit: TERM", "exit: HUP", "exit: Ctrl-C")
def test_answers_count_once_and_conversations_come_back(ground: Ground, agent_home: Homes, model: ModelServer) -> None:
    with everywhere(ground, agent_home("claude")) as told:
        claude, place = told.driven, told.driven.home.place
        told.becomes("waiting")
        assert claude.shown()["supports_resume"] is False

        told.send("first [[bash touch yes]]")
        request = told.becomes("blocked", "permission", options=["yes", "no"])["request"]
        told.answer("yes", request=request)
        told.becomes("done")
        assert (place / "yes").exists()
        claude.answer("yes", check=4)
        told.send("second [[bash touch no]]")
        told.becomes("blocked", "permission", options=["yes", "no"])
        told.answer("no", message="not that one")
        told.becomes("done")
        assert not (place / "no").exists()
        told.send("third [[bash touch key]]")
        request = told.becomes("blocked", "permission", options=["yes", "no"])["request"]
        told.leaves("blocked", ENTER)
        told.becomes("done")
        assert (place / "key").exists()
        assert "nothing is asked" in claude.answer("no", "--request", str(request), check=4).err

        # asked at once: one after the other is told, with the name of its own
        urls = ("https://one.example/", "https://two.example/")
        calls = [f'WebFetch|{{"url": "{url}", "prompt": "x"}}' for url in urls]
        told.send(f"both [[call {calls[0]}]] [[also {calls[1]}]]")
        for url in urls:
            request = told.becomes("blocked", "permission", message=f"WebFetch: {url}", options=["yes", "no"])[
                "request"
            ]
            told.answer("no", request=request)
        told.becomes("done")

        # killed in the middle of a stream, at a permission, and in a tool: the same conversation goes on
        conversation = claude.shown()["conversation"]
        told.send("fourth [[hold stream]]")
        model_waits(model, "stream")
        eventually(partial(is_written, claude, conversation, "fourth [[hold"), LONG_S)
        told.signals(signal.SIGKILL)
        told.ends("failed", signal="SIGKILL")
        assert claude.shown()["supports_resume"] is True
        assert "goes on with its conversation" in claude.resume()
        model.release("stream")
        told.becomes("waiting")
        assert claude.shown()["conversation"] == conversation
        told.send("fifth [[bash touch never]]")
        told.becomes("blocked", "permission", options=["yes", "no"])
        eventually(partial(is_written, claude, conversation, "fifth [[bash"), LONG_S)
        told.signals(signal.SIGKILL)
        told.ends("failed", signal="SIGKILL")
        claude.resume()
        for number, (sent, code) in enumerate(((signal.SIGKILL, None), (signal.SIGTERM, 143), (signal.SIGHUP, 129))):
            told.becomes("waiting")
            tool = SilentTool(place, f"tool{number}")
            told.send(f"tool{number} [[bash {tool.command}]]")
            tool.begins()
            eventually(partial(is_written, claude, conversation, f"tool{number} [[bash"), LONG_S)
            told.signals(sent)
            told.ends("failed", code=code, signal="SIGKILL" if code is None else None)
            assert not tool.runs
            tool.end()
            claude.resume()
        told.becomes("waiting")
        told.send("last [[say here]]")
        told.becomes("done")
        history = [prompt.split()[0] for prompt in model.history()]
        assert history == ["first", "second", "third", "both", "fourth", "fifth", "tool0", "tool1", "tool2", "last"]
        assert [prompt.text.split()[0] for prompt in model.prompts()].count("first") == 1
        assert not (place / "never").exists()
        assert claude.shown()["conversation"] == conversation

        # a restart begins anew, and sends nothing by itself
        assert "a new conversation" in claude.restart()
        told.becomes("waiting")
        assert claude.shown()["conversation"] != conversation
        told.send("alone")
        told.becomes("done")
        assert model.history() == ["alone"]
        told.keys(CTRL_C, CTRL_C)
        told.ends("completed", code=0)


@pytest.mark.timeout(300)
@pytest.mark.proves("prompt byte-exact", "exit: Ctrl-D")
def test_prompts_arrive_as_they_are(ground: Ground, agent_home: Homes, model: ModelServer) -> None:
    with everywhere(ground, agent_home("claude")) as told:
        told.becomes("waiting")
        # what cannot be exact is told
        for text, taken in (("a\ttab", "a    tab"), ("e\u0301", "\xe9")):
            assert told.send(text)["proof"] == "UserPromptSubmit, but not byte for byte"
            told.becomes("done")
            assert model.history()[-1] == taken
        # a space before it does not keep Claude from taking it for a command
        for text in (COMMAND, "/clear", "  /cost"):
            assert "would take this text as a command" in told.driven.refused(text)
        told.keys(b"a draft")
        eventually(lambda: b"draft" in told.driven.truth.output(), what="the draft")
        eventually(lambda: "unsent text" in told.driven.refused("not this"), LONG_S, what="a refusal")
        emptied(told, "a draft")
        for text in TEXTS:
            receipt = told.send(text)
            assert (receipt["proof"], receipt["confirmed"]) == ("UserPromptSubmit", True)
            told.becomes("done")
            assert model.history()[-1] == text
        assert not (told.driven.home.place / "shell").exists()
        told.keys(CTRL_D, CTRL_D)
        told.ends("completed", code=0)


@pytest.mark.timeout(120)
@pytest.mark.proves("usage limit")
def test_the_limit_of_a_subscription_is_told_with_its_end(ground: Ground, agent_home: Homes) -> None:
    home = agent_home("claude")
    env = {name: text for name, text in home.env.items() if name != "ANTHROPIC_API_KEY"}
    with everywhere(ground, replace(home, env={**env, "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-scripted"})) as told:
        told.becomes("waiting")
        told.send("[[usage-limit of the plan]]")
        report = told.becomes("error", "limit", message="You've hit your limit")
        assert report["message"].endswith(f"resets {report['until']}")
        assert re.fullmatch(r"\d+(:\d\d)?[ap]m \(UTC\)", report["until"])
        assert abs(datetime.fromisoformat(report["ends_at"]).timestamp() - time.time() - RESETS_IN_S) < 180
        told.driven.end()


@pytest.mark.timeout(120)
@pytest.mark.proves("start-up dialog", "prompt refused")
def test_one_that_is_not_signed_in_says_so_at_its_prompt(ground: Ground, agent_home: Homes) -> None:
    home = agent_home("claude")
    env = {name: text for name, text in home.env.items() if name != "ANTHROPIC_API_KEY"}
    with everywhere(ground, replace(home, env=env)) as told:
        told.becomes("blocked", "auth", message="hitch attach, and /login")
        assert told.driven.shown()["headline"] == "Not signed in"
        assert "not signed in" in told.driven.refused("hello")
        told.driven.end()


@pytest.mark.timeout(120)
@pytest.mark.proves("API error")
@pytest.mark.parametrize("key", ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"])
def test_one_whose_key_is_revoked_is_not_signed_in(ground: Ground, agent_home: Homes, key: str) -> None:
    home = agent_home("claude")
    env = {name: text for name, text in home.env.items() if name != "ANTHROPIC_API_KEY"}
    with everywhere(ground, replace(home, env={**env, key: KEY, "CLAUDE_CODE_MAX_RETRIES": "0"})) as told:
        told.becomes("waiting")
        told.send("[[error 401 this key was revoked]]")
        told.becomes("blocked", "auth")
        assert told.driven.shown()["headline"] == "Not signed in"
        assert "not signed in" in told.driven.refused("hello")
        told.driven.end()


@pytest.mark.timeout(120)
@pytest.mark.proves("start-up dialog", "prompt refused")
def test_a_start_dialog_is_told_and_never_answered_by_accident(ground: Ground, agent_home: Homes) -> None:
    home = agent_home("claude")
    settings = home.home / ".claude.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "projects": {}}))
    with everywhere(ground, home) as told:
        told.becomes("blocked", "dialog", message="trust this folder")
        assert "trust this folder" in told.driven.refused("this would press Enter")
        assert told.driven.shown()["state"] == "running"
        says_why(told.driven, "trust this folder")
        told.driven.end()
    trusted = json.loads(settings.read_text())["projects"].get(str(home.place), {}).get("hasTrustDialogAccepted")
    assert trusted is not True
