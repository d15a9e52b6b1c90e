"""An answer counts once, and for what it was aimed at, whoever else answers, types or draws meanwhile."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
import termios
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hitchpost import wire
from hitchpost.ops.sessions.answer import answer
from hitchpost.runtimes.link import Link
from hitchpost.system.shortpath import ShortPath
from hitchpost.watcher import codex_words as words
from tests.ground import Ground, Truth
from tests.support import eventually, halt
from tests.watched import ask, begin, link, report, say

AGENT = """
import os, sys, tty
tty.setraw(0)
for question in sys.argv[1:]:
    os.write(1, f"\\x1b[2J\\x1b[HASK {question}\\r\\nyes or no?".encode())
    key = os.read(0, 1).decode()
    with open("answers", "a") as file:
        print(question, key, file=file)
os.write(1, b"\\x1b[2J\\x1b[Hdone")
while True:
    with open("answers", "a") as file:
        print("nothing", os.read(0, 1).decode(), file=file)
"""
RULES = r"""
[[screen]]
state = "blocked"
kind = "permission"
find = ['^yes or no\?\s*\Z']
message_from = '^ASK (?P<text>[^\n]*(?:\n[^\n]+)*)\nyes or no'
options = { yes = "y", no = "n" }
"""


def asking(ground: Ground, *questions: str) -> Truth:
    """An agent that asks these, one after the other, and writes down which key it got for each."""
    program = ground.place / "asks.py"
    program.write_text(AGENT)
    words = " ".join(f"'{question}'" for question in questions)
    session = begin(ground, f"exec {sys.executable} -I -S {program} {words}\n", more=RULES)
    asked(session, questions[0])
    return session


def asked(session: Truth, question: str, but: str = "") -> str:
    """The name of the request, as soon as this is asked."""

    def found() -> str:
        told = report(session)
        is_asked = told.get("message") == question and told.get("request") not in ("", None, but)
        return str(told["request"]) if is_asked else ""

    return eventually(found, 60, f"the question {question}")


def given(ground: Ground) -> list[str]:
    path = ground.place / "answers"
    return path.read_text().splitlines() if path.exists() else []


def answered(session: Truth, choice: str, request: str = "") -> dict[str, Any]:
    with link(session) as connection:
        return connection.request("answer", choice=choice, request=request, timeout_s=60)


@contextmanager
def stopped(session: Truth) -> Iterator[None]:
    """The agent does not read, whatever is typed."""
    stat = Path(f"/proc/{session.agent_pid()}/stat")
    halt(session.agent_pid())
    eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", 60)
    try:
        yield
    finally:
        os.kill(session.agent_pid(), signal.SIGCONT)


def unread_keys(session: Truth) -> int:
    """How many bytes the agent's terminal holds for it."""
    terminal = os.open(f"/proc/{session.agent_pid()}/fd/0", os.O_RDONLY | os.O_NOCTTY)
    try:
        return int.from_bytes(fcntl.ioctl(terminal, termios.FIONREAD, bytes(4)), "little")
    finally:
        os.close(terminal)


def test_a_key_in_the_terminal_and_an_answer_are_not_two_answers(ground: Ground):
    session = asking(ground, "first", "second")
    name = asked(session, "first")
    with stopped(session), link(session) as person:
        person.send(wire.INPUT, b"y")
        assert answered(session, "yes", name)["ok"] is False
    asked(session, "second")
    eventually(lambda: answered(session, "no")["ok"], 60)
    eventually(lambda: given(ground) == ["first y", "second n"], 60)
    ground.end(session)


def test_an_answer_that_nobody_waits_for_any_more_is_not_given_twice(ground: Ground):
    session = asking(ground, "first", "second")
    name = asked(session, "first")
    with stopped(session):
        with link(session) as leaving:
            ask(leaving, "answer", choice="yes", request=name)
            eventually(lambda: unread_keys(session), 60)
        assert answered(session, "yes", name)["ok"] is False
    asked(session, "second")
    eventually(lambda: answered(session, "no")["ok"], 60)
    eventually(lambda: given(ground) == ["first y", "second n"], 60)
    ground.end(session)


