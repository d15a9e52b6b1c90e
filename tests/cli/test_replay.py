"""``hitch replay``: playing and exporting recordings."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from hitchpost.cli.replay import play
from hitchpost.terminal.emulator.ghostty import GhosttyScreen
from hitchpost.terminal.recording import Event
from hitchpost.terminal.sanitize import Harmless
from tests.cli.live import live
from tests.ground import Ground, Truth
from tests.support import Hitch, eventually

ASKING = (
    b"\x1b[c\x1b[>c\x1b[5n\x1b[6n\x1b[>q\x1b[?2026$p\x1b[21t\x1b[18t\x1b[?u"
    b"\x1b]52;c;?\x07\x1b]10;?\x07\x1b]4;1;?\x1b\\\x1bP$qm\x1b\\\x1bP+q544e\x1b\\\x1bZ\x05"
)


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.written: list[tuple[float, str]] = []

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def play(self, *events: Event, begin: float = 0.0, **options: float) -> list[tuple[float, str]]:
        def write(text: str) -> None:
            self.written.append((round(self.now - 100, 6), text))

        play(iter(events), begin, Harmless(), write, clock=lambda: self.now, pause=self.pause, **options)
        return self.written


EVENTS = (Event(1.0, "o", "a"), Event(3.0, "m", "mark"), Event(11.0, "o", "b"), Event(11.5, "x", "0"))


def test_events_come_at_their_time() -> None:
    assert Clock().play(*EVENTS) == [(1.0, "a"), (11.0, "b")]


def test_speed_shortens_every_pause() -> None:
    assert Clock().play(*EVENTS, speed=4.0) == [(0.25, "a"), (2.75, "b")]


def test_no_pause_is_longer_than_the_limit() -> None:
    assert Clock().play(Event(1.0, "o", "a"), Event(11.0, "o", "b"), idle_s=2.0) == [(1.0, "a"), (3.0, "b")]


def test_what_came_before_the_beginning_is_there_at_once() -> None:
    assert Clock().play(*EVENTS, from_s=9.0) == [(0.0, "a"), (2.0, "b")]
    assert Clock().play(*EVENTS, from_s=1000.0) == [(0.0, "a"), (0.0, "b")]


def test_a_slow_terminal_does_not_add_to_the_pauses() -> None:
    clock = Clock()

    def slow(text: str) -> None:
        clock.written.append((clock.now - 100, text))
        clock.now += 0.75

    events = [Event(float(number), "o", str(number)) for number in range(1, 4)]
    play(iter(events), 0.0, Harmless(), slow, clock=lambda: clock.now, pause=clock.pause)
    assert clock.written == [(1.0, "1"), (2.0, "2"), (3.0, "3")]


def cast(text: str) -> tuple[dict[str, Any], list[list[Any]]]:
    header, *events = map(json.loads, text.splitlines())
    return header, events


def test_a_run_is_exported_as_asciicast_3(ground: Ground) -> None:
    session = ground.begin_sh(r"printf '\033[1mone\033[0m\n'; exit 3", name="dev")
    session.ended()
    header, events = cast(ground.hitch("replay", "dev", "--export", "-").out)
    timestamp = header.pop("timestamp")
    assert header == {"version": 3, "term": {"cols": 80, "rows": 24, "type": "xterm-256color"}, "title": "dev"}
    assert abs(timestamp - (session.run() / "exit.json").stat().st_mtime) < 100
    assert "".join(data for _, code, data in events if code == "o").encode() == session.output()
    assert [event[1:] for event in events if event[1] != "o"] == [["x", "3"]]
    assert all(0 <= event[0] < 100 for event in events)


def test_an_export_is_a_file_of_ones_own_that_overwrites_nothing(ground: Ground) -> None:
    session = ground.begin_sh("echo one", name="dev")
    session.ended()
    path = ground.place / "dev.cast"
    answer = ground.hitch("replay", "dev", "--export", path)
    assert (answer.out, answer.err) == ("", "")
    whole = path.read_text()
    assert whole == ground.hitch("replay", "dev", "--export", "-").out
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("mine")
    answer = ground.hitch("replay", "dev", "--export", path, check=5)
    assert answer.err == f"hitch: {path} already exists; choose another file, or use --force\n"
    assert path.read_text() == "mine"
    ground.hitch("replay", "dev", "--export", path, "--force")
    assert path.read_text() == whole
    ground.hitch("replay", "dev", "--export", "/dev/null", "--force")
    assert list(ground.place.iterdir()) == [path]
    assert Path("/dev/null").is_char_device()


def test_an_export_that_cannot_be_written_is_an_error(ground: Ground) -> None:
    session = ground.begin_sh("echo one", name="dev")
    session.ended()
    path = ground.place / "none" / "dev.cast"
    assert f"{path}: No such file" in ground.hitch("replay", "dev", "--export", path, check=1).err
    assert "--force needs --export" in ground.hitch("replay", "dev", "--force", check=2).err


def test_each_run_has_its_own_recording(ground: Ground) -> None:
    session = ground.begin_sh("echo run $HITCHPOST_RUN", name="dev")
    session.ended()
    ground.hitch("restart", "dev")
    session.ended(2)
    for words, text in (((), "run 2\r\n"), (("--run", "1"), "run 1\r\n"), (("--run", "2"), "run 2\r\n")):
        _, events = cast(ground.hitch("replay", "dev", "--export", "-", *words).out)
        assert "".join(data for _, code, data in events if code == "o") == text
    assert ground.hitch("replay", "dev", "--run", "1", "--speed", "1000").out == "run 1\n"
    assert "dev has no run 3" in ground.hitch("replay", "dev", "--run", "3", check=3).err


def test_a_live_run_is_exported_as_far_as_it_is(ground: Ground) -> None:
    session = ground.begin_sh("echo one; exec sleep 1000")
    eventually(lambda: session.output() == b"one\r\n", what="output")
    _, events = cast(ground.hitch("replay", session.id, "--export", "-").out)
    assert [event[1:] for event in events] == [["o", "one\r\n"]]
    ground.stop(session, "--now")


def test_a_size_that_changed_is_in_the_recording(ground: Ground) -> None:
    from hitchpost.runtimes.link import Link

    session = ground.begin_sh("echo one; while [ ! -e go ]; do sleep 0.02; done; sleep 0.1; echo two")
    eventually(lambda: session.output() == b"one\r\n", what="output")
    with Link.connect(str(session.run()), role="attach", cols=100, rows=40) as link:
        assert (link.welcome["cols"], link.welcome["rows"]) == (100, 40)
    (ground.place / "go").touch()
    session.ended()
    _, events = cast(ground.hitch("replay", session.id, "--export", "-").out)
    assert [event[1:] for event in events] == [["o", "one\r\n"], ["r", "100x40"], ["o", "two\r\n"], ["x", "0"]]


@pytest.fixture
def asking(ground: Ground) -> Truth:
    """A session that has asked its terminal everything, drawn something, and left the cursor hidden."""
    (ground.place / "asking").write_bytes(
        ASKING + b"\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b[?2004h\x1b[31mdrawn\x1b]52;c;aGk=\x07"
    )
    session = ground.begin_sh("stty raw; cat asking", name="dev")
    session.ended()
    return session


@pytest.mark.ids("S9")
def test_a_viewers_terminal_answers_nothing(asking: Truth, hitch: Hitch) -> None:
    def replies(data: bytes) -> list[bytes]:
        found: list[bytes] = []
        screen = GhosttyScreen(80, 24, 10)
        screen.on_reply(found.append)
        screen.feed(data)
        screen.close()
        return found

    with live("replay", "dev", "--speed", "1000", terminal=(80, 24)) as replay:
        assert replay.code() == 0
        played = replay.out()
    assert b"drawn" in played
    assert replies(asking.output()) != []
    assert replies(played) == []
    for left_out in (b"\x1b]52", b"\x1b[?1000h", b"\x1b[?2004h"):
        assert left_out in asking.output()
        assert left_out not in played


def test_the_terminal_is_as_before_when_the_recording_is_over(asking: Truth, hitch: Hitch) -> None:
    with live("replay", "dev", terminal=(80, 24)) as replay:
        assert replay.code() == 0
        assert replay.settings() == replay.before
        screen = GhosttyScreen(80, 24, 10)
        screen.feed(b"shell" + replay.out())
        assert not screen.alternate()
        assert "shell" in screen.text()
        screen.close()
        assert replay.out().rstrip().endswith(b"\x1b[?25h")


@pytest.mark.parametrize(
    ("key", "number", "code"), [(b"\x03", 0, 0), (b"", signal.SIGTERM, 143), (b"", signal.SIGHUP, 129)]
)
def test_the_terminal_is_as_before_when_somebody_stops_it(ground: Ground, key: bytes, number: int, code: int) -> None:
    session = ground.begin_sh(
        r"printf '\033[?1049h\033[?25l\033[41mone'; while [ ! -e go ]; do sleep 0.02; done; sleep 0.1; echo two"
    )
    eventually(lambda: b"one" in session.output(), what="output")
    (ground.place / "go").touch()
    session.ended()
    _, events = cast(ground.hitch("replay", session.id, "--export", "-").out)
    begin = ("--from", str(events[0][0] + 0.001))
    with live("replay", session.id, "--speed", "0.00001", *begin, terminal=(80, 24)) as replay:
        replay.shows(b"one")
        if key:
            replay.press(key)
        else:
            replay.signal(number)
        assert replay.code() == code
        assert replay.err() == ""
        assert replay.settings() == replay.before
        for needed in (b"\x1b[?1049l", b"\x1b[0m", b"\x1b[?25h"):
            assert needed in replay.out().partition(b"one")[2]
        assert b"two" not in replay.out()


def test_a_line_feed_alone_only_goes_down(ground: Ground) -> None:
    session = ground.begin_sh(r"stty raw; printf 'down\nstairs'")
    session.ended()
    with live("replay", session.id, terminal=(80, 24)) as replay:
        assert replay.code() == 0
        assert b"down\nstairs" in replay.out()


def test_a_smaller_terminal_is_told(ground: Ground) -> None:
    session = ground.begin_sh("echo one")
    session.ended()
    with live("replay", session.id, terminal=(40, 10)) as replay:
        assert replay.code() == 0
        assert replay.err() == "the session's terminal was 80x24, this one is 40x10\n"
