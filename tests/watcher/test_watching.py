"""Real watchers beside agents that do what they can to mislead, to flood and to break them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.agents import catalog, hook, prepare
from hitchpost.model.attention import LONGEST_MESSAGE
from hitchpost.runtimes.link import Link
from hitchpost.store.session import Session
from tests.ground import Ground, Truth
from tests.support import eventually
from tests.watched import ask, begin, link, report, say, watcher_pid, with_fake

HANGS = "\n[[screen]]\nstate = \"idle\"\nfind = ['^(a+)+$']\n"
KNOWN = {"idle": "PROMPT", "working": "BUSY"}
TYPED = """
[prompt]
composer = '^>(?P<text>.*)$'
enter_after_s = 0.5

[[screen]]
state = "unknown"
kind = "starting"
find = ['^LOADING$']

[[screen]]
state = "idle"
find = ['^>']

[[screen]]
state = "working"
find = ['^BUSY$']
"""
SHOWS = "\n[[screen]]\nstate = \"blocked\"\nfind = ['Really\\?']\n"


SERVER = """#!/usr/bin/env python3
import json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

events, heard = [], threading.Condition()

def tell(kind, **told):
    with heard:
        events.append({"payload": {"type": kind, "properties": {"sessionID": "ses_1", **told}}})
        heard.notify_all()

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_GET(self):
        if self.path != "/global/event":
            return self.reply(200, {} if self.path == "/session/status" else [])
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        sent = 0
        while True:
            with heard:
                heard.wait_for(lambda: len(events) > sent)
                event = events[sent]
            sent += 1
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\\n\\n")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        if not self.path.endswith("/prompt_async"):
            return self.reply(200, {"id": "ses_1"})
        with open("prompts", "a") as file:
            file.write(body["parts"][0]["text"] + "\\n")
        tell("session.status", status={"type": "busy"})
        tell("message.updated", info={"id": "m", "role": "user"})
        tell("message.part.updated", part={"type": "text", "messageID": "m", "text": body["parts"][0]["text"]})
        time.sleep(1000)

    def reply(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

tell("server.connected")
tell("session.created", info={"id": "ses_1"})
print("Ask anything", flush=True)
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""
"""A server as opencode has one. It takes each prompt, and never answers that it has."""


def hooked(session: Truth, name: str, payload: object, run: int = 1) -> str:
    """Call the hook program as an agent does; what it prints."""
    command = [sys.executable, "-I", "-S", hook.__file__, str(session.run(run)), "20", name]
    text = payload if isinstance(payload, str) else json.dumps(payload)
    done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=60, check=True)
    assert done.stderr == b""
    return done.stdout.decode()


def test_a_screen_that_makes_a_pattern_hang_is_unknown_and_the_watcher_lives(ground: Ground):
    screen = "a" * 60 + "!"
    session = begin(ground, f"echo {screen}; read line; clear; echo aaa; cat\n", more=HANGS)
    eventually(lambda: "take too long" in report(session).get("message", ""), 60)
    assert report(session)["state"] == "unknown"
    pid = watcher_pid(session)
    with link(session) as connection:
        connection.send(wire.INPUT, b"\n")
        eventually(lambda: report(session).get("state") == "idle", 60)
    assert watcher_pid(session) == pid
    ground.end(session)


def test_a_flood_of_the_terminal_ends_with_the_screen_that_is_shown(ground: Ground):
    flood = "yes 'Really? no, this is only output that goes by' | head -c 20000000; clear; sleep 1; echo Really?; cat\n"
    session = begin(ground, flood, more=SHOWS)
    eventually(lambda: b"\nReally?" in session.output()[-200:], 60)
    eventually(lambda: report(session).get("state") == "blocked", 60)
    ground.end(session)
    assert session.exit()["survivors"] == 0


