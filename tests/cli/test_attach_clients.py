"""Several clients in one session: the one that typed last owns the size and answers queries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.attaching import DETACH, PATIENCE_S, PROMPT, Terminals, quiet_for, recorder, shell, state, terminals
from tests.support import Hitch, eventually


@pytest.fixture
def tty(home: Path) -> Iterator[Terminals]:
    with terminals() as made:
        yield made


def test_the_session_takes_the_size_of_whoever_typed_last(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    first, second = tty("attach", "dev", cols=80, rows=24), tty("attach", "dev", cols=100, rows=30)
    for one in (first, second):
        one.shows(PROMPT.strip())
    first.type(b"stty size\r")
    first.shows("24 80")
    second.shows("24 80")
    second.type(b"stty size\r")
    second.shows("30 100")
    first.shows("30 100")
    first.type(b"stty size; echo $((1 + 1)) times\r")
    first.shows("2 times")
    assert first.text().count("24 80") == 2


def test_the_size_follows_the_window(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    me = tty("attach", "dev", cols=80, rows=24)
    me.shows(PROMPT.strip())
    me.resize(70, 20)
    me.until(lambda: hitch("send", "dev", "stty size").code == 0 and "20 70" in me.text())
    me.resize(120, 40)
    me.until(lambda: hitch("send", "dev", "stty size").code == 0 and "40 120" in me.text())


def test_the_window_of_a_client_that_does_not_own_the_size_changes_nothing(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    first, second = tty("attach", "dev", cols=80, rows=24), tty("attach", "dev", cols=60, rows=20)
    for one in (first, second):
        one.shows(PROMPT.strip())
    first.type(b"echo $((1 + 1)) here\r")
    second.shows("2 here")
    second.resize(50, 10)
    second.shows("2 here")
    first.type(b"stty size\r")
    first.shows("24 80")


def test_a_smaller_terminal_shows_the_part_around_the_cursor(hitch: Hitch, tty: Terminals, tmp_path: Path) -> None:
    lines = "".join(rf"\x1b[{row};1Hrow {row}" for row in range(1, 25))
    recorder(hitch, tmp_path / "heard", lines + r"\x1b[24;60H")
    big = tty("attach", "dev", cols=80, rows=24)
    big.shows("recorder ready")
    small = tty("attach", "dev", cols=30, rows=10)
    small.shows("recorder ready")
    assert len(small.lines()) == 10
    assert "row" not in small.text()
    big.type(b"!")
    small.shows("heard")
    small.type(DETACH)
    assert small.ends() == 0
    assert small.is_restored()
    assert small.lines() == [
        "outer$ hitch attach",
        "[attached to dev; Ctrl-B D lea",
        "ves it running]",
        "[detached from dev; hitch atta",
        "ch dev comes back]",
    ]


def test_a_larger_terminal_shows_the_whole_screen(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    small = tty("attach", "dev", cols=40, rows=6)
    small.shows(PROMPT.strip())
    small.type(b"seq 1 20\r")
    small.shows("20")
    large = tty("attach", "dev", "--read-only", cols=100, rows=30)
    large.shows("20")
    large.until(lambda: large.lines() == small.lines())
    small.type(b"echo " + b"x" * 50 + b"\r")
    small.until(lambda: small.text().count("x") == 100)
    large.until(lambda: large.lines() == small.lines())
    assert large.screen.cursor() == small.screen.cursor()


def test_keys_typed_into_a_picture_are_encoded_as_the_agent_wants(hitch: Hitch, tty: Terminals, tmp_path: Path) -> None:
    recorder(hitch, tmp_path / "heard", r"\x1b[?2004h\x1b[?1h\x1b[>5u")
    owner = tty("attach", "dev", cols=80, rows=24)
    owner.shows("recorder ready")
    other = tty("attach", "dev", cols=60, rows=20)
    other.shows("recorder ready")
    owner.type(b"!")
    other.until(lambda: other.text().count("heard") == 1)
    owner.type(b"!")
    other.until(lambda: other.text().count("heard") == 2)
    assert other.screen.input_modes() == b"\x1b[?1h\x1b[?2004h\x1b[>5u"
    assert other.received.count(b"\x1b[>5u") == 1
    other.type(DETACH)
    assert other.ends() == 0
    assert other.is_restored()


def test_a_picture_is_left_for_a_line_below_what_was_shown_before(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    first, second = tty("attach", "dev", cols=80, rows=24), tty("attach", "dev", cols=60, rows=6)
    for one in (first, second):
        one.shows(PROMPT.strip())
    first.type(b"seq 1 50\r")
    first.until(lambda: first.lines()[-2:] == ["50", PROMPT.strip()])
    second.type(b"echo $((1 + 1)) here\r")
    first.until(lambda: "2 here" in first.text() and first.screen.alternate())
    first.type(DETACH)
    assert first.ends() == 0
    assert first.lines()[-3:] == ["50", PROMPT.strip(), "[detached from dev; hitch attach dev comes back]"]


def test_the_next_client_takes_the_size_over_when_its_owner_leaves(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    first = tty("attach", "dev", cols=80, rows=24)
    first.shows(PROMPT.strip())
    second = tty("attach", "dev", cols=60, rows=20)
    second.shows(PROMPT.strip())
    first.type(DETACH)
    assert first.ends() == 0
    eventually(lambda: hitch("send", "dev", "stty size").code == 0 and "20 60" in second.text(), timeout_s=PATIENCE_S)


def test_when_the_agent_ends_every_client_is_told_and_shows_the_last_line(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    clients = [tty("attach", "dev", cols=80, rows=24), tty("attach", "dev", cols=60, rows=10)]
    clients.append(tty("attach", "dev", "--read-only", cols=90, rows=30))
    for one in clients:
        one.shows(PROMPT.strip())
    clients[0].type(b"stty -echo; echo the very last; exit 1\r")
    for one in clients:
        assert one.ends() == 0
        assert one.lines()[-2:] == ["the very last", "[dev: failed: command exited with code 1]"]
        assert one.is_restored()


# read-only -----------------------------------------------------------------------------------------------------------


@pytest.mark.ids("S15")
def test_a_read_only_client_can_neither_type_nor_resize_nor_answer(
    hitch: Hitch, tty: Terminals, tmp_path: Path
) -> None:
    heard = tmp_path / "heard"
    recorder(hitch, heard)
    owner = tty("attach", "dev", cols=80, rows=24)
    owner.shows("recorder ready")
    watcher = tty("attach", "dev", "--read-only", cols=80, rows=24)
    watcher.shows("recorder ready")
    watcher.type(b"nobody hears this\r\x03\x1b[?62c\x1b[12;5R")
    watcher.resize(100, 40)
    owner.type(b"only this!")
    watcher.shows("heard")
    assert heard.read_bytes() == b"only this!"
    watcher.type(DETACH)
    assert watcher.ends() == 0
    assert watcher.is_restored()
    assert state() == "running"


def test_a_read_only_client_alone_does_not_set_the_size(hitch: Hitch, tty: Terminals) -> None:
    shell(hitch)
    watcher = tty("attach", "dev", "--read-only", cols=100, rows=40)
    watcher.shows(PROMPT.strip())
    hitch("send", "dev", "stty size")
    watcher.shows("24 80")


# queries -------------------------------------------------------------------------------------------------------------


@pytest.mark.ids("S9")
def test_queries_in_what_is_replayed_are_not_answered(hitch: Hitch, tty: Terminals, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    recorder(hitch, heard, r"\x1b[c\x1b[6n\x1b]52;c;aGk=\x07\x1b]11;?\x07\x1b[21t\x1bP$qm\x1b\\")
    eventually(lambda: heard.read_bytes().count(b"R") == 1)
    answered = heard.read_bytes()
    me = tty("attach", "dev", answers=True)
    me.shows("recorder ready")
    assert b"]52;" not in me.received
    assert quiet_for(me, 0.3)
    assert heard.read_bytes() == answered


def test_only_the_owner_answers_queries(hitch: Hitch, tty: Terminals, tmp_path: Path) -> None:
    answers, go = tmp_path / "answers", tmp_path / "go"
    script = (
        "stty raw -echo; echo recorder ready; while ! [ -e " + str(go) + " ]; do sleep 0.02; done; "
        "printf '\\033[6n\\033[c\\033[0c asked'; dd bs=1 of=" + str(answers) + " 2>/dev/null"
    )
    hitch("run", "--name", "dev", "--", "sh", "-c", script)
    owner = tty("attach", "dev", answers=True)
    owner.shows("recorder ready")
    other = tty("attach", "dev", answers=True)
    other.shows("recorder ready")
    watcher = tty("attach", "dev", "--read-only", answers=True)
    watcher.shows("recorder ready")
    go.touch()
    for one in (owner, other, watcher):
        one.shows("asked")
    eventually(lambda: answers.exists() and answers.read_bytes().count(b"c") == 2)
    other.type(b"end")
    eventually(lambda: answers.read_bytes().endswith(b"end"))
    replies = answers.read_bytes()
    assert replies.count(b"R") == 1
    assert replies.count(b"c") == 2
