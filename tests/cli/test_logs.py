"""``hitch logs``."""

from __future__ import annotations

import hashlib
import os
import random
import re
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.settings import Settings
from tests.cli.live import live
from tests.ground import Ground
from tests.support import Hitch, end_home, eventually

PAINTED = r"printf '\033[31mred\033[0m\033]0;title\007 line\none\rtwo\007\n'"


def test_logs_print_text_without_what_acts_on_a_terminal(ground: Ground) -> None:
    session = ground.begin_sh(PAINTED)
    session.ended()
    answer = ground.hitch("logs", session.id)
    assert answer.out == "red line\ntwo\n"
    assert answer.err == ""


def test_raw_logs_are_the_very_bytes(ground: Ground) -> None:
    noise = random.Random(7).randbytes(300_000)
    (ground.place / "noise").write_bytes(noise)
    session = ground.begin_sh("stty raw; cat noise")
    session.ended()
    done = subprocess.run(
        [*ground.hitch.command, "logs", "--raw", session.id], capture_output=True, env=Hitch.environment(), check=True
    )
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(noise).digest()


def test_follow_prints_what_comes_when_it_comes_and_ends_with_the_run(ground: Ground) -> None:
    session = ground.begin_sh("echo one; while [ ! -e go ]; do sleep 0.05; done; echo two; exit 3")
    with live("logs", "-f", session.id) as logs:
        assert logs.shows(b"one\n") == b"one\n"
        (ground.place / "go").touch()
        assert logs.code() == 0
        assert logs.out() == b"one\ntwo\n"
        assert logs.err() == ""


def test_follow_of_a_flood_loses_nothing(ground: Ground) -> None:
    session = ground.begin_sh("while [ ! -e go ]; do sleep 0.05; done; stty raw; seq 400000")
    with live("logs", "--raw", "-f", session.id) as logs:
        (ground.place / "go").touch()
        assert logs.code(60) == 0
        assert logs.out() == b"".join(b"%d\n" % number for number in range(1, 400_001))


def test_follow_sleeps_while_nothing_comes(ground: Ground) -> None:
    session = ground.begin_sh("echo one; sleep 1000")
    with live("logs", "-f", session.id) as logs:
        logs.shows(b"one")
        eventually(logs.is_asleep, 60, what="a follower that does not poll")
    ground.stop(session, "--now")


def test_control_c_ends_following_and_is_no_error(ground: Ground) -> None:
    session = ground.begin_sh("echo one; sleep 1000")
    with live("logs", "-f", session.id) as logs:
        logs.shows(b"one")
        logs.signal(signal.SIGINT)
        assert logs.code() == 0
        assert logs.err() == ""
    ground.stop(session, "--now")


def test_follow_does_not_go_over_to_the_next_run(ground: Ground) -> None:
    session = ground.begin_sh("echo run $HITCHPOST_RUN; sleep 1000")
    with live("logs", "-f", session.id) as logs:
        logs.shows(b"run 1")
        ground.hitch("restart", session.id)
        assert logs.code() == 0
        assert logs.out() == b"run 1\n"
    ground.stop(session, "--now")


def test_each_run_has_its_own_log_and_the_newest_is_shown(ground: Ground) -> None:
    session = ground.begin_sh("echo run $HITCHPOST_RUN", name="dev")
    session.ended()
    ground.hitch("restart", session.id)
    session.ended(2)
    assert ground.hitch("logs", session.id).out == "run 2\n"
    assert ground.hitch("logs", "--run", "1", session.id).out == "run 1\n"
    for number in ("0", "3", "-1"):
        answer = ground.hitch("logs", "--run", number, session.id, check=3)
        assert answer.err == f"hitch: dev has no run {number}; its runs are 1 to 2\n"


def test_logs_of_a_session_that_is_not_there(hitch: Hitch) -> None:
    assert "no session 'dev'" in hitch("logs", "dev", check=3).err


def test_tail_prints_the_last_lines(ground: Ground) -> None:
    session = ground.begin_sh("seq 1000")
    session.ended()
    assert ground.hitch("logs", "--tail", "2", session.id).out == "999\n1000\n"
    assert ground.hitch("logs", "--tail", "0", session.id).out == ""
    assert ground.hitch("logs", "--tail", "1", "--raw", session.id).out == "1000\n"
    assert ground.hitch("logs", "--tail", "5000", session.id).out.startswith("1\n2\n")