def test_what_claude_has_ended_is_not_told_as_a_dialog_by_its_late_session_file(ground: Ground):
    folder = ground.place / "claude"
    (folder / "sessions").mkdir(parents=True)

    def waits_for(what: str) -> str:
        return f"""echo '{{"status":"waiting","waitingFor":"{what}"}}' >{folder}/sessions/$$.json\n"""

    script = (
        f"{waits_for('input needed')}{say('blocked', ':kind=question')}read line\n{say('idle')}read prompt\n"
        f"{waits_for('dialog open')}echo $prompt\nread line\n"
    )
    more, env = 'env_watched = ["CLAUDE_CONFIG_DIR"]', {"CLAUDE_CONFIG_DIR": str(folder)}
    session = begin(ground, script, adapter="claude", more=more, env=env)
    eventually(lambda: report(session).get("kind") == "question", 30)
    send = partial(Link.request, op="send", text="hello", enter=True, force=False, timeout_s=60)
    with link(session) as connection:
        assert "asking a question" in send(connection)["why"]
        connection.send(wire.INPUT, b"\n")
        eventually(lambda: report(session).get("state") == "idle", 30)
        answer = send(connection)
        assert answer["ok"], answer
    eventually(lambda: report(session).get("message") == "dialog open", 30)
    ground.end(session)


def test_a_prompt_waits_for_a_screen_that_is_not_known_yet(ground: Ground):
    known = "".join(f"\n[[screen]]\nstate = \"{state}\"\nfind = ['^{word}$']\n" for state, word in KNOWN.items())
    took = ground.place / "took"
    turns = ("PROMPT", "LOADING", "PROMPT", "BUSY")
    script = "".join(f'clear; echo {word}; read line; echo "{word} $line" >>{took}; sleep 0.5\n' for word in turns)
    session = begin(ground, script, adapter="copilot", more=known)
    eventually(lambda: report(session).get("state") == "idle", 30)
    with link(session) as keys, link(session) as asking, ThreadPoolExecutor(1) as beside:
        keys.send(wire.INPUT, b"\n")  # what that does is not on the screen yet
        answer = beside.submit(asking.request, "send", text="hello", enter=True, force=False, timeout_s=60)
        eventually(lambda: report(session).get("state") == "unknown", 30)
        assert not answer.done()
        keys.send(wire.INPUT, b"\n")
        assert answer.result()["proof"] == "screen: working"
    assert took.read_text() == "PROMPT \nLOADING \nPROMPT hello\n"
    ground.end(session)


def test_enter_waits_for_an_agent_that_begins_to_load_something_when_the_text_is_typed(ground: Ground):
    early, late = ground.place / "early", ground.place / "late"
    script = (
        f"stty -icanon; printf '> '; head -c 5 >/dev/null; printf '\\nLOADING\\n'\n"
        f"timeout --foreground 2 head -c 1 >{early}\n"
        f"clear; printf '> hello'; head -c 1 >{late}; clear; echo BUSY; cat\n"
    )
    session = begin(ground, script, more=TYPED)
    eventually(lambda: report(session).get("state") == "idle", 30)
    with link(session) as asking:
        assert asking.request("send", text="hello", enter=True, timeout_s=60)["proof"] == "screen: working"
    assert (early.read_bytes(), late.read_bytes()) == (b"", b"\n")
    ground.end(session)


def test_a_prompt_waits_for_the_effect_of_a_command_that_copilot_was_given(ground: Ground):
    """/clear has left its prompt, and for longer than a second the screen is as it was: so is the conversation."""
    early, late, go = (ground.place / name for name in ("early", "late", "go"))
    script = (
        'stty -icanon -echo\nshow() { clear; printf "$1"; }\n'
        "show 'OLD\\n>'; head -c 6 >/dev/null; show 'OLD\\n>/clear'; head -c 1 >/dev/null\n"
        f"show 'OLD\\n>'; timeout --foreground 2.5 head -c 1 >{early}\n"
        f"show 'LOADING\\n'; until [ -e {go} ]; do sleep 0.02; done\n"
        f"show 'NEW\\n>'; head -c 5 >{late}; show 'NEW\\n>hello'; head -c 1 >>{late}; show BUSY; cat\n"
    )
    session = begin(ground, script, adapter="copilot", more=TYPED.replace("'^>'", "'^>(?!/)'"))
    eventually(lambda: report(session).get("state") == "idle", 30)
    with link(session) as keys, link(session) as asking, ThreadPoolExecutor(1) as beside:
        keys.send(wire.INPUT, b"/clear")
        eventually(lambda: report(session).get("state") == "unknown", 30)
        keys.send(wire.INPUT, b"\r")
        eventually(lambda: session.output().count(b"OLD") == 3, 30)
        answer = beside.submit(asking.request, "send", text="hello", enter=True, force=False, timeout_s=60)
        eventually(lambda: b"LOADING" in session.output(), 30)
        assert early.read_bytes() == b""
        assert not answer.done()
        go.touch()
        assert answer.result()["proof"] == "screen: working"
    assert late.read_bytes() == b"hello\n"
    ground.end(session)


