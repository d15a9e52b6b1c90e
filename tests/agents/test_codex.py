"""The real Codex, with its app-server: what is said of it, prompts, answers, and conversations that come back."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.agents.driving import LONG_S, Driven
from tests.agents.homes import AgentHome
from tests.agents.modelserver import ModelServer
from tests.ground import Ground
from tests.support import eventually

ESC, CTRL_C = b"\x1b", b"\x03"
Homes = Callable[[str], AgentHome]
VERSIONS = ("codex", pytest.param("codex-0.166", marks=pytest.mark.all_agents))


@pytest.fixture(params=VERSIONS)
def lodging(request: pytest.FixtureRequest, agent_home: Homes) -> AgentHome:
    return agent_home(request.param)


@pytest.mark.timeout(300)
def test_every_state_is_told_with_its_reason(ground: Ground, lodging: AgentHome, model: ModelServer) -> None:
    codex = Driven.begin(ground, lodging)
    codex.becomes("waiting")
    assert codex.shown()["report"]["source"] == "app-server"

    # a turn: the model thinks, answers, and is done
    receipt = codex.send("one [[hold think]] [[say first line]]")
    assert (receipt["proof"].partition(":")[0], receipt["confirmed"]) == ("turn/start", True)
    assert codex.shown()["attention"] == "working"
    eventually(lambda: model.waiting("think"), LONG_S)
    codex.becomes("working")
    model.release("think")
    assert codex.becomes("done")["message"] == "first line"

    # a tool that says nothing for as long as it runs
    silent = lodging.place / "silent"
    os.mkfifo(silent)
    codex.send("[[bash cat silent]]")
    writer = eventually(lambda: opened(silent), LONG_S)
    codex.becomes("working")
    os.close(writer)
    codex.becomes("done")

    # a permission: refused with Esc in the terminal
    codex.send("[[ask touch asked]]")
    report = asks(codex)
    assert "touch asked" in report["message"]
    assert (report["options"], bool(report["request"])) == (["yes", "no"], True)
    assert "waiting for a permission: " in codex.refused("do not type this")
    codex.keys(ESC)
    codex.becomes("waiting")
    assert not (lodging.place / "asked").exists()
    assert "nothing is asked" in codex.answer("yes", check=4).err

    # interrupted while it works, with Esc and with Ctrl-C
    for number, key in enumerate((ESC, CTRL_C)):
        codex.send(f"wait [[hold stop{number}]]")
        eventually(partial(model.waiting, f"stop{number}"), LONG_S)
        codex.becomes("working")
        codex.keys(key)
        codex.becomes("waiting")
        model.release(f"stop{number}")

    # errors of the API, with their text
    codex.send("[[error 400 out of order]]")
    assert codex.becomes("error")["message"] == "out of order"
    codex.send("[[usage-limit come back later]]")
    report = codex.becomes("error", "limit")
    assert "usage limit" in report["message"]
    assert report["until"]

    # a terminal that goes on after the turn
    behind = lodging.place / "behind"
    os.mkfifo(behind)
    codex.send("[[background cat behind]]")
    report = eventually(lambda: background(codex, 1), LONG_S)
    assert "cat behind" in report["message"]
    os.close(eventually(lambda: opened(behind), LONG_S))
    eventually(lambda: background(codex, 0), LONG_S)

    # another conversation, begun in the terminal
    before = codex.shown()["conversation"]
    codex.send("/new", "--force")
    codex.becomes("waiting")
    eventually(lambda: codex.shown()["conversation"] != before, LONG_S)
    assert codex.shown()["supports_resume"] is False
    codex.send("elsewhere [[say here]]")
    codex.becomes("done")
    assert model.history() == ["elsewhere [[say here]]"]

    told = codex.told()
    for state in (
        ("working", ""),
        ("blocked", "permission"),
        ("done", ""),
        ("error", ""),
        ("error", "limit"),
        ("idle", ""),
    ):
        assert state in told
    codex.keys(CTRL_C)
    codex.truth.ended()
    assert (codex.shown()["label"], codex.shown()["exit"]["code"]) == ("completed", 0)


@pytest.mark.timeout(300)
def test_answers_count_once_and_conversations_come_back(ground: Ground, lodging: AgentHome, model: ModelServer) -> None:
    place: Path = lodging.place
    codex = Driven.begin(ground, lodging, extra=("-s", "workspace-write", "-a", "on-request"))
    codex.becomes("waiting")
    assert codex.shown()["supports_resume"] is False

    codex.send("first [[ask touch yes]]")
    asks(codex)
    codex.answer("yes")
    codex.becomes("done")
    assert (place / "yes").exists()
    codex.answer("yes", check=4)
    codex.send("second [[ask touch no]]")
    asks(codex)
    codex.answer("no")
    codex.becomes("done")
    assert not (place / "no").exists()

    # killed in the middle of a stream, at a permission, and in a tool: the same conversation goes on
    conversation = codex.shown()["conversation"]
    codex.send("third [[hold stream]]")
    eventually(lambda: model.waiting("stream"), LONG_S)
    codex.kill()
    assert codex.shown()["exit"]["signal"] == "SIGKILL"
    assert codex.shown()["supports_resume"] is True
    assert "goes on with its conversation" in codex.resume()
    model.release("stream")
    codex.becomes("waiting")
    assert codex.shown()["conversation"] == conversation
    codex.send("fourth [[ask touch never]]")
    codex.becomes("blocked", "permission")
    codex.kill()
    codex.resume()
    codex.becomes("waiting")
    os.mkfifo(place / "tool")
    codex.send("fifth [[bash cat tool]]")
    writer = eventually(lambda: opened(place / "tool"), LONG_S)
    codex.kill()
    os.close(writer)
    codex.resume()
    codex.becomes("waiting")
    codex.send("sixth [[bash touch written]]")
    codex.becomes("done")
    assert [prompt.split()[0] for prompt in model.history()] == ["first", "second", "third", "fourth", "fifth", "sixth"]
    assert [prompt.text.split()[0] for prompt in model.prompts()].count("first") == 1
    assert (place / "written").exists()
    assert not (place / "never").exists()
    assert codex.shown()["conversation"] == conversation

    # a restart begins anew, and sends nothing by itself
    assert "a new conversation" in codex.restart()
    codex.becomes("waiting")
    assert codex.shown()["conversation"] != conversation
    codex.send("alone")
    codex.becomes("done")
    assert model.history() == ["alone"]
    codex.end()
    assert codex.shown()["exit"]["signal"] == "SIGTERM"
    assert not left(codex)


@pytest.mark.timeout(300)
def test_prompts_arrive_as_they_are(ground: Ground, lodging: AgentHome, model: ModelServer) -> None:
    codex = Driven.begin(ground, lodging)
    codex.becomes("waiting")
    long = "\n".join(f"line {number} of a long prompt" for number in range(400))
    texts = ("two\nlines\n\nand a gap", long, "☃ naïve 漢字 \u202e", "@nobody", "-h", "ends with \\", "/nothing")
    for text in (*texts, "!touch shell", "# remember", "\ttab and spaces  "):
        assert codex.send(text)["confirmed"] is True
        codex.becomes("done")
        assert model.history()[-1] == text
    assert not (lodging.place / "shell").exists()
    codex.end()


@pytest.mark.timeout(120)
def test_a_start_dialog_is_told_and_never_answered_by_accident(ground: Ground, lodging: AgentHome) -> None:
    settings = lodging.home / ".codex/config.toml"
    hook = '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "/bin/true"\n'
    settings.write_text(settings.read_text() + hook)
    codex = Driven.begin(ground, lodging)
    report = codex.becomes("blocked", "dialog")
    assert "hooks" in report["message"]
    assert "hooks" in codex.refused("this would press Enter")
    assert "trusted_hash" not in settings.read_text()
    codex.end()


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
    codex.answer("yes")
    codex.becomes("done")
    assert (lodging.place / "asked").exists()
    kill_watcher(codex)
    assert codex.becomes("done")["message"] == "Done."
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


def opened(fifo: Path) -> int | None:
    """The fifo's other end, once somebody reads it."""
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def background(codex: Driven, count: int) -> dict[str, str] | None:
    shown = codex.shown()
    return shown["report"] if (shown["attention"], shown["report"]["background"]) == ("done", count) else None