def test_a_spinner_is_one_line_and_a_full_screen_program_its_screens(ground: Ground) -> None:
    spins = "for i in 1 2 3 4 5 6 7 8; do printf '\\r\\033[K| working %s' $i; done; echo; echo done"
    paints = "printf '\\033[?1049h'; for i in 1 2 3; do printf '\\033[2J\\033[Hpage %s\\r\\nof three' $i; done"
    session = ground.begin_sh(f"{spins}; {paints}; printf '\\033[?1049lback\\n'")
    session.ended()
    screens = "".join(f"page {number}\nof three\n" for number in (1, 2, 3))
    assert ground.hitch("logs", session.id).out == f"| working 8\ndone\n{screens}back\n"
    assert "| working 1" in ground.hitch("logs", "--raw", session.id).out


def test_the_tail_of_a_full_screen_program_is_as_many_lines_as_were_asked_for(ground: Ground) -> None:
    frame = "".join(f"\\033[{row};1Hrow {row} of %s\\033[K" for row in range(1, 25))
    script = f"printf '\\033[?1049h'; i=0; while [ $i -lt 3000 ]; do i=$((i+1)); printf '{frame}' "
    session = ground.begin_sh(script + "$i " * 24 + "; done; sleep 1000")
    eventually(lambda: session.output().endswith(b"row 24 of 3000\x1b[K"), 60, what="all frames")
    assert len(session.output()) > 1_000_000
    lines = "".join(f"row {row} of 3000\n" for row in range(20, 25))
    assert ground.hitch("logs", "--tail", "5", session.id).out == lines
    ground.stop(session, "--now")


def test_grep_looks_at_what_all_sessions_have_shown(ground: Ground) -> None:
    one = ground.begin_sh("echo alpha 1; printf 'al\\033[1mpha\\033[0m 2\\n'; echo beta", name="one")
    two = ground.begin_sh("seq 1000; echo alpha 3", name="two")
    for session in (one, two):
        session.ended()
    found = ground.hitch("logs", "--grep", r"^alpha \d$").out
    assert sorted(found.splitlines()) == ["one: alpha 1", "one: alpha 2", "two: alpha 3"]
    assert ground.hitch("logs", "--grep", "alpha", "two").out == "two: alpha 3\n"
    last = ground.hitch("logs", "--grep", "alpha", "--tail", "1").out
    assert sorted(last.splitlines()) == ["one: alpha 2", "two: alpha 3"]
    assert ground.hitch("logs", "--grep", "gamma", check=1).out == ""
    assert "is no regular expression" in ground.hitch("logs", "--grep", "(", check=2).err
    assert "cannot be combined" in ground.hitch("logs", "--grep", "x", "--raw", check=2).err
    assert "which session?" in ground.hitch("logs", check=2).err


def test_a_pattern_that_would_take_for_ever_is_given_up(ground: Ground) -> None:
    session = ground.begin_sh(f"echo {'a' * 60}b")
    session.ended()
    err = ground.hitch("logs", "--grep", "^(a+)+$", check=2, timeout_s=120).err
    assert "takes more than 2 s on one line" in err


def test_logs_are_there_when_the_keeper_was_killed(ground: Ground) -> None:
    session = ground.begin_sh("echo last words; exec sleep 1000")
    eventually(lambda: b"last words" in session.output(), what="output")
    with live("logs", "-f", session.id) as logs:
        logs.shows(b"last words")
        session.kill_keeper()
        assert logs.code() == 0
        assert logs.err() == ""
    assert ground.hitch("logs", session.id).out == "last words\n"
    assert ground.hitch("logs", "-f", session.id).out == "last words\n"


def test_what_the_cap_dropped_is_announced(ground: Ground) -> None:
    session = ground.begin_sh("stty raw; seq 400000", settings=Settings(log_cap_mib=1))
    session.ended()
    kept = session.output()
    first = int(min(path.name for path in (session.run() / wire.OUTPUT).glob("*.log")).removesuffix(".log"))
    assert 900_000 < len(kept) <= 1 << 20
    answer = ground.hitch("logs", session.id)
    assert answer.out.encode() == kept
    assert answer.err == f"[… {first} bytes are no longer in the log …]\n"
    gathered = ground.hitch("logs", "--json", session.id).json()
    assert gathered == {
        "session": session.id,
        "run": 1,
        "first": first,
        "end": first + len(kept),
        "lost": first,
        "text": kept.decode(),
    }