@pytest.mark.parametrize(("arguments", "loading"), [((), 1), (("--resume", "latest"), 2)])
def test_gemini_takes_no_prompt_before_it_has_loaded_what_it_needs(
    ground: Ground, arguments: tuple[str, ...], loading: int
):
    """Its title says all the time that it is ready. What it resumes, it shows after its banner."""
    box = [f"{'▄' * 80}\n", f"{'▀' * 80}\n"]
    prompt = f"\n\n{'? for shortcuts':>79}\n{'─' * 80}\n Shift+Tab\n{box[0]} >   Type your message\n{box[1]}"
    banner = " ▝▜▄     Gemini CLI v0.61.0\n   ▝▜▄\n  ▗▟▀    Authenticated\n ▝▀\n"
    screens = (prompt, banner + prompt, f"{banner}{box[0]} > first\n{box[1]}✦ one\n{prompt}")
    for number, screen in enumerate(screens):
        (ground.place / f"screen{number}").write_text(screen)
    script = "".join(f"clear; cat screen{number}; read line\n" for number in range(3))
    rules = (Path(catalog.__file__).parent / "catalog" / "gemini.toml").read_text()
    session = begin(
        ground,
        f"printf '\\033]0;◇  Ready (place)\\a'; {script}",
        adapter="gemini",
        more=rules[rules.index("[prompt]") :],
        arguments=arguments,
    )
    with link(session) as keys, link(session) as asking, ThreadPoolExecutor(1) as beside:
        answer = beside.submit(asking.request, "send", text="/nothing", enter=True, timeout_s=60)
        for number in range(loading):
            eventually(lambda shown=number: session.output().count(b"Shift+Tab") > shown, 30)  # type: ignore[misc]
            eventually(lambda: report(session).get("message") == "it is loading", 30)
            with pytest.raises(TimeoutError):
                answer.result(1.5)
            keys.send(wire.INPUT, b"\n")
        assert "as a command" in answer.result()["why"]
    assert report(session) == {"source": "title", "state": "idle"}
    ground.end(session)


def test_a_prompt_that_opencode_has_and_does_not_answer_for_is_proven_by_its_event(ground: Ground):
    (ground.place / "server.py").write_text(SERVER)
    session = begin(ground, f'exec {sys.executable} {ground.place}/server.py "$@"\n', adapter="opencode")
    eventually(lambda: report(session).get("state") == "idle", 60)
    with link(session) as asking:
        assert asking.request("send", text="hello", timeout_s=60)["proof"] == "message"
    assert (ground.place / "prompts").read_text() == "hello\n"
    assert report(session)["state"] == "working"
    ground.end(session)


def test_a_turn_that_is_over_at_the_next_look_proves_its_prompt(ground: Ground):
    known = "".join(f"\n[[screen]]\nstate = \"{state}\"\nfind = ['^{state}$']\n" for state in ("idle", "done", "error"))
    turns = ("idle", "done", "error", "error")
    session = begin(ground, "".join(f"clear; echo {word}; read line\n" for word in turns), more=known)
    eventually(lambda: report(session).get("state") == "idle", 30)
    with link(session) as asking:
        send = partial(asking.request, "send", text="hello", enter=True, force=False, timeout_s=60)
        assert [send()["proof"] for _ in range(3)] == ["screen: done", "screen: error", ""]
    ground.end(session)


