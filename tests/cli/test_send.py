"""``hitch send``: texts arrive as they were written, whatever is in them."""

from __future__ import annotations

import json
import os
import time
from ast import literal_eval
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.hub.client import HubRefused
from hitchpost.runtimes.link import Link
from hitchpost.store.images import MOST_BYTES
from hitchpost.terminal import output
from tests.acp.pictures import png
from tests.acp.sessions import begin
from tests.cli.live import live
from tests.cli.places import SHAPE
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import eventually

HOSTILE = [
    "plain",
    "",
    "  blanks at both ends  ",
    "$(touch pwned) `touch pwned` ${HOME} $((1+1))",
    "'single' \"double\" \\backslash\\ \\n \\e[31m %s %n",
    "#{pane_pid} #(touch pwned) #S ~ ! !! *",
    "-x",
    "-n",
    "--help-me",
    "a; touch pwned | b && c > d < e & f",
    "one\ntwo\n\nfour",
    "\ttab\tand\ttab",
    "für 你好 👩‍👧 \u202e\u00a0\ufeff",
    "\udcff\udcfe bytes that are no UTF-8",
]
MANY_LINES = "\n".join(f"{number:05d} " + "x" * (number % 90) + " é" for number in range(1900))

PASTE_PROGRAM = """
import os, tty
tty.setraw(0)
os.write(1, b"\\x1b[?2004h" + b"ready")
with open("reads", "wb", buffering=0) as file:
    while True:
        data = os.read(0, 65536)
        file.write(repr(data).encode() + b"\\n")
"""

REPORTING_PROGRAM = """
import os, sys, time
def report(state):
    print(f"\\x1b]7501;state={state}\\x1b\\\\", end="", flush=True)
report("idle")
print("ready", flush=True)
for line in sys.stdin:
    report("working")
    print("works", flush=True)
    while not os.path.exists("go"):
        time.sleep(0.02)
    report(line.strip())
"""


def arrives(path: Path, data: bytes, timeout_s: float = 60) -> None:
    got = eventually(lambda: path.exists() and len(path.read_bytes()) >= len(data) and path.read_bytes(), timeout_s)
    assert got == data


def ready(session: Truth, word: bytes = b"ready") -> Truth:
    eventually(lambda: word in session.output(), what="an agent that is ready")
    return session


def program(ground: Ground, text: str, name: str = "dev") -> Truth:
    (ground.place / "program.py").write_text(text)
    return ready(ground.begin("python3", "program.py", name=name))


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def test_send_says_to_whom(ground: Ground) -> None:
    session = ground.begin_sh("cat > got", name="dev")
    answer = ground.hitch("send", "dev", "hello")
    assert (answer.out, answer.err) == ("sent to dev\n", "")
    arrives(ground.place / "got", b"hello\n")
    ground.stop(session, "--now")


@pytest.mark.ids("C16")
def test_a_text_that_the_agent_does_not_read_is_told_so(ground: Ground, hub: HubProcess) -> None:
    """A short and a long one, with the command and through the hub, each to an agent of its own."""
    sessions = [ground.begin("sleep", "1000", name=name) for name in ("short", "long", "short-hub", "long-hub")]
    eventually(lambda: len(hub.ask("GET", "/api/sessions")) == 4)

    def why(name: str) -> str:
        return f"{name} did not read all of the text within 15 s; the rest is typed when it reads again"

    def command(name: str, text: str) -> None:
        told = ground.hitch("send", name, "-", stdin=text, check=1)
        assert told.out == ""
        assert told.err == f"{name}: waiting until it shows that it has the prompt\nhitch: {why(name)}\n"

    def request(name: str, text: str) -> None:
        with pytest.raises(HubRefused) as refused:
            hub.ask("POST", f"/api/sessions/{name}/prompt", {"text": text})
        assert (refused.value.status, str(refused.value)) == (503, why(name))

    with ThreadPoolExecutor(4) as pool:
        tries = [pool.submit(command, "short", "hello"), pool.submit(command, "long", MANY_LINES)]
        tries += [pool.submit(request, "short-hub", "hello"), pool.submit(request, "long-hub", MANY_LINES)]
        for one in tries:
            one.result()
    for session in sessions:
        assert ground.ps(session)["state"] == "running"
        ground.stop(session, "--now")


def test_a_text_that_the_agent_had_not_read_when_it_ended_was_not_sent(ground: Ground) -> None:
    session = ready(ground.begin_sh("echo ready; until [ -e go ]; do sleep 0.02; done", name="dev"))
    with live("send", "dev", "hello") as send:
        eventually(lambda: b"hello\r\n" in session.output(), what="the echo of Enter")
        eventually(send.is_asleep, what="a text that waits")
        (ground.place / "go").touch()
        assert send.code() == 4
        assert send.err() == "hitch: not sent to dev: the agent ended before it had read all of it\n"
    session.ended()


