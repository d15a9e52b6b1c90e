"""S10: what a person asks of an agent does not stand in the list of processes, which every user can read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.boxes import PLAIN, Boxed
from tests.ground import Ground, Truth
from tests.support import Process, eventually

WORD = "-".join(("look", "at", "the", "canary"))
AGENT = """#!/bin/sh
stty -echo; printf '\\033[?2004h'
[ $# -gt 0 ] && printf '<%s>\\n' "$*"
while read -r line; do printf '<%s>\\n' "$line"; done
"""
MINE = """
title = "Mine"
argv = ["mine"]
prompt_args = ["{prompt}"]
ready_after_s = 3
shows_prompt = true
"""


@pytest.fixture
def place(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program that stands in for an agent which takes a first prompt as an argument."""
    (ground.place / "mine").write_text(AGENT)
    (ground.place / "mine").chmod(0o755)
    ground.add_agent("mine", MINE)
    monkeypatch.setenv("PATH", f"{ground.place}:{os.environ['PATH']}")
    return ground.place


def carriers() -> Iterator[Process]:
    """The processes that have the text among their arguments."""
    return (process for process in Process.all() if any(WORD in word for word in process.argv))


def was_heard(session: Truth) -> None:
    eventually(lambda: WORD.encode() in session.output(), what="the prompt")


@pytest.mark.ids("S10")
@pytest.mark.parametrize("runtime", ["local", "tmux"])
@pytest.mark.parametrize("way", ["--prompt -", "--prompt-file -", "--prompt-file prompt"])
def test_S10_a_prompt_that_is_read_is_typed_and_no_process_has_it_as_an_argument(
    ground: Ground, place: Path, runtime: str, way: str
):
    (place / "prompt").write_text(f"{WORD}\n")
    words = ("run", "mine", "--json", "--runtime", runtime, *way.split())
    answer = ground.hitch(*words, cwd=place, stdin=f"{WORD}\n" if way.endswith("-") else "")
    session = Truth(ground.home, answer.json()["id"])
    was_heard(session)
    ground.hitch("send", session.id, "-", stdin=f"again {WORD}\n")
    eventually(lambda: session.output().count(WORD.encode()) >= 2, what="the second prompt")
    assert [*carriers()] == []
    assert WORD not in str(session.run_file())
    ground.stop(session)


@pytest.mark.ids("S10")
@pytest.mark.parametrize("runtime", ["local", "tmux"])
def test_S10_a_prompt_that_is_an_argument_is_only_its_agents(ground: Ground, place: Path, runtime: str):
    answer = ground.hitch("run", "mine", "--json", "--runtime", runtime, "--prompt", WORD, cwd=place)
    session = Truth(ground.home, answer.json()["id"])
    was_heard(session)
    assert [process.pid for process in carriers()] == [session.agent_pid()]
    ground.stop(session)


@pytest.mark.ids("S10")
def test_S10_in_a_container_the_same_holds(boxed: Boxed):
    made = boxed.engine.docker("create", PLAIN, "true").stdout.strip()
    boxed.engine.docker("commit", "--change=ENV PATH=/workspace:/usr/bin", made, "hp-prompted")
    boxed.engine.docker("rm", made)
    (boxed.ground.place / "claude").write_text(AGENT)
    (boxed.ground.place / "claude").chmod(0o755)
    box = ("--runtime", "docker", "--image", "hp-prompted", "--network", "none", "--workspace", str(boxed.ground.place))
    for words, count in ((("--prompt-file", "-"), 0), (("--prompt", WORD), 1)):
        answer = boxed.ground.hitch("run", "claude", "--json", "--name", "dev", *box, *words, stdin=f"{WORD}\n")
        session = Truth(boxed.ground.home, answer.json()["id"])
        was_heard(session)
        assert len([*carriers()]) == count
        boxed.ground.hitch("rm", "--force", "dev")
    boxed.engine.docker("rmi", "hp-prompted")


@pytest.mark.ids("S10")
def test_S10_a_prompt_that_cannot_be_read_starts_nothing(ground: Ground, place: Path):
    assert "no-such-file" in ground.hitch("run", "mine", "--prompt-file", "no-such-file", cwd=place, check=2).err
    assert "got a device" in ground.hitch("run", "mine", "--prompt-file", "/dev/zero", check=2).err
    both = ("--prompt", "a", "--prompt-file", "-")
    assert "cannot be combined" in ground.hitch("run", "mine", *both, check=2).err
    assert ground.ids() == []