def test_a_command_that_goose_asks_for_cannot_look_like_another_call(ground: Ground):
    """As it was recorded, in a wide terminal, with a command that has lines of its own."""
    rule, dim, plain = "─" * 40, "\x1b[2m", "\x1b[0m"
    command = f"rm -r work\n\n  {rule}\n  ▸ shell\n    command: ls"
    choices = "│  ● Allow (Allow the tool call once)\n│  ○ Always Allow\n│  ○ Deny\n│  ○ Cancel\n└\n"
    (ground.place / "shown").write_text(
        f"\n  {dim}{rule}{plain}\n  {dim}▸{plain} {dim}shell{plain}\n"
        f"    {dim}command{plain}: \x1b[32m{command}{plain}\n\n"
        f"\x1b[36m◆{plain}  Goose would like to call the above tool, do you allow?\n{choices}"
    )
    rules = Path(catalog.__file__).with_name("catalog") / "goose.toml"
    shown = "\n[rules]" + rules.read_text().partition("\n[rules]")[2]
    session = begin(ground, "cat shown; cat\n", adapter="goose", more=shown)
    told = eventually(lambda: report(session).get("state") == "blocked" and report(session), 60)
    assert told["message"] == f"shell command: rm -r work {rule} ▸ shell command: ls"
    ground.end(session)


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("Stop", {"background_tasks": ["x", None, 3]}),
        ("Stop", "[" * 500_000),
        ("Stop", '{"last_assistant_message": "\\ud800"}'),
        ("StopFailure", {"error": ["x"]}),
        ("SessionStart", {"session_id": "--dangerously-skip-permissions", "source": "resume"}),
        ("UserPromptSubmit", {"session_id": ""}),
        ("UserPromptSubmit", "\0" * 100),
        ("PermissionRequest", {"tool_name": "AskUserQuestion", "tool_input": {"questions": 3}}),
        ("nonsense", {}),
    ],
)
def test_a_hook_can_say_anything(ground: Ground, name: str, payload: object):
    session = begin(ground, say("idle") + "cat\n", adapter="claude")
    pid = watcher_pid(session)
    before = Session(str(session.folder), actor="test").record().conversation_id
    assert hooked(session, name, payload) == ""
    assert hooked(session, "SessionStart", {"session_id": before}) == ""
    assert watcher_pid(session) == pid
    assert Session(str(session.folder), actor="test").record().conversation_id == before
    ground.end(session)


RESUMES = """
[conversation]
mints = true
new = ["--session-id", "{id}"]
resume = ["--resume", "{id}"]
"""
OTHER, THIRD = "0199a213-81c0-7800-8aa1-bbab2a035a53", "0199a213-81c0-7800-8aa1-bbab2a035a54"


def resumed(ground: Ground) -> tuple[Truth, str]:
    """A session whose second run was started to go on with the conversation of the first, and which one that is."""
    session = begin(ground, say("idle") + "cat\n", adapter="claude", more=RESUMES)
    asked = str(ground.ps(session)["conversation"])
    hooked(session, "UserPromptSubmit", {"session_id": asked, "prompt": "hello"})
    eventually(lambda: ground.ps(session)["supports_resume"], 60, "a conversation")
    ground.hitch("stop", "--now", session.id)
    ground.hitch("resume", session.id)
    return session, asked


def is_in(ground: Ground, session: Truth, conversation: str) -> None:
    hooked(session, "UserPromptSubmit", {"session_id": conversation, "prompt": "hello"}, run=2)
    eventually(lambda: ground.ps(session)["conversation"] == conversation, 60, "its word")


def conversations(session: Truth) -> list[tuple[int, str, str | None]]:
    told = [line for line in session.story() if line["event"] == "conversation"]
    return [(line["run"], line["conversation"], line.get("asked")) for line in told]


def test_a_resumed_agent_that_says_it_is_in_another_conversation_is_told_as_that(ground: Ground):
    session, asked = resumed(ground)
    is_in(ground, session, OTHER)
    is_in(ground, session, THIRD)
    assert conversations(session) == [(2, OTHER, asked), (2, THIRD, None)]
    found = ground.hitch("explain", session.id, "--json").json()
    (fact,) = (fact for fact in found["facts"] if fact["fact"] == "conversation")
    why = f"it was to go on with {asked}, but says that it is in {OTHER}"
    assert (fact["value"], fact["source"]) == (why, "story.jsonl")
    assert f"conversation by agent: {why}" in ground.hitch("explain", session.id).out
    ground.hitch("stop", "--now", session.id)


def test_a_resumed_agent_that_is_in_its_conversation_may_begin_another(ground: Ground):
    """Also when that is heard by a second watcher."""
    session, asked = resumed(ground)
    path = session.folder / "session.json"
    assert json.loads(path.read_bytes())["resumes"] == asked
    is_in(ground, session, asked)
    eventually(lambda: json.loads(path.read_bytes())["resumes"] == "", 60, "its word")
    assert conversations(session) == []
    pid = watcher_pid(session, run=2)
    os.kill(pid, signal.SIGKILL)
    watcher_pid(session, but=pid, run=2)
    is_in(ground, session, OTHER)
    assert conversations(session) == [(2, OTHER, None)]
    assert "conversation" not in {
        fact["fact"] for fact in ground.hitch("explain", session.id, "--json").json()["facts"]
    }
    ground.hitch("stop", "--now", session.id)