def test_a_text_is_sent_when_the_agent_has_read_it_and_left(ground: Ground) -> None:
    session = ground.begin_sh("read line; echo $line > got; exit 3", name="dev")
    # who is quick to look sees it alive
    assert ground.hitch("send", "dev", "hello").out in ("sent to dev\n", "sent to dev; the agent has ended\n")
    assert ground.said("got") == "hello\n"
    session.ended()


def test_hostile_texts_arrive_as_they_are_in_a_program_that_reads_lines(ground: Ground) -> None:
    session = ground.begin_sh("exec cat > got")
    expected = b""
    for text in HOSTILE:
        ground.hitch("send", session.id, text)
        expected += encoded(text) + b"\n"
        arrives(ground.place / "got", expected)
    assert os.listdir(ground.place) == ["got"]
    ground.stop(session, "--now")


def test_hostile_texts_arrive_as_they_are_in_a_program_that_reads_keys(ground: Ground) -> None:
    session = ready(ground.begin_sh("stty raw -echo; echo ready; exec cat > got"))
    expected = b""
    for text in HOSTILE:
        ground.hitch("send", session.id, text)
        expected += encoded(text) + b"\r"
        arrives(ground.place / "got", expected)
    assert os.listdir(ground.place) == ["got"]
    ground.stop(session, "--now")


@pytest.mark.parametrize("mode", ["", "stty raw -echo; "])
def test_a_hundred_thousand_bytes_arrive_whole(ground: Ground, mode: str) -> None:
    assert len(encoded(MANY_LINES)) > 100_000
    session = ready(ground.begin_sh(f"{mode}echo ready; exec cat > got"))
    ground.hitch("send", session.id, "-", stdin=MANY_LINES)
    arrives(ground.place / "got", encoded(MANY_LINES) + (b"\r" if mode else b"\n"))
    ground.stop(session, "--now")


def test_a_program_that_takes_pastes_gets_one_and_then_the_key(ground: Ground) -> None:
    session = program(ground, PASTE_PROGRAM)
    path = ground.place / "reads"
    expected = b""
    alone = 0
    for text in ("one\ntwo", "#{x} $(y)", MANY_LINES):
        ground.hitch("send", session.id, "-", stdin=text)
        expected += b"\x1b[200~" + encoded(text) + b"\x1b[201~\r"
        reads = eventually(lambda: _reads(path) if b"".join(_reads(path)).endswith(b"~\r") else None)
        assert b"".join(reads) == expected
        alone += reads[-1] == b"\r"
        path.write_bytes(b"")
        expected = b""
    # read as one when the reader slept all the while between the two; not three times in a row
    assert alone
    ground.stop(session, "--now")


def _reads(path: Path) -> list[bytes]:
    text = path.read_text() if path.exists() else ""
    return [literal_eval(line) for line in text.replace("\0", "").splitlines()] if text.endswith("\n") else []


def test_without_enter_the_text_stays_where_it_is(ground: Ground) -> None:
    session = ready(ground.begin_sh("stty raw -echo; echo ready; exec cat > got"))
    ground.hitch("send", "--no-enter", session.id, "-", stdin="text\n")
    arrives(ground.place / "got", b"text\n")
    ground.hitch("send", session.id, "")
    arrives(ground.place / "got", b"text\n\r")
    ground.stop(session, "--now")


def test_the_line_end_of_standard_input_is_the_enter(ground: Ground) -> None:
    session = ground.begin_sh("exec cat > got")
    ground.hitch("send", session.id, "-", stdin="one\ntwo\n")
    ground.hitch("send", session.id, "three")
    arrives(ground.place / "got", b"one\ntwo\nthree\n")
    ground.stop(session, "--now")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a\x1b[201~b", "the text holds control characters; only tab and newline can be sent"),
        ("a\x03", "the text holds control characters; only tab and newline can be sent"),
        ("a\x00b", "the text holds control characters; only tab and newline can be sent"),
        ("a\rb", "the text holds control characters; only tab and newline can be sent"),
        ("x" * 5000, "a line is longer than the 4094 bytes that a program reading by lines can take"),
        ("x\n" * 300_000, "the text has 599999 bytes, at most 524288 can be typed at once"),
    ],
)
def test_what_cannot_arrive_as_it_is_is_refused_whole(ground: Ground, text: str, why: str) -> None:
    session = ground.begin_sh("exec cat > got", name="dev")
    answer = ground.hitch("send", "dev", "-", stdin=text, check=4)
    assert (answer.out, answer.err) == ("", f"hitch: not sent to dev: {why}\n")
    ground.hitch("send", "dev", "after")
    arrives(ground.place / "got", b"after\n")
    ground.stop(session, "--now")


