"""``hitch adopt --tmux``: a program that somebody else started is watched, typed into and ended."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.live import live
from tests.ground import Ground, Truth, alive
from tests.support import Hitch, eventually


@dataclass(slots=True)
class Theirs:
    """A tmux server of the user's own."""

    ground: Ground
    socket: Path

    def tmux(self, *words: str, check: bool = True) -> str:
        argv = ["tmux", "-S", str(self.socket), "-f", "/dev/null", *words]
        env = Hitch.environment()
        done = subprocess.run(argv, capture_output=True, text=True, cwd=self.ground.place, env=env, check=check)
        return done.stdout

    def begin(self, script: str, session: str = "work") -> int:
        """Start a program in a pane; its process."""
        self.tmux("new-session", "-d", "-s", session, "-x", "80", "-y", "24", "--", "sh", "-c", script)
        return int(self.tmux("display-message", "-p", "-t", session, "#{pane_pid}"))

    def adopt(self, target: str = "work", name: str = "dev") -> Truth:
        words = ("adopt", "--tmux", target, "--socket", str(self.socket), "--name", name, "--json")
        return Truth(self.ground.home, self.ground.hitch(*words).json()["id"])


@pytest.fixture
def theirs(ground: Ground) -> Iterator[Theirs]:
    made = Theirs(ground, ground.home.parent / "theirs.sock")
    yield made
    made.tmux("kill-server", check=False)


def test_output_comes_from_now_on_after_the_screen_as_it_was(theirs: Theirs, ground: Ground) -> None:
    theirs.begin('echo before; while read -r line; do echo "<$line>"; done')
    eventually(lambda: "before" in theirs.tmux("capture-pane", "-p", "-t", "work"))
    dev = theirs.adopt()
    row = ground.ps(dev)
    assert (row["runtime"], row["status"], row["session_alive"]) == ("adopted", "running", True)
    eventually(lambda: b"before" in dev.output())
    theirs.tmux("send-keys", "-t", "work", "typed by hand", "Enter")
    eventually(lambda: b"<typed by hand>\r\n" in dev.output())


def test_a_prompt_arrives_byte_by_byte(theirs: Theirs, ground: Ground) -> None:
    theirs.begin("stty -echo; cat > got")
    theirs.adopt()
    text = "#(touch canary) #{pid} %1 \\ back ; -x 'quoted' \"twice\" ünï 漢字 $(touch canary)\nsecond"
    ground.hitch("send", "dev", text)
    eventually(lambda: (ground.place / "got").exists() and (ground.place / "got").read_text() == text + "\n")
    assert not (ground.place / "canary").exists()


def test_its_end_is_seen_and_its_status_is_not_made_up(theirs: Theirs, ground: Ground) -> None:
    theirs.begin("read line; exit 0")
    dev = theirs.adopt()
    theirs.tmux("send-keys", "-t", "work", "Enter")
    assert dev.ended() == "failed"
    assert ground.ps(dev)["label"] == "failed: exit status unknown"
    assert dev.exit()["code"] is None


def test_stop_ends_the_program_and_what_is_below_it(theirs: Theirs, ground: Ground) -> None:
    pid = theirs.begin("sleep 1001 & sleep 1002; sleep 1003")
    dev = theirs.adopt()
    eventually(lambda: len([one for one in ground.processes() if one.argv[0] == "sleep"]) == 2)
    ground.stop(dev)
    assert dev.state == "stopped"
    assert not alive(pid)
    assert [one for one in ground.processes() if one.argv[0] == "sleep"] == []


@pytest.mark.ids("F17")
def test_how_a_program_ended_while_its_keeper_was_gone_is_unknown(theirs: Theirs, ground: Ground) -> None:
    pid = theirs.begin("while read line; do echo got:$line; done")
    dev = theirs.adopt()
    dev.kill_keeper()
    assert ground.ps(dev)["label"] == "running (keeper lost)"
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: ground.ps(dev)["label"] == "failed: exit status unknown")
    assert "its command is unknown" in ground.hitch("restart", "dev", check=4).err


def test_what_cannot_be_adopted_is_refused_with_the_reason(theirs: Theirs, ground: Ground) -> None:
    theirs.begin("sleep 1000")
    theirs.adopt()
    words = ("adopt", "--socket", str(theirs.socket), "--tmux")
    assert "is already adopted, as dev" in ground.hitch(*words, "work", check=4).err
    for target in ("nowhere", "#(touch canary)", "work:9.9", "%99"):
        assert ground.hitch(*words, target, check=4).err.startswith("hitch: tmux")
    assert not (ground.place / "canary").exists()
    assert len(ground.hitch("ps", "--json").json()) == 1
    said = ground.hitch("adopt", "--socket", str(theirs.socket) + "x", "--tmux", "work", check=4).err
    assert "tmux" in said


def test_a_name_means_itself_and_not_the_beginning_of_another(theirs: Theirs, ground: Ground) -> None:
    other = theirs.begin("sleep 1000", session="devbox")
    theirs.tmux("rename-window", "-t", "devbox", "editor")
    words = ("adopt", "--socket", str(theirs.socket), "--tmux")
    for target in ("dev", "dev:0", "dev.0", "devbox:ed", "devb*"):
        assert ground.hitch(*words, target, check=4).err.startswith("hitch: tmux"), target
    assert ground.hitch("ps", "--json").json() == []
    mine = theirs.begin("sleep 1000", session="dev")
    assert theirs.adopt("dev").agent_pid() == mine
    assert theirs.adopt("devbox:editor.0", name="box").agent_pid() == other
    ground.hitch("stop", "dev")
    assert not alive(mine)
    assert alive(other)


def test_what_is_and_is_not_known_is_said(theirs: Theirs, ground: Ground) -> None:
    theirs.begin("sleep 1000")
    said = ground.hitch("adopt", "--socket", str(theirs.socket), "--tmux", "work", "--name", "dev").err
    assert "known: output from now on" in said
    assert "not known: its exit status (tmux is its parent)" in said


def test_attach_enters_their_tmux(theirs: Theirs, ground: Ground) -> None:
    theirs.begin("while read line; do echo got:$line; done")
    dev = theirs.adopt()
    with live("attach", "dev", terminal=(80, 24)) as visit:
        visit.press(b"hello\r")
        visit.shows(b"got:hello")
        visit.press(b"\x02d")
        assert visit.code() == 0
    assert dev.state == "running"


@pytest.mark.ids("S10")
def test_S10_the_story_keeps_no_text_that_the_pane_hid(theirs: Theirs, ground: Ground) -> None:
    theirs.begin("exec bash -c 'read -r name; read -rsp password: word; echo done; exec sleep 1000'")
    dev = theirs.adopt()
    ground.hitch("send", "--force", "dev", "ann")
    eventually(lambda: b"password:" in dev.output())
    ground.hitch("send", "--force", "dev", "canary")
    eventually(lambda: b"done" in dev.output())
    told = [(line.get("text"), line.get("letters")) for line in dev.story() if line["event"] == "prompt"]
    assert told == [("ann", None), (None, 6)]