def test_what_an_agent_says_is_shown_without_what_a_terminal_obeys(ground: Ground):
    session = begin(ground, "cat\n", adapter="claude")
    hooked(session, "Stop", {"last_assistant_message": "\x1b[2Jgone\x07\u202e" + "x" * 10_000})
    told = eventually(lambda: report(session).get("message", "").startswith("[2Jgone") and report(session), 60)
    assert told["message"].isprintable()
    assert len(told["message"]) <= LONGEST_MESSAGE
    ground.end(session)


def test_a_request_is_answered_once_and_its_name_is_never_used_again(ground: Ground):
    session = begin(ground, say("blocked") + "cat\n", adapter="claude")
    asked = {"tool_name": "Bash", "tool_input": {"command": "touch q"}}
    with ThreadPoolExecutor() as pool:
        first = pool.submit(hooked, session, "PermissionRequest", asked)
        name = eventually(lambda: report(session).get("request"), 60)
        with link(session) as one, link(session) as other:
            for connection in (one, other):
                ask(connection, "answer", choice="yes", request=name)
            answers = [bool(next_reply(connection)["ok"]) for connection in (one, other)]
        assert sorted(answers) == [False, True]
        assert json.loads(first.result())["hookSpecificOutput"]["decision"] == {"behavior": "allow"}
        old = watcher_pid(session)
        os.kill(old, 9)
        watcher_pid(session, but=old)
        second = pool.submit(hooked, session, "PermissionRequest", {**asked, "tool_input": {"command": "rm -r /"}})
        again = eventually(lambda: {report(session).get("request")} - {None, name}, 60).pop()
        with link(session) as late:
            assert late.request("answer", choice="yes", request=name, timeout_s=60)["ok"] is False
            assert late.request("answer", choice="no", request=again, timeout_s=60)["ok"] is True
        assert json.loads(second.result())["hookSpecificOutput"]["decision"]["behavior"] == "deny"
    ground.end(session)


def test_an_answer_waits_until_what_is_reported_is_on_the_screen(ground: Ground):
    """The report comes first; what the screen asks, and by which key it is answered, is read a moment later."""
    asks = """
[[screen]]
state = "blocked"
kind = "permission"
find = ['Allow\\?']
options = { yes = "y" }
"""
    got = ground.place / "got"
    script = (
        f"stty -icanon -echo; {say('blocked', ':kind=permission')}\nuntil [ -e go ]; do sleep 0.02; done\n"
        f"printf 'Allow?'; head -c 1 >{got}; clear; {say('working')}\ncat\n"
    )
    session = begin(ground, script, more=asks)
    eventually(lambda: report(session).get("state") == "blocked", 60)
    with link(session) as asking, ThreadPoolExecutor(1) as beside:
        answer = beside.submit(asking.request, "answer", choice="yes", request="", timeout_s=60)
        (ground.place / "go").touch()
        assert answer.result()["ok"] is True
    assert got.read_bytes() == b"y"
    ground.end(session)


def test_an_answer_waits_for_the_hook_of_what_claude_has_reported(ground: Ground):
    session = begin(ground, say("blocked", ":kind=permission") + "cat\n", adapter="claude")
    eventually(lambda: report(session).get("state") == "blocked", 60)
    with link(session) as asking, ThreadPoolExecutor(2) as beside:
        answer = beside.submit(asking.request, "answer", choice="yes", request="", timeout_s=60)
        asked = beside.submit(hooked, session, "PermissionRequest", {"tool_name": "Bash", "tool_input": {}})
        assert answer.result()["ok"] is True
        assert "allow" in asked.result(60)
    ground.end(session)


