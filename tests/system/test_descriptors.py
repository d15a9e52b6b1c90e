"""Commands whose caller has closed some of the standard descriptors."""

from __future__ import annotations

import itertools
import os
import subprocess

import pytest

from tests.ground import Ground, Truth, alive
from tests.support import Hitch

CLOSED = [some for count in (1, 2, 3) for some in itertools.combinations((0, 1, 2), count)]


def called(ground: Ground, closed: tuple[int, ...], *words: str) -> int:
    closing = " ".join(f"{fd}>&-" for fd in closed)
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", *ground.hitch.command, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=Hitch.environment(),
        timeout=60,
        check=False,
    ).returncode


@pytest.mark.parametrize("closed", CLOSED, ids=str)
def test_a_session_started_with_closed_standard_descriptors_lives_as_any_other(
    ground: Ground, closed: tuple[int, ...]
) -> None:
    words = ("run", "--name", "dev", "--workspace", str(ground.place), "--", "sleep", "1000")
    assert called(ground, closed, *words) == 0
    (row,) = ground.hitch("ps", "--json").json()
    dev = Truth(ground.home, row["id"])
    assert row["label"] == "running"
    assert int((dev.run() / "keeper.lock").read_text().split()[0]) == dev.run_file()["keeper"]["pid"]
    assert (dev.run() / "keeper.log").read_text() == ""
    agent = dev.agent_pid()
    assert sorted(map(int, os.listdir(f"/proc/{agent}/fd"))) == [0, 1, 2]
    assert called(ground, closed, "stop", "dev") == 0
    assert dev.state == "stopped"
    assert not alive(agent)


@pytest.mark.parametrize("words", [("ps",), ("status",), ("explain", "nobody"), ("--help",)], ids=" ".join)
def test_no_command_breaks_when_all_are_closed(ground: Ground, words: tuple[str, ...]) -> None:
    assert called(ground, (0, 1, 2), *words) == (3 if "nobody" in words else 0)
