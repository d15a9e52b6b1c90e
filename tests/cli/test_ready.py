"""A command that starts an agent answers when it is ready: what ends at once with an error was not started."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hitchpost.ops.sessions import send
from tests.cli.live import live
from tests.ground import Ground, Truth
from tests.support import eventually

PROMPTED = """#!/usr/bin/env python3
import os, sys, termios, time
print("a banner", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
if os.path.exists("leave"):
    sys.exit(0)
termios.tcflush(0, termios.TCIFLUSH)
print("\\x1b[?2004h> ", end="", flush=True)
with open("got", "w") as file:
    file.write(sys.stdin.readline())
sys.stdin.readline()
"""
"""An agent that drops what was typed before it shows its prompt, as those do that set up their terminal then."""


@pytest.fixture
def agents(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for programs that have the names of agents."""
    folder = ground.place / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def program(agents: Path, name: str, text: str) -> None:
    (agents / name).write_text(text)
    (agents / name).chmod(0o755)


def prompted(ground: Ground, agents: Path) -> None:
    program(agents, "mine", PROMPTED)
    ground.add_agent("mine", 'title = "Mine"\nargv = ["mine"]\nready_after_s = 3\nshows_prompt = true\n')


def only(ground: Ground) -> Truth:
    (session,) = ground.ids()
    return Truth(ground.home, session)


@pytest.mark.ids("C70-9")
@pytest.mark.parametrize("script", ["exit 3", "echo no key; exit 3", "sleep 0.2; echo no key; exit 3"])
def test_an_agent_that_ends_at_once_with_an_error_is_a_failed_start(ground: Ground, agents: Path, script: str) -> None:
    program(agents, "claude", f"#!/bin/sh\n{script}\n")
    told = ground.hitch("run", "claude", "--name", "dev", "--workspace", ground.place, check=1)
    why = "dev ended at once: command exited with code 3; hitch logs dev shows what it printed"
    assert (told.out, told.err) == ("", f"hitch: {why}\n")
    assert ground.ps(only(ground))["label"] == "failed: command exited with code 3"
    for again in ("restart", "resume"):
        told = ground.hitch(again, "dev", check=1)
        assert (told.out, told.err) == ("", f"hitch: {why}\n")
    assert "no key" not in script or "no key" in ground.hitch("logs", "dev").out


@pytest.mark.ids("C70-9")
def test_a_program_that_ends_at_once_with_an_error_is_a_failed_start(ground: Ground) -> None:
    told = ground.hitch("run", "--name", "dev", "--", "false", check=1)
    assert told.err.startswith("hitch: dev ended at once: command exited with code 1")
    told = ground.hitch("run", "--name", "killed", "--", "sh", "-c", "kill -KILL $$", check=1)
    assert told.err.startswith("hitch: killed ended at once: command killed by SIGKILL")


@pytest.mark.ids("C70-9")
def test_a_program_that_has_done_its_work_at_once_is_no_failure(ground: Ground) -> None:
    assert ground.hitch("run", "--name", "dev", "--", "true").out.startswith("dev started as session 1")
    only(ground).ended()
    assert ground.hitch("restart", "dev").out in ("dev: completed (run 2)\n", "dev: running (run 2)\n")
    assert only(ground).ended(run=2) == "completed"


@pytest.mark.ids("C70-9")
def test_an_agent_that_prints_nothing_and_lives_is_ready_after_a_stated_time(ground: Ground, agents: Path) -> None:
    program(agents, "mine", "#!/bin/sh\nexec sleep 1000\n")
    ground.add_agent("mine", 'title = "Mine"\nargv = ["mine"]\nready_after_s = 3\n')
    assert ground.hitch("run", "mine", "--name", "dev", "--workspace", ground.place).out.startswith("dev started")
    assert ground.ps(only(ground))["state"] == "running"
    ground.hitch("stop", "--now", "dev")


@pytest.mark.ids("C70-9")
def test_an_attached_person_sees_the_end_of_an_agent_that_ends_at_once(ground: Ground) -> None:
    told = ground.hitch("run", "--attach", "--name", "dev", "--", "sh", "-c", "echo no key; exit 3", check=False)
    assert "ended at once" not in told.err
    assert only(ground).ended() == "failed"


def test_a_first_prompt_goes_to_the_first_run_only(ground: Ground, agents: Path) -> None:
    program(agents, "mine", '#!/bin/sh\nfor word; do echo "$word"; done >> words\necho >> words\nexec sleep 1000\n')
    ground.add_agent("mine", 'title = "Mine"\nargv = ["mine"]\nprompt_args = ["{prompt}"]\nready_after_s = 0.05\n')
    prompt = "delete the old tests"
    words = ("--name", "dev", "--workspace", ground.place, "--prompt", prompt, "--", "--model", "opus")
    ground.hitch("run", "mine", *words)
    ground.hitch("restart", "dev")
    ground.hitch("stop", "dev")
    ground.hitch("resume", "dev")
    expected = f"--model\nopus\n{prompt}\n\n--model\nopus\n\n--model\nopus\n\n"
    eventually(lambda: (ground.place / "words").read_text() == expected, what="three runs, the first with the prompt")
    session = only(ground)
    assert prompt in session.run_file(1)["argv"]
    assert prompt not in session.run_file(2)["argv"]
    assert json.loads((session.folder / "session.json").read_bytes())["argv"] == ["mine", "--model", "opus"]
    ground.hitch("stop", "--now", "dev")


def test_a_first_prompt_is_typed_when_the_agent_shows_its_own(ground: Ground, agents: Path) -> None:
    prompted(ground, agents)
    with live("run", "mine", "--name", "dev", "--workspace", str(ground.place), "--prompt", "fix it") as started:
        eventually(lambda: ground.ids() and b"a banner" in only(ground).output(), what="the agent's banner")
        (ground.place / "go").touch()
        assert started.code() == 0, started.err()
    assert ground.said("got") == "\x1b[200~fix it\x1b[201~\n"
    ground.hitch("stop", "--now", "dev")


def test_a_text_to_an_agent_that_was_just_started_waits_for_its_prompt(ground: Ground, agents: Path) -> None:
    prompted(ground, agents)
    ground.hitch("run", "mine", "--name", "dev", "--workspace", ground.place)
    with live("send", "dev", "fix it") as sending:
        eventually(sending.is_asleep, what="a text that waits")
        (ground.place / "go").touch()
        assert sending.code() == 0, sending.err()
    assert ground.said("got") == "\x1b[200~fix it\x1b[201~\n"
    ground.hitch("stop", "--now", "dev")


def test_a_first_prompt_that_is_not_delivered_is_told_so(ground: Ground, agents: Path) -> None:
    prompted(ground, agents)
    with live("run", "mine", "--name", "dev", "--workspace", str(ground.place), "--prompt", "fix it") as started:
        eventually(lambda: ground.ids() and b"a banner" in only(ground).output(), what="the agent's banner")
        (ground.place / "leave").touch()
        (ground.place / "go").touch()
        assert started.code() == 1
        assert started.out() == b""
        assert started.err() == (
            "hitch: dev was started, but its first prompt was not delivered: dev is not running (completed);"
            " see hitch logs dev\n"
        )
    only(ground).ended()


def test_a_first_prompt_is_not_typed_into_an_agent_that_never_shows_its_own(
    ground: Ground, agents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send, "PROMPT_S", 3.0)
    prompted(ground, agents)
    words = ("--name", "dev", "--workspace", ground.place, "--prompt", "fix it")
    answer = ground.hitch.here("run", "mine", *words, check=1)
    why = "it did not show its prompt within 3 s"
    assert answer.err == (
        "dev: waiting until it shows that it has the prompt\n"
        f"hitch: dev was started, but its first prompt was not delivered: {why}; see hitch logs dev\n"
    )
    eventually(lambda: only(ground).output(), what="the agent's banner")
    assert only(ground).output() == b"a banner\r\n"
    ground.hitch("stop", "--now", "dev")
