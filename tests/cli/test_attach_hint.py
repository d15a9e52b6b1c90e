"""How to leave is said where it is seen, whatever the agent paints, and costs the agent nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.attaching import Terminals, terminals
from tests.support import Hitch, eventually

PAINTER = """
import itertools, os, select, sys
os.system("stty raw -echo")
for number in itertools.count():
    lines = "".join(f"\\r\\n{number} row {row}\\x1b[K" for row in range(1, os.get_terminal_size().lines))
    os.write(1, f"\\x1b]2;its own title\\x07\\x1b[H{number} row 0\\x1b[K{lines}".encode())
    if select.select([0], [], [], 0.05)[0]:
        os.write(1, b"\\x1b[2J\\x1b[Hheard " + os.read(0, 100))
        break
select.select([], [], [])
"""
"""Paints its whole screen and sets its title all the time, until it hears something."""


@pytest.fixture
def tty() -> Iterator[Terminals]:
    with terminals() as made:
        yield made


def test_how_to_leave_stands_over_what_the_agent_paints_until_a_key_is_pressed(hitch: Hitch, tmp_path: Path) -> None:
    hitch("run", "--name", "dev", "--", sys.executable, "-c", PAINTER)
    socket = str(tmp_path / "tmux.sock")

    def tmux(*words: str) -> str:
        argv = ["tmux", "-S", socket, *words]
        return subprocess.run(argv, capture_output=True, text=True, check=True, env=Hitch.environment()).stdout

    def shown() -> list[str]:
        return tmux("capture-pane", "-p").splitlines()

    tmux("new-session", "-d", "-s", "t", "-x", "80", "-y", "20", *Hitch().command, "attach", "dev")
    try:
        hint = " Attached to dev. Ctrl-\\ Ctrl-\\ leaves it running"
        eventually(lambda: hint in shown(), what="the hint")
        first = shown()
        eventually(lambda: shown()[1] != first[1] and hint in shown(), what="the hint over what was painted since")
        tmux("send-keys", "x")
        eventually(lambda: shown()[0] == "heard x", what="what it paints when it has heard the key")
        assert [line for line in shown()[1:] if line] == []
    finally:
        subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True, check=False)
    hitch("stop", "dev")


def test_a_question_to_the_terminal_ends_the_hint_and_is_answered(hitch: Hitch, tty: Terminals, tmp_path: Path) -> None:
    go = tmp_path / "go"
    asks = f"stty raw -echo; until test -e {go}; do sleep 0.01; done; printf '\\033[5;9H\\033[6n'; head -c 6 | od -c"
    hitch("run", "--name", "dev", "--", "sh", "-c", f"{asks}; exec sleep 1000")
    me = tty("attach", "dev", answers=True)
    me.shows("Attached to dev. Ctrl-B D leaves it running")
    go.touch()
    me.shows("[   5   ;   9   R")
    assert "Attached to" not in me.text()
    hitch("stop", "dev")
