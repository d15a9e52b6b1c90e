"""``hitch attach`` in the terminal that most people have around it: tmux."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.attaching import PATIENCE_S, PROMPT, shell, state
from tests.support import Hitch, LeakWatch, eventually

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Tmux:
    """A tmux server of the test's own, with a shell in one window."""

    def __init__(self, folder: Path) -> None:
        self.socket = str(folder / "tmux")
        self("-f", os.devnull, "new-session", "-d", "-x", "80", "-y", "20", "env", "PS1=outer> ", "sh")

    def __call__(self, *args: str) -> str:
        command = ["tmux", "-S", self.socket, *args]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=20, check=True)
        return done.stdout

    def type(self, *keys: str) -> None:
        self("send-keys", *keys)

    def lines(self) -> list[str]:
        return self("capture-pane", "-p").rstrip().splitlines()

    def shows(self, text: str) -> None:
        eventually(lambda: text in "\n".join(self.lines()), PATIENCE_S, f"{text!r} in {self.lines()}")


@pytest.fixture
def tmux(home: Path, leak_watch: LeakWatch) -> Iterator[Tmux]:
    made = Tmux(leak_watch.scratch)
    yield made
    made("kill-server")
    eventually(lambda: not any(process.is_tmux for process in leak_watch.processes()))


HITCH = shlex.join([sys.executable, "-m", "hitchpost"])


def test_attach_type_detach_and_come_back_in_tmux(hitch: Hitch, tmux: Tmux) -> None:
    shell(hitch)
    tmux.shows("outer>")
    tmux.type(f"stty -g > before; clear; {HITCH} attach dev", "Enter")
    tmux.shows(PROMPT.strip())
    tmux.type("stty size; echo $((6 * 7)) words", "Enter")
    tmux.shows("42 words")
    assert tmux.lines()[-3:] == ["20 80", "42 words", PROMPT.strip()]
    tmux.type("C-\\", "C-\\")
    tmux.shows("[detached from dev; hitch attach dev comes back]")
    tmux.type("clear; stty -g > after; cmp before after && echo the $((1 + 1)) are the same; rm before after", "Enter")
    tmux.shows("the 2 are the same")
    tmux.type(f"clear; {HITCH} attach dev", "Enter")
    tmux.shows("42 words")
    tmux.type("exit 3", "Enter")
    tmux.shows("[dev: failed: command exited with code 3]")
    assert state() == "failed"


def test_a_full_screen_program_comes_and_goes_in_tmux(hitch: Hitch, tmux: Tmux) -> None:
    shell(hitch)
    tmux.shows("outer>")
    tmux.type(f"clear; {HITCH} attach dev", "Enter")
    tmux.shows(PROMPT.strip())
    tmux.type(r"printf '\033[?1049h\033[2J\033[5;10Hfull screen'; read word; printf '\033[?1049l'", "Enter")
    eventually(lambda: tmux.lines()[:5] == ["", "", "", "", "         full screen"], PATIENCE_S)
    tmux.type("C-\\", "C-\\")
    tmux.shows("[detached from dev")
    assert "         full screen" not in tmux.lines()
    assert tmux("display-message", "-p", "#{alternate_on}").strip() == "0"
    tmux.type(f"clear; {HITCH} attach dev", "Enter")
    eventually(lambda: tmux.lines()[:5] == ["", "", "", "", "         full screen"], PATIENCE_S)
    tmux.type("", "Enter")
    tmux.shows(PROMPT.strip())
    assert tmux("display-message", "-p", "#{alternate_on}").strip() == "0"
    tmux.type("C-\\", "C-\\")
    tmux.shows("[detached from dev")


def test_the_size_follows_the_tmux_window(hitch: Hitch, tmux: Tmux) -> None:
    shell(hitch)
    tmux.shows("outer>")
    tmux.type(f"clear; {HITCH} attach dev", "Enter")
    tmux.shows(PROMPT.strip())
    tmux("resize-window", "-x", "100", "-y", "30")
    eventually(lambda: hitch("send", "dev", "stty size").code == 0 and "30 100" in tmux.lines(), PATIENCE_S)
