"""The real Codex, with its app-server: what is said of it, prompts, answers, and conversations that come back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hitchpost.watcher import appserver
from tests.agents.driving import COMMAND, LONG_S, TEXTS, Driven, SilentTool
from tests.agents.everywhere import everywhere
from tests.agents.homes import AgentHome
from tests.agents.modelserver import ModelServer
from tests.agents.test_starts import says_why
from tests.agents.writing import RESETS_IN_S
from tests.ground import Ground, Truth
from tests.repos import Repo
from tests.support import eventually, halt

ESC, CTRL_C, CTRL_D, ENTER = b"\x1b", b"\x03", b"\x04", b"\r"
Homes = Callable[[str], AgentHome]
VERSIONS = ("codex", pytest.param("codex-0.166", marks=pytest.mark.all_agents))


@pytest.fixture(params=VERSIONS)
def lodging(request: pytest.FixtureRequest, agent_home: Homes) -> AgentHome:
    return agent_home(request.param)


@pytest.mark.timeout(300)
@pytest.mark.proves("started", "working", "long silent tool", "permission asked", "question", "refused with Esc")
@pytest.mark.proves("interrupted with Esc", "interrupted with Ctrl-C", "turn finished", "API error", "usage limit")
@pytest.mark.proves("background work", "cleared", "prompt refused", "exit: quit")
def test_every_state_is_told_with_its_reason(ground: Ground, lodging: AgentHome, model: ModelServer) -> None:
    settings = lodging.home / ".codex/config.toml"  # else questions are asked in plan mode only
    settings.write_text(settings.read_text() + "[features]\ndefault_mode_request_user_input = true\n")
    with everywhere(ground, lodging) as told:
        codex = told.driven
        told.becomes("waiting", source="app-server")

        # a turn: the model thinks, answers, and is done
        receipt = told.send("one [[hold think]] [[say first line]]")
        assert (receipt["proof"].partition(":")[0], receipt["confirmed"]) == ("turn/start", True)
        assert codex.shown()["attention"] == "working"
        eventually(lambda: model.waiting("think"), LONG_S)
        told.becomes("working")
        model.release("think")
        told.becomes("done", message="first line")

        # a tool that says nothing for as long as it runs
        tool = SilentTool(lodging.place, "silent")
        told.send(f"[[bash {tool.command}]]")
        tool.begins()
        told.becomes("working")
        tool.end()
        told.becomes("done")

        # a permission: refused with Esc in the terminal
        told.send("[[ask touch asked]]")
        report = told.becomes("blocked", "permission", message="touch asked", options=["yes", "no"])
        assert report["request"]
        assert "waiting for a permission: " in codex.refused("do not type this")
        told.keys(ESC)
        told.becomes("waiting")
        assert not (lodging.place / "asked").exists()
        assert "nothing is asked" in codex.answer("yes", check=4).err

        # a question
        told.send("[[question Which colour?|Red|Blue]]")
        told.becomes("blocked", "question", message="Which colour?", options=["Red", "Blue"])
        assert "asking a question" in codex.refused("do not type this")
        told.answer("Blue")
        told.becomes("done")
        results = [item for item in model.requests()[-1].body["input"] if item["type"] == "function_call_output"]
        assert "Blue" in str(results[-1]["output"])

        # interrupted while it works, with Esc and with Ctrl-C
        for number, key in enumerate((ESC, CTRL_C)):
            told.send(f"wait [[hold stop{number}]]")
            eventually(partial(model.waiting, f"stop{number}"), LONG_S)
            told.becomes("working")
            told.keys(key)
            told.becomes("waiting")
            model.release(f"stop{number}")

        # errors of the API, with their text
        told.send("[[error 400 out of order]]")
        told.becomes("error", "", message="out of order")
        told.send("[[usage-limit come back later]]")
        report = told.becomes("error", "limit", message="usage limit")
        assert abs(datetime.fromisoformat(report["ends_at"]).timestamp() - time.time() - RESETS_IN_S) < 180, report

        # a terminal that goes on after the turn
        behind = SilentTool(lodging.place, "behind")
        told.send(f"[[background {behind.command}]]")
        behind.begins()
        told.becomes("done", background=1, message=behind.command)
        behind.end()
        told.becomes("done", background=0)

        # another conversation, begun in the terminal
        before = codex.shown()["conversation"]
        told.send("/new", "--force")
        told.becomes("waiting")
        eventually(lambda: codex.shown()["conversation"] != before, LONG_S)
        assert codex.shown()["supports_resume"] is False
        told.send("elsewhere [[say here]]")
        told.becomes("done")
        assert model.history() == ["elsewhere [[say here]]"]
        told.send("/quit", "--force")
        told.ends("completed", code=0)


@pytest.mark.timeout(300)
@pytest.mark.proves("answered from the API", "answered from the terminal", "restarted afresh", "no tool left")
@pytest.mark.proves("after kill: mid-stream", "after kill: at a permission", "after kill: mid-tool")
@pytest.mark.proves("exit: KILL", "exit: TERM", "exit: HUP", "exit: Ctrl-C")
def test_answers_count_once_and_conversations_come_back(ground: Ground, lodging: AgentHome, model: ModelServer) -> None:
    with everywhere(ground, lodging, extra=("-s", "workspace-write", "-a", "on-request")) as told:
        codex, place = told.driven, lodging.place
        told.becomes("waiting")
        assert codex.shown()["supports_resume"] is False

        told.send("first [[ask touch yes]]")
        first = told.becomes("blocked", "permission", options=["yes", "no"])["request"]
        told.answer("yes", request=first)
        told.becomes("done")
        assert (place / "yes").exists()
        codex.answer("yes", check=4)
        told.send("second [[ask touch no]]")
        told.becomes("blocked", "permission", options=["yes", "no"])
        told.answer("no")
        told.becomes("done")
        assert not (place / "no").exists()
        told.send("third [[ask touch key]]")
        request = told.becomes("blocked", "permission", options=["yes", "no"])["request"]
        told.leaves("blocked", ENTER)
        told.becomes("done")
        assert (place / "key").exists()
        assert "nothing is asked" in codex.answer("no", "--request", str(request), check=4).err

        # killed in the middle of a stream, at a permission, and in a tool: the same conversation goes on
        conversation = codex.shown()["conversation"]
        told.send("fourth [[hold stream]]")
        eventually(lambda: model.waiting("stream"), LONG_S)
        told.signals(signal.SIGKILL)
        told.ends("failed", signal="SIGKILL")
        assert codex.shown()["supports_resume"] is True
        assert "goes on with its conversation" in codex.resume()
        model.release("stream")
        told.becomes("waiting")
        assert codex.shown()["conversation"] == conversation
        told.send("fifth [[ask touch never]]")
        told.becomes("blocked", "permission")
        assert "nothing is asked" in codex.answer("yes", "--request", str(first), check=4).err, "of another run"
        told.signals(signal.SIGKILL)
        told.ends("failed", signal="SIGKILL")
        codex.resume()
        for number, sent in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)):
            told.becomes("waiting")
            tool = SilentTool(place, f"tool{number}")
            told.send(f"tool{number} [[bash {tool.command}]]")
            tool.begins()
            told.signals(sent)
            told.ends("failed", signal=sent.name)
            assert not tool.runs
            tool.end()
            codex.resume()
        told.becomes("waiting")
        told.send("last [[bash touch written]]")
        told.becomes("done")
        history = [prompt.split()[0] for prompt in model.history()]
        assert history == ["first", "second", "third", "fourth", "fifth", "tool0", "tool1", "tool2", "last"]
        assert [prompt.text.split()[0] for prompt in model.prompts()].count("first") == 1
        assert (place / "written").exists()
        assert not (place / "never").exists()
        assert codex.shown()["conversation"] == conversation

        # a restart begins anew, and sends nothing by itself
        assert "a new conversation" in codex.restart()
        told.becomes("waiting")
        assert codex.shown()["conversation"] != conversation
        told.send("alone")
        told.becomes("done")
        assert model.history() == ["alone"]
        told.keys(CTRL_C)
        told.ends("completed", code=0)
        assert not left(codex)


@pytest.mark.timeout(300)
@pytest.mark.proves("prompt byte-exact", "prompt byte-exact: /word", "exit: Ctrl-D")
def test_prompts_arrive_as_they_are(ground: Ground, lodging: AgentHome, model: ModelServer) -> None:
    with everywhere(ground, lodging) as told:
        told.becomes("waiting")
        for text in (*TEXTS, COMMAND, "\u202e", "\ttab and spaces  "):
            assert told.send(text)["confirmed"] is True
            told.becomes("done")
            assert model.history()[-1] == text
        assert not (lodging.place / "shell").exists()
        told.keys(CTRL_D)
        told.ends("completed", code=0)


@pytest.mark.timeout(300)
@pytest.mark.proves("forked")
def test_a_fork_has_the_history_and_the_work_and_leaves_the_original_alone(
    ground: Ground, lodging: AgentHome, model: ModelServer, repo: Repo
) -> None:
    mine = Repo(lodging.place)
    mine.git("init", "-q")
    mine.commit("README", "shop\n")
    with everywhere(ground, lodging) as told:
        codex = told.driven
        told.becomes("waiting")
        told.send("first [[say one]]")
        told.becomes("done")
        mine.write("README", "changed\n")
        mine.write("new", "mine\n")
        made = codex.hitch("fork", codex.truth.id, "--name", "other", "--json").json()
        place = Path(made["workspace"]["path"])
        assert ((place / "README").read_text(), (place / "new").read_text()) == ("changed\n", "mine\n")
        other = replace(told, driven=Driven(ground, lodging, Truth(ground.home, made["id"])), since=0)
        other.becomes("waiting")

        # killed before it has a turn of its own, it still begins where the other was
        other.signals(signal.SIGKILL)
        other.ends("failed", signal="SIGKILL")
        assert "goes on with its conversation" in other.driven.resume()
        other.becomes("waiting")
        other.send("aside [[say two]]")
        other.becomes("done")
        assert [prompt.split()[0] for prompt in model.history()] == ["first", "aside"]
        told.send("second [[say three]]")
        told.becomes("done")
        assert [prompt.split()[0] for prompt in model.history()] == ["first", "second"]
        assert other.driven.shown()["conversation"] != codex.shown()["conversation"]

        # and then it has its own
        other.signals(signal.SIGKILL)
        other.ends("failed", signal="SIGKILL")
        other.driven.resume()
        other.becomes("waiting")
        other.send("further [[say four]]")
        other.becomes("done")
        assert [prompt.split()[0] for prompt in model.history()] == ["first", "aside", "further"]
        other.driven.end()
        codex.end()


@pytest.mark.timeout(120)
@pytest.mark.proves("start-up dialog", "prompt refused")
def test_a_start_dialog_is_told_and_never_answered_by_accident(ground: Ground, lodging: AgentHome) -> None:
    settings = lodging.home / ".codex/config.toml"
    hook = '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "/bin/true"\n'
    settings.write_text(settings.read_text() + hook)
    with everywhere(ground, lodging) as told:
        told.becomes("blocked", "dialog", message="hooks")
        assert "hooks" in told.driven.refused("this would press Enter")
        assert "trusted_hash" not in settings.read_text()
        says_why(told.driven, "hooks")
        told.driven.end()


@pytest.mark.timeout(120)
def test_a_watcher_that_dies_comes_back_and_knows_as_much(
    ground: Ground, lodging: AgentHome, model: ModelServer
) -> None:
    codex = Driven.begin(ground, lodging)
    codex.becomes("waiting")
    codex.send("[[ask touch asked]]")
    before = asks(codex)
    kill_watcher(codex)
    after = asks(codex)
    assert (after["message"], after["options"]) == (before["message"], before["options"])
    kill_watcher(codex)
    codex.answer("yes")  # it waits until the new one knows what is asked
    codex.becomes("done")
    assert (lodging.place / "asked").exists()
    kill_watcher(codex)
    assert codex.becomes("done")["message"] == "Done."
    codex.end()


@pytest.mark.timeout(120)
def test_a_prompt_that_its_server_takes_late_is_proven_all_the_same(
    ground: Ground, lodging: AgentHome, model: ModelServer
) -> None:
    codex = Driven.begin(ground, lodging)
    eventually(lambda: codex.becomes("waiting")["source"] == "app-server", LONG_S)
    server = next(pid for pid in children(codex.truth.agent_pid()) if "app-server" in words_of(pid))
    halt(server)
    with ThreadPoolExecutor(1) as beside:
        began = time.monotonic()
        sent = beside.submit(codex.send, "one [[say well]]")
        eventually(lambda: time.monotonic() - began > appserver.ANSWER_S + 2, what="its answer is late")
        os.kill(server, signal.SIGCONT)
        assert sent.result()["proof"] == "turn/started"
    codex.becomes("done")
    assert [prompt.text for prompt in model.prompts()] == ["one [[say well]]"]
    codex.end()


@pytest.mark.timeout(120)
def test_without_its_server_it_is_heard_by_its_own_reports(
    ground: Ground, lodging: AgentHome, model: ModelServer
) -> None:
    codex = Driven.begin(ground, lodging, extra=("--search",))
    codex.becomes("waiting")
    assert codex.shown()["report"]["source"] == "osc7501"
    assert codex.send("one [[hold here]]")["confirmed"] is True
    eventually(lambda: model.waiting("here"), LONG_S)
    codex.becomes("working")
    model.release("here")
    eventually(lambda: codex.shown()["attention"] in ("waiting", "done"), LONG_S)
    for text in ("/new", "!touch shell"):
        assert "as a command" in codex.refused(text)
    codex.send("two [[ask touch asked]]")
    assert "touch asked" in asks(codex)["message"]
    assert "waiting for a permission" in codex.refused("this would press Enter")
    assert "attach" in codex.answer("yes", check=4).err
    codex.end()
    assert not (lodging.place / "asked").exists()


@pytest.mark.timeout(120)
def test_the_screen_alone_can_be_killed_and_nothing_is_left(ground: Ground, lodging: AgentHome) -> None:
    codex = Driven.begin(ground, lodging)
    codex.becomes("waiting")
    launcher = codex.truth.agent_pid()
    screen = next(pid for pid in children(launcher) if "--remote" in words_of(pid))
    os.kill(screen, signal.SIGKILL)
    codex.truth.ended()
    assert codex.shown()["exit"]["signal"] == "SIGKILL"
    assert codex.shown()["survivors"] == 0


def asks(codex: Driven) -> dict[str, Any]:
    """What a permission is asked for: that it is asked may be known a moment before."""

    def fits() -> dict[str, Any] | None:
        report: dict[str, Any] = codex.shown()["report"] or {}
        return report if report.get("kind") == "permission" and report["message"] else None

    return eventually(fits, LONG_S)


def kill_watcher(codex: Driven) -> None:
    """The keeper has noticed it, and started another."""
    killed = watchers(codex)
    os.kill(killed[0], signal.SIGKILL)
    eventually(lambda: set(watchers(codex)) - set(killed), LONG_S)


def watchers(codex: Driven) -> list[int]:
    return [pid for pid in children(codex.truth.keeper_pid()) if "hitchpost.watcher" in words_of(pid)]


def words_of(pid: int) -> str:
    """The command line of a process; nothing once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def left(codex: Driven) -> list[Path]:
    """Sockets of servers, which Codex keeps in a folder of its own."""
    links = [codex.truth.run(number) / "codex.sock" for number in range(1, codex.run_number + 1)]
    return [link.resolve() for link in links if link.is_symlink() and link.exists()]


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