def test_an_agent_that_waits_for_a_permission_gets_no_prompt_without_force(ground: Ground) -> None:
    script = r"printf '\033]7501;state=blocked\033\\ready\n'; exec cat > got"
    session = ready(ground.begin_sh(script, name="dev"))
    answer = ground.hitch("send", "dev", "yes", check=4)
    assert "the agent is waiting for a permission; see to that first, or use --force" in answer.err
    ground.hitch("send", "--force", "dev", "yes")
    arrives(ground.place / "got", b"yes\n")
    ground.stop(session, "--now")


def test_a_session_that_has_ended_takes_nothing(ground: Ground) -> None:
    session = ground.begin_sh("exit 3", name="dev")
    session.ended()
    answer = ground.hitch("send", "dev", "hello", check=4)
    expected = "hitch: dev is not running (failed: command exited with code 3); hitch restart dev starts it again\n"
    assert answer.err == expected
    ground.hitch("archive", "dev")
    assert "dev is archived and takes no input" in ground.hitch("send", session.id, "hello", check=4).err
    assert "no session 'other'" in ground.hitch("send", "other", "hello", check=3).err


def test_wait_ends_when_the_agent_says_that_it_is_done_with_this_text(ground: Ground) -> None:
    session = program(ground, REPORTING_PROGRAM)
    forced = "typed into dev, whatever it does with it (Needs you); not confirmed"
    sent = "sent to dev"
    turns = (
        ("idle", "waiting (Your turn)", sent),
        ("blocked", "blocked (Needs you)", sent),
        ("error", "error", forced),
    )
    for word, seen, said in turns:
        with live("send", "dev", word, "--wait", "--force") as send:
            eventually(lambda: _reported(session) == "working", what="an agent that works")
            send.shows(f"{said}\n".encode())
            assert send.process.poll() is None
            (ground.place / "go").touch()
            assert send.code() == 0
            assert send.out() == f"{said}\ndev: {seen}\n".encode()
        (ground.place / "go").unlink()
    ground.stop(session, "--now")


def test_wait_does_not_take_what_the_agent_said_before_the_text_for_its_answer(ground: Ground) -> None:
    ground.configure("quiet_s = 600")
    script = r"printf '\033]7501;state=idle\033\\ready\n'; read line; while [ ! -e go ]; do sleep 0.02; done;"
    script += r" printf '\033]7501;state=done\033\\'; exec sleep 1000"
    session = ready(ground.run("sh", "-c", script, name="dev"))
    eventually(lambda: _reported(session) == "idle", what="the report before the text")
    with live("send", "dev", "hello", "--wait") as send:
        send.shows(b"sent to dev\n")
        eventually(send.is_asleep, 60, what="a command that waits without polling")
        assert send.process.poll() is None
        (ground.place / "go").touch()
        assert send.code() == 0
        assert send.out() == b"sent to dev\ndev: done (Finished)\n"
    ground.stop(session, "--now")


def _reported(session: Truth) -> str:
    path = session.run() / "attention.json"
    return json.loads(path.read_bytes())["state"] if path.exists() else ""


def test_wait_takes_silence_for_the_end_where_the_agent_says_nothing(ground: Ground) -> None:
    ground.configure("quiet_s = 0.3")
    session = ground.run("cat", name="dev")
    assert ground.hitch("send", "--wait", "dev", "hello").out == "sent to dev\ndev: idle (Quiet)\n"
    assert session.output() == b"hello\r\nhello\r\n"
    ground.stop(session, "--now")


def test_output_after_a_prompt_or_a_key_is_known_as_that(ground: Ground) -> None:
    session = ready(ground.begin_sh("stty -echo; echo ready; exec cat"))
    ground.hitch("send", session.id, "hello")
    eventually(lambda: _follows_input(session) == [True, False], what="the answer to a prompt")
    where = str(session.run() / "output")
    # times that are too close to each other are one
    eventually(lambda: time.time() - (output.last_written(where) or 0) > 0.5, what="a pause")
    with Link.connect(str(session.run()), role="attach", cols=80, rows=24) as link:
        link.send(wire.INPUT, b"typed\n")
        eventually(lambda: _follows_input(session) == [True, True, False], what="the answer to keys")
    ground.stop(session, "--now")


def _follows_input(session: Truth) -> list[bool]:
    return [follows_input for _, follows_input in output.times_back(str(session.run() / "output"), 0.0)]


