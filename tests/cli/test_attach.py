"""``hitch attach`` on a real terminal: what one sees, what is typed, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.advice import proposed
from tests.cli.attaching import DETACH, PATIENCE_S, PROMPT, Terminals, folder, logged, recorder, shell, state, terminals
from tests.ground import Ground
from tests.support import Hitch, Process, eventually, halt


@pytest.fixture
def tty(home: Path) -> Iterator[Terminals]:
    with terminals() as made:
        yield made


def test_attach_shows_the_screen_and_takes_what_is_typed(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch, script="echo earlier words")
    me = tty("attach", "dev")
    me.shows("earlier words")
    me.shows(PROMPT.strip())
    me.type(b"echo $((6 * 7)) words\r")
    me.shows("42 words")


def seen_at(name: str = "dev") -> str:
    path = folder(name) / "seen.json"
    return str(json.loads(path.read_text())["at"]) if path.exists() else ""


def test_the_first_line_and_the_title_say_how_to_leave(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    assert b"[attached to dev; Ctrl-B D leaves it running]" in me.received
    assert b"\x1b]2;dev: Ctrl-B D leaves it running\x1b\\" in me.received
    me.type(DETACH)
    assert me.ends() == 0
    assert me.is_restored()


@pytest.mark.parametrize("setting", ["", "ctrl-b d"])
def test_inside_tmux_another_key_leaves_unless_the_setting_says_which(
    ground: Ground, tty: Terminals, setting: str
) -> None:
    if setting:
        ground.configure(f'detach_key = "{setting}"')
    heard = ground.place / "heard"
    recorder(ground.hitch, heard)
    me = tty("attach", "dev", TMUX="/tmp/tmux,1,0")
    me.shows("recorder ready")
    words = "Ctrl-B D" if setting else "Ctrl-\\ Ctrl-\\"
    assert f"[attached to dev; {words} leaves it running]".encode() in me.received
    me.type(b"\x02\x02" if setting else b"\x02d\x1cx")
    wanted = b"\x02" if setting else b"\x02d\x1cx"
    eventually(lambda: heard.read_bytes() == wanted, what="keys that are none of ours")
    me.type(DETACH if setting else b"\x1c\x1c")
    assert me.ends() == 0
    assert me.lines()[-1] == "[detached from dev; hitch attach dev comes back]"


def test_who_is_attached_has_seen_the_session_and_what_it_reports_meanwhile(ground: Ground, tty: Terminals) -> None:
    script = "read x; printf '\\033]7501;state=done\\a'; echo reported; exec cat"
    ground.hitch("run", "--name", "dev", "--", "sh", "-c", script)
    assert seen_at() == ""
    me = tty("attach", "dev")
    eventually(seen_at, what="that somebody looks")
    first = seen_at()
    me.until(lambda: me.is_raw(), "the visit")
    me.type(b"\r")
    me.shows("reported")
    eventually(lambda: seen_at() > first, what="that what it reports is seen")
    (row,) = ground.hitch("ps", "--json").json()
    assert (row["headline"], row["section"]) == ("Finished", "quiet")
    while_there = seen_at()
    me.type(DETACH)
    assert me.ends() == 0
    assert seen_at() > while_there


def test_a_look_that_cannot_be_written_down_is_a_look(ground: Ground, tty: Terminals) -> None:
    shell(ground.hitch)
    (folder() / "seen.json").mkdir()
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    me.type(DETACH)
    assert me.ends() == 0


@pytest.mark.ids("F15")
def test_detaching_leaves_the_session_running_and_exiting_completes_it(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    me.type(DETACH)
    assert me.ends() == 0
    assert me.lines()[-1] == "[detached from dev; hitch attach dev comes back]"
    assert me.is_restored()
    assert state() == "running"
    again = tty("attach", "dev")
    again.shows(PROMPT.strip())
    again.type(b"exit\r")
    assert again.ends() == 0
    assert again.lines()[-1] == "[dev: completed]"
    assert again.is_restored()
    assert state() == "completed"


@pytest.mark.ids("F14")
def test_the_last_line_is_shown_before_the_status_when_the_agent_ends(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    me.type(b"stty -echo; for i in 1 2 3; do echo line $i; done; echo the very last; exit 1\r")
    assert me.ends() == 0
    assert me.lines()[-2:] == ["the very last", "[dev: failed: command exited with code 1]"]
    assert me.is_restored()


@pytest.mark.ids("F14")
@pytest.mark.parametrize("pause", ["0", "0.1", "0.3", "0.5"])
def test_the_last_line_is_shown_when_the_agent_ends_while_a_client_attaches(
    hitch: Hitch, tty: Terminals, pause: str
) -> None:
    script = f"sleep {pause}; echo the very last; exit 3"
    me = tty("run", "--name", "dev", "--attach", "--", "sh", "-c", script)
    assert me.ends() == 0
    assert me.lines()[-2:] == ["the very last", "[dev: failed: command exited with code 3]"]
    assert me.is_restored()


def test_run_with_attach_enters_at_once(hitch: Hitch, tty: Terminals) -> None:
    me = tty("run", "--name", "dev", "--attach", "--env", f"PS1={PROMPT}", "--", "sh", cols=90, rows=20)
    me.shows(PROMPT.strip())
    me.type(b"stty size\r")
    me.shows("20 90")
    me.type(DETACH)
    assert me.ends() == 0


def test_a_session_that_was_stopped_says_so(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    hitch("stop", "--now", "dev")
    assert me.ends() == 0
    assert me.lines()[-1] == "[dev: stopped]"


def test_a_session_that_has_ended_cannot_be_entered(hitch: Hitch, tty: Terminals) -> None:
    hitch("run", "--name", "dev", "--", "sh", "-c", "exit 1", check=False)
    eventually(lambda: state() == "failed")
    me = tty("attach", "dev", cols=200)
    assert me.ends() == 4
    assert me.lines()[-1] == (
        "hitch: dev is not running: failed: command exited with code 1; "
        "hitch logs dev shows its output, hitch restart dev starts it again"
    )
    assert me.is_restored()


def test_attach_wants_a_terminal(hitch: Hitch) -> None:
    shell(hitch)
    answer = hitch("attach", "dev", check=2)
    assert "hitch logs -f dev follows without one" in answer.err


def test_an_unknown_session_is_not_found(hitch: Hitch) -> None:
    assert "no session 'nobody'" in hitch("attach", "nobody", check=3).err


def test_a_session_cannot_enter_itself(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    session = hitch("ps", "--json").json()[0]["id"]
    me = tty("attach", "dev", HITCHPOST_SESSION=session)
    assert me.ends() == 4
    assert "inside that session" in me.text()


def test_a_detach_key_that_makes_no_sense_is_told_before_anything_happens(
    hitch: Hitch, tty: Terminals, tmp_path: Path
) -> None:
    shell(hitch)
    config = tmp_path / "config.toml"
    config.write_text('detach_key = "hyper-x"')
    me = tty("attach", "dev", HITCHPOST_CONFIG=str(config))
    assert me.ends() == 2
    assert "expected detach_key" in me.text()


def test_the_detach_key_is_a_setting(hitch: Hitch, tty: Terminals, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    recorder(hitch, heard)
    config = tmp_path / "config.toml"
    config.write_text('detach_key = "ctrl-a x"')
    me = tty("attach", "dev", HITCHPOST_CONFIG=str(config))
    me.shows("recorder ready")
    me.type(b"\x02d!")
    me.shows("heard")
    me.type(b"\x01x")
    assert me.ends() == 0
    assert heard.read_bytes() == b"\x02d!"


def test_keys_reach_the_agent_byte_by_byte(hitch: Hitch, tty: Terminals, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    recorder(hitch, heard)
    me = tty("attach", "dev")
    me.shows("recorder ready")
    keys = (
        b"\x03\x04\x1a\x1c\x11\x13\x7f\x00\r\n\x1b[A\x1bOP" + "日".encode() + b"\x02\x02" + b"\x1b[200~\x02d\x1b[201~"
    )
    me.type(keys + b"!")
    me.shows("heard")
    me.type(b"\x1b")
    eventually(lambda: heard.read_bytes() == keys.replace(b"\x02\x02", b"\x02") + b"!\x1b")
    me.type(b"\x1b[98;5u\x1b[98;5:3u\x1b[100u")
    assert me.ends() == 0


def test_a_large_paste_arrives_whole(hitch: Hitch, tty: Terminals, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    recorder(hitch, heard)
    me = tty("attach", "dev")
    me.shows("recorder ready")
    paste = b"".join(b"%06d " % number for number in range(40_000)) + b"!"
    for begin in range(0, len(paste), 1000):
        piece = paste[begin : begin + 1000]
        while piece:
            try:
                piece = piece[os.write(me.master, piece) :]
            except BlockingIOError:
                me.read()
    me.shows("heard")
    assert heard.read_bytes() == paste


def test_history_can_be_scrolled_back_to(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch, script="for i in $(seq 1 100); do echo line $i; done")
    eventually(lambda: b"line 100" in logged())
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    me.until(lambda: "Attached to" not in me.text(), "the end of the hint")
    everything = me.screen._terminal.contents()
    assert everything.startswith("outer$ hitch attach\n")
    assert "\n".join(f"line {number}" for number in range(1, 101)) in everything


def test_a_full_screen_program_is_shown_and_left_behind_when_detaching(
    hitch: Hitch, tty: Terminals, tmp_path: Path
) -> None:
    modes = r"\x1b[?2004h\x1b[?1003h\x1b[?1006h\x1b[?1h\x1b[>7u\x1b[?25l"
    recorder(hitch, tmp_path / "heard", rf"below\r\n\x1b[?1049h\x1b[2J{modes}\x1b[3;9r\x1b[5;10H\x1b[31m")
    eventually(lambda: b"recorder ready" in logged())
    me = tty("attach", "dev")
    me.shows("recorder ready")
    assert me.lines()[4] == "         recorder ready"
    assert me.screen.alternate()
    assert me.screen.input_modes() == b"\x1b[?1h\x1b[?2004h\x1b[>7u"
    me.type(DETACH)
    assert me.ends() == 0
    assert me.is_restored()
    assert "recorder ready" not in me.text()
    assert me.lines()[0] == "below"
    assert me.lines()[-1].startswith("[detached from dev")


def test_what_a_full_screen_program_showed_last_is_printed_when_it_dies(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    me.type(b"stty -echo; printf '\\033[?1049h\\033[2J\\033[Hpanic: no more'; kill -9 $$\r")
    assert me.ends() == 0
    assert me.lines()[-2:] == ["panic: no more", "[dev: failed: command killed by SIGKILL]"]
    assert me.is_restored()


@pytest.mark.ids("F17")
def test_the_loss_of_the_keeper_is_told(hitch: Hitch, tty: Terminals, home: Path) -> None:
    shell(hitch)
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    (keeper,) = (one for one in Process.all() if one.is_keeper and any(str(home) in word for word in one.argv))
    os.kill(keeper.pid, signal.SIGKILL)
    assert me.ends() == 1
    assert "keeper lost" in me.lines()[-1]
    assert me.is_restored()


def test_lost_output_is_announced(hitch: Hitch, tty: Terminals, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("log_cap_mib = 1")
    go = tmp_path / "go"
    code = (
        "import os, sys, time\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
        "for n in range(600): os.write(1, b'x' * 4095 + b'\\n')\n"
        "os.write(1, b'flood over'); time.sleep(1000)"
    )
    hitch("run", "--name", "dev", "--", sys.executable, "-c", code, go, env={"HITCHPOST_CONFIG": str(config)})
    me = tty("attach", "dev")
    me.until(me.is_raw)
    halt(me.process.pid)
    go.touch()
    eventually(lambda: b"flood over" in logged())
    os.kill(me.process.pid, signal.SIGCONT)
    me.shows("flood over")
    assert me.received.count(b"bytes are no longer in the log]") == 1


def test_a_terminal_that_is_too_slow_is_shown_where_the_output_led(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    me.type(b"seq 1 900000; echo flood $((1 + 1)) over\r")  # six million bytes
    eventually(lambda: b"flood 2 over" in logged(), timeout_s=PATIENCE_S)
    me.shows("flood 2 over")
    assert me.received.count(b"came too fast for this terminal") >= 1
    said = me.received.decode(errors="replace")
    assert "\n899999\n" in hitch(*proposed(said, "hitch logs {} has them", 3)[1:]).out
    assert len(me.received) < 5_000_000
    me.type(b"echo still $((1 + 2)) here\r")
    me.shows("still 3 here")


def test_a_stalled_terminal_can_still_be_left(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    me = tty("attach", "dev")
    me.shows(PROMPT.strip())
    me.type(b"yes\r")
    me.until(me.is_stalled)
    me.type(DETACH)
    assert me.ends(reading=False) == 0
    assert me.is_restored()
    assert state() == "running"


def test_a_name_with_escapes_cannot_draw_on_the_terminal(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch, "a\x1b[2Jb")
    me = tty("attach", "1")
    me.shows(PROMPT.strip())
    me.type(DETACH)
    me.ends()
    assert r"\x1b[2J" in me.lines()[-1]


def test_without_the_emulator_the_last_output_is_shown(hitch: Hitch, tty: Terminals, tmp_path: Path) -> None:
    (tmp_path / "pyghostty.py").write_text("raise ImportError('not for this platform')")
    shell(hitch, script="echo earlier words")
    me = tty("attach", "dev", PYTHONPATH=str(tmp_path))
    me.shows("earlier words")
    me.type(b"echo $((6 * 7))\r")
    me.shows("42")
    me.type(DETACH)
    assert me.ends() == 0
    assert me.lines()[-1].startswith("[detached from dev")
    assert me.is_restored()