def test_output_that_was_lost_at_the_very_end_is_announced(ground: Ground) -> None:
    session = ground.begin_sh("echo one; while [ ! -e go ]; do sleep 0.05; done; echo lost")
    eventually(lambda: session.output() == b"one\r\n", what="output")
    log = next((session.run() / wire.OUTPUT).glob("*.log"))
    (ground.place / "go").touch()
    session.ended()
    os.truncate(log, 5)
    answer = ground.hitch("logs", session.id)
    assert (answer.out, answer.err) == ("one\n", "[… 6 bytes are no longer in the log …]\n")
    assert ground.hitch("logs", "--json", session.id).json()["lost"] == 6


@pytest.mark.ids("F37")
def test_on_a_full_disk_the_agent_goes_on_and_the_gap_is_announced(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = ground.place / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(disk)]
    if (done := subprocess.run(mount, capture_output=True, text=True, check=False)).returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    try:
        monkeypatch.setenv("HITCHPOST_HOME", str(disk / "home"))
        script = "stty raw; await() { while [ ! -e $1 ]; do sleep 0.02; done; }; echo before; await full; seq 200000;"
        script += " touch flooded; n=0; while [ ! -e done ]; do n=$((n+1)); echo line $n; sleep 0.01; done; echo end"
        session = replace(ground, home=disk / "home").begin_sh(script)
        eventually(lambda: session.output() == b"before\n", what="output")
        fill(disk / "filler")
        (ground.place / "full").touch()
        eventually(lambda: (ground.place / "flooded").exists(), what="an agent that goes on")
        (disk / "filler").unlink()
        eventually(lambda: b"line" in session.output(), what="output that is kept again")
        (ground.place / "done").touch()
        assert session.ended() == "completed"
        lost = session.exit()["lost_output_bytes"]
        answer = ground.hitch("logs", session.id)
        told = re.findall(r"^\[… (\d+) bytes are no longer in the log …\]$", answer.err, re.MULTILINE)
        assert sum(map(int, told)) == lost > 0
        last = int(answer.out.split()[-2])
        numbers = "".join(f"{number}\n" for number in range(1, 200_001))
        lines = "".join(f"line {number}\n" for number in range(1, last + 1))
        written = f"before\n{numbers}{lines}end\n"
        kept = [(int(path.stem), path.stat().st_size) for path in sorted((session.run() / wire.OUTPUT).glob("*.log"))]
        assert answer.out == "".join(written[start : start + size] for start, size in kept)
    finally:
        end_home(disk)
        subprocess.run(["umount", str(disk)], check=True)


def fill(path: Path) -> None:
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def test_json_is_one_object(ground: Ground) -> None:
    session = ground.begin_sh(PAINTED, name="dev")
    session.ended()
    end = len(session.output())
    expected = {"session": session.id, "run": 1, "first": 0, "end": end, "lost": 0, "text": "red line\ntwo\n"}
    assert ground.hitch("logs", "--json", "dev").json() == expected
    tail = ground.hitch("logs", "--json", "--tail", "1", "dev").json()
    assert tail == {**expected, "text": "two\n"}


@pytest.mark.parametrize("other", ["--follow", "--raw"])
def test_json_goes_with_nothing_that_is_no_object(ground: Ground, other: str) -> None:
    session = ground.begin_sh("true")
    session.ended()
    assert "cannot be combined with" in ground.hitch("logs", "--json", other, session.id, check=2).err


@pytest.mark.parametrize("words", [("logs",), ("logs", "--raw"), ("logs", "-f"), ("logs", "--raw", "-f")])
def test_a_reader_that_goes_away_is_no_error(ground: Ground, words: tuple[str, ...]) -> None:
    session = ground.begin_sh("seq 200000; sleep 1000")
    eventually(lambda: b"200000\r\n" in session.output(), what="output")
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -1; echo "${PIPESTATUS[0]}"', "bash", *ground.hitch.command, *words, session.id],
        capture_output=True,
        env=Hitch.environment(),
        timeout=60,
        check=True,
    )
    assert (done.stdout.split(), done.stderr) == ([b"1", b"0"], b"")
    ground.stop(session, "--now")


def test_a_follower_notices_that_its_reader_is_gone_although_nothing_comes(ground: Ground) -> None:
    session = ground.begin_sh("echo one; sleep 1000")
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -1', "bash", *ground.hitch.command, "logs", "-f", session.id],
        capture_output=True,
        env=Hitch.environment(),
        timeout=60,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"one\n", b"")
    ground.stop(session, "--now")