def test_wait_ends_with_the_session(ground: Ground) -> None:
    ground.begin("sh", name="dev").output()
    told = ground.hitch("send", "--wait", "dev", "exit 0").out
    assert told.replace("; the agent has ended", "") == "sent to dev\ndev: completed\n"


def test_wait_gives_up_when_the_time_is_over(ground: Ground) -> None:
    ground.configure("quiet_s = 600")
    session = ground.run("cat", name="dev")
    answer = ground.hitch("send", "--wait", "--timeout", "0.2", "dev", "hello", check=1)
    assert answer.out == "sent to dev\n"
    assert answer.err == "hitch: dev was not idle again after 0.2 s (it is running)\n"
    assert "--timeout needs --wait" in ground.hitch("send", "--timeout", "1", "dev", "hello", check=2).err
    ground.stop(session, "--now")


def test_json_tells_the_session_and_where_the_answer_begins(ground: Ground) -> None:
    session = ready(ground.begin_sh("stty -echo; echo ready; exec cat"))
    answer = ground.hitch("send", "--json", session.id, "hello").json()
    assert answer["offset"] == len(b"ready\r\n")
    assert set(answer["session"]) == SHAPE
    eventually(lambda: session.output() == b"ready\r\nhello\r\n", what="the answer")
    ground.stop(session, "--now")


def test_h_alone_is_help_and_h_after_a_session_is_a_text(ground: Ground) -> None:
    assert "Usage: hitch send" in ground.hitch("send", "-h").out
    session = ground.sh("read line; echo got:$line", name="dev")
    ground.hitch("send", "dev", "-h")
    eventually(lambda: b"got:-h" in session.output())
    session.ended()


def test_images_go_with_a_text_to_an_agent_that_takes_them(ground: Ground) -> None:
    dev = begin(ground, images=True)
    red, blue = png(200, 0, 0), png(0, 0, 200)
    (ground.place / "red.png").write_bytes(red)
    (ground.place / "blue.jpg").write_bytes(blue)  # what it is follows from what it holds
    (ground.place / "link.png").symlink_to("red.png")
    sent = ground.hitch("send", "dev", "look", "--image", "red.png", "--image=blue.jpg", "--wait", cwd=ground.place)
    assert sent.out == "delivered to dev (proved by session/prompt)\ndev: done (Finished)\n"
    shown = ground.hitch("logs", "dev").out
    assert all(f"image image/png {sha256(data).hexdigest()[:8]}" in shown for data in (red, blue))
    # without any words, and from elsewhere
    told = ground.hitch("send", "--json", "--image", str(ground.place / "link.png"), "dev", "").json()
    assert (told["images"], told["confirmed"]) == (1, True)
    assert ground.hitch("send", "dev", "hello", "--json").json()["images"] == 0
    ground.end(dev)


def test_an_image_that_cannot_be_sent_is_told_before_anything_is(ground: Ground) -> None:
    dev = begin(ground)
    talker = ground.begin_sh("cat", name="talker")
    (ground.place / "red.png").write_bytes(png(200, 0, 0))
    (ground.place / "page.png").write_text("<svg>")
    (ground.place / "large.png").write_bytes(png(200, 0, 0) + bytes(MOST_BYTES))
    os.mkfifo(ground.place / "pipe.png")

    def refused(session: str, *words: str, code: int = 2) -> str:
        return ground.hitch("send", session, "look", *words, check=code, cwd=ground.place).err

    image = "--image"
    for name, why in {
        "none.png": "cannot send none.png: no such file or directory",
        ".": "cannot send .: expected a file, but got a link or a folder",
        "pipe.png": "cannot send pipe.png: expected a file, but got a pipe",
        "page.png": "cannot send page.png: expected a PNG, JPEG, GIF or WebP image, but got something else",
        "large.png": f"and the images of a prompt at most {MOST_BYTES}",
    }.items():
        assert why in refused("dev", image, name)
    assert "expected at most 4 images, but got 5" in refused("dev", *[image, "red.png"] * 5)
    assert "so force does not go with them" in refused("dev", image, "red.png", "--force")
    assert "cannot be left without Enter" in refused("dev", image, "red.png", "--no-enter")
    # the agent takes none: what to do instead
    typed = "talker takes no images: its agent is typed"
    for session, why in (("dev", "this agent takes no images"), ("talker", typed)):
        said = refused(session, image, "red.png", code=4)
        assert why in said
        assert "name the file in the text" in said
    assert talker.output() == b""
    assert ground.ps(dev)["attention"] == "waiting"
    # a text alone cannot be left there either
    assert "cannot be left without Enter" in ground.hitch("send", "--no-enter", "dev", "hello", check=4).err
    ground.end(dev)
    ground.end(talker)