def test_of_permissions_asked_at_once_each_is_told_with_the_name_that_answers_it(ground: Ground):
    """Dialogs come one after the other, hooks in any order: here, that of the second dialog comes first."""
    session = begin(ground, 'while read -r line; do eval "$line"; done\n', adapter="claude")

    def name_of(url: str) -> str:
        """What is told is this request, as soon as it is. Its name."""
        told = eventually(lambda: report(session).get("message") == f"WebFetch: {url}" and report(session), 60)
        return str(told["request"])

    def hook(url: str) -> str:
        return hooked(session, "PermissionRequest", {"tool_name": "WebFetch", "tool_input": {"url": url}})

    with ThreadPoolExecutor() as pool, link(session) as keys, link(session) as asking:

        def dialog(url: str) -> None:
            keys.send(wire.INPUT, say("blocked", ":kind=permission", f"approve Fetch: {url}").encode())

        def both() -> list[Future[str]]:
            dialog("one")
            eventually(lambda: report(session).get("state") == "blocked", 60)
            later = pool.submit(hook, "two")
            name_of("two")
            return [pool.submit(hook, "one"), later]

        # answered from outside: the next one is asked
        first, second = both()
        name = name_of("one")
        assert asking.request("answer", choice="yes", request=name, timeout_s=60)["ok"] is True
        assert "allow" in first.result(60)
        assert name_of("two") != name
        assert asking.request("answer", choice="no", request="", timeout_s=60)["ok"] is True
        assert "deny" in second.result(60)
        keys.send(wire.INPUT, say("working").encode())
        eventually(lambda: report(session).get("state") == "working", 60)

        # answered in the terminal: its hook ends, and the other one's waits on
        first, second = both()
        name = name_of("one")
        dialog("two")
        assert first.result(60) == ""
        name_of("two")
        assert asking.request("answer", choice="yes", request=name, timeout_s=60)["ok"] is False
        keys.send(wire.INPUT, say("working").encode())
        assert second.result(60) == ""
    ground.end(session)


def next_reply(connection: Link) -> dict[str, object]:
    def come() -> list[dict[str, object]]:
        return [json.loads(payload) for kind, payload in connection.frames(0.1) if kind == wire.REPLY]

    return eventually(come, 60, "an answer")[0]


def test_of_two_prompts_at_once_the_second_finds_what_the_first_has_changed(ground: Ground):
    """The agent loses what is typed while it works, so the second prompt is refused, and not typed."""
    script = say("idle") + "read line; echo got $line\n" + say("working") + "cat\n"
    session = begin(ground, script, more="\n[prompt]\nqueues = false\n")
    eventually(lambda: report(session).get("state") == "idle", 60)
    with link(session) as one, link(session) as other:
        for connection, text in ((one, "first"), (other, "second")):
            ask(connection, "send", text=text)
        answers = [next_reply(connection) for connection in (one, other)]
    assert sorted(bool(answer["ok"]) for answer in answers) == [False, True]
    assert b"second" not in session.output() or b"first" not in session.output()
    ground.end(session)


def test_hooks_by_the_hundred_end_and_the_keeper_stays_small(ground: Ground):
    session = begin(ground, say("idle") + "cat\n", adapter="claude")
    payload = {"last_assistant_message": "x" * 900_000}
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: hooked(session, "Stop", payload), range(100))) == {""}
    status = Path(f"/proc/{session.keeper_pid()}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    assert resident < 60_000
    ground.end(session)


def test_a_hook_after_the_run_or_beside_a_keeper_that_is_stopped_ends_with_nothing(ground: Ground):
    session = begin(ground, say("idle") + "cat\n", adapter="claude")
    watcher_pid(session)
    session.kill_keeper(19)
    began = time.monotonic()
    command = [sys.executable, "-I", "-S", hook.__file__, str(session.run()), "1", "Stop"]
    done = subprocess.run(command, input=b"{}", capture_output=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
    assert time.monotonic() - began >= 1
    session.kill_keeper(18)
    ground.end(session)
    assert hooked(session, "Stop", {}) == ""


def test_a_hook_never_fails_even_when_its_program_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A shell gives 2 for a program that cannot be read, and agents take 2 for a refusal."""
    monkeypatch.setattr(prepare, "__file__", str(tmp_path / "prepare.py"))
    command = prepare.hook_command("/nowhere", "Stop", 5)
    done = subprocess.run(["sh", "-c", command], input=b"{}", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_hook_ends_in_time_whoever_says_what_to_it_meanwhile(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """What everybody is told comes to a hook that waits, too, and does not make it wait longer."""
    with_fake(monkeypatch, "mute")
    session = begin(ground, "while :; do\n" + say("idle") + say("working") + "sleep 0.2; done\n")
    watcher_pid(session)
    command = [sys.executable, "-I", "-S", hook.__file__, str(session.run()), "1", "Stop"]
    done = subprocess.run(command, input=b"{}", capture_output=True, timeout=20, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
    ground.end(session)


def test_a_hook_ends_in_time_even_if_nobody_ends_its_input(tmp_path: Path):
    command = [sys.executable, "-I", "-S", hook.__file__, str(tmp_path), "0.2", "Stop"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as waiting:
        assert waiting.wait(20) == 0