def test_an_answer_to_what_was_answered_in_the_terminal_does_not_count_for_the_same_question_again(ground: Ground):
    session = asking(ground, "rm x", "rm x")
    name = asked(session, "rm x")
    with link(session) as person:
        person.send(wire.INPUT, b"y")
        eventually(lambda: given(ground) == ["rm x y"], 60)
        assert answered(session, "yes", name)["ok"] is False
    eventually(lambda: answered(session, "no", asked(session, "rm x", but=name))["ok"], 60)
    eventually(lambda: given(ground) == ["rm x y", "rm x n"], 60)
    assert len([line for line in session.story() if line.get("message") == "rm x"]) == 1, "another name is no news"
    ground.end(session)


def test_of_two_answers_to_one_request_the_second_does_not_count_for_the_same_question_again(ground: Ground):
    session = asking(ground, "rm x", "rm x")
    name = asked(session, "rm x")
    with link(session) as one:
        ask(one, "answer", choice="yes", request=name)
        eventually(lambda: given(ground) == ["rm x y"], 60)
    assert answered(session, "yes", name)["ok"] is False
    eventually(lambda: answered(session, "no", asked(session, "rm x", but=name))["ok"], 60)
    eventually(lambda: given(ground) == ["rm x y", "rm x n"], 60)
    ground.end(session)


def test_a_command_answers_what_it_has_read_and_nothing_that_was_asked_since(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
):
    session = begin(ground, say("blocked", ":kind=permission") + "cat\n", adapter="claude")
    connect = Link.connect
    with closing(permission(session, "touch q")) as first:
        asked(session, "Bash: touch q")
        session.kill_keeper(signal.SIGSTOP)
        with closing(permission(session, "rm -r /")) as second:

            def connected(folder: str) -> Link:
                session.kill_keeper(signal.SIGCONT)
                return connect(folder)

            monkeypatch.setattr(Link, "connect", connected)
            answer(str(ground.home), session.id, "yes", actor="test")
            monkeypatch.setattr(Link, "connect", connect)
            eventually(lambda: b"allow" in first.recv(65536), 60)
            asked(session, "Bash: rm -r /")
            answer(str(ground.home), session.id, "no", actor="test")
            eventually(lambda: b"deny" in second.recv(65536), 60)
    told = [(line["choice"], line["question"]) for line in session.story() if line["event"] == "answered"]
    assert told == [("yes", "Bash: touch q"), ("no", "Bash: rm -r /")]
    ground.end(session)


def permission(session: Truth, command: str) -> socket.socket:
    """A hook of the agent that asks for a permission, up to its answer. The keeper has heard it, or will at once."""
    payload = json.dumps({"tool_name": "Bash", "tool_input": {"command": command}})
    hook = socket.socket(socket.AF_UNIX)
    hook.settimeout(60)
    with ShortPath(str(session.run()), wire.SOCKET) as path:
        hook.connect(path)
    hook.sendall(wire.hello("control", 0, 0) + wire.request(1, "hook", name="PermissionRequest", payload=payload))
    return hook


def test_an_option_is_shown_without_what_a_terminal_obeys_and_given_as_it_was_written():
    options = [{"label": "yes\x1b[2J\u202e"}]
    asked = words.asked(words.INPUT, {"questions": [{"id": "q", "question": "?", "options": options}]}, [], 7)
    assert asked is not None
    assert asked.answers == {"yes [2J": {"answers": {"q": {"answers": ["yes\x1b[2J\u202e"]}}}}


def test_what_codex_wants_to_run_is_told_whole():
    told = {"command": "/bin/bash -lc 'cd /etc && cat a || rm -r b'", "commandActions": [{"command": "cat a"}]}
    asked = words.asked(words.COMMAND, told, [], 7)
    assert asked is not None
    assert asked.text == "run cd /etc && cat a || rm -r b"
