"""The keeper's side of a watcher that does everything wrong, in a real keeper."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.agents import prepare
from hitchpost.keeper.journal import MOST_TELLINGS
from hitchpost.keeper.watcher import MOST_ASKED, NO_ANSWER, TOO_MANY
from hitchpost.runtimes.link import Link, NoKeeper
from tests.ground import Ground, Truth, alive
from tests.support import Process, eventually, halt
from tests.watched import FAKE, ask, begin, comes, heard, link, report, say, watcher_pid, watchers, with_fake

WAIT = 'while read line; do eval "$line"; done\n'
LOST = {"state": "unknown", "source": "", "message": "the process that watches this agent has ended"}


def verdict(connection: Link, seq: int, state: str, source: str = "screen") -> None:
    """Have the fake watcher say this."""
    told = {"id": 0, "op": "verdict", "seq": seq, "report": {"state": state, "source": source}}
    assert connection.request("send", text=json.dumps(told), timeout_s=60)["ok"] is True


def replies(connection: Link) -> list[dict[str, object]]:
    """The answers to ``ask``, once there are some."""

    def come() -> list[dict[str, object]]:
        return [json.loads(payload) for kind, payload in connection.frames(0.1) if kind == wire.REPLY]

    return eventually(come, 60, "an answer")


def states(session: Truth) -> dict[str, object]:
    return {key: item for key, item in report(session).items() if key in ("state", "source")}


def test_what_is_asked_goes_to_the_watcher_and_its_answer_back(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    with_fake(monkeypatch, "say")
    session = begin(ground, say("idle") + WAIT)
    with link(session) as connection:
        assert connection.welcome["watched"] is True
        assert connection.request("send", text="hello", timeout_s=60)["echo"] == "hello"
        assert connection.request("hook", name="x", payload="p", timeout_s=60)["output"] == "p"
    ground.end(session)


def test_requests_wait_for_a_watcher_that_is_being_started(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    with_fake(monkeypatch, "late")
    session = begin(ground, say("idle") + WAIT)
    with link(session) as connection, link(session) as other:
        ask(connection, "send", text="early")
        ask(other, "send", text="left")
        eventually(lambda: watchers(session))
        other.socket.close()
        assert connection.request("ping")["ok"] is True
        (session.run() / "come").touch()
        assert [reply["echo"] for reply in replies(connection)] == ["early"]
    assert not [event for event in heard(session) if event.get("text") == "left"]
    ground.end(session)


def test_who_waits_for_a_watcher_that_dies_is_refused_and_hooks_go_on(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    with_fake(monkeypatch, "mute")
    session = begin(ground, say("idle") + WAIT)
    with link(session) as sender, link(session) as hook:
        ask(sender, "send", text="hello")
        ask(hook, "hook", name="x", payload="")
        comes(session, event="asked", op="hook")
        first = watcher_pid(session)
        os.kill(first, signal.SIGKILL)
        assert replies(sender) == [{"id": 77, "ok": False, "why": NO_ANSWER}]
        assert replies(hook) == [{"id": 77, "ok": True, "output": ""}]
        watcher_pid(session, but=first)
    ground.end(session)


def test_a_watcher_that_never_comes_is_started_again(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    with_fake(monkeypatch, "end")
    session = begin(ground, say("idle") + WAIT)
    with link(session) as connection:
        eventually(lambda: len(heard(session)) >= 3, 60, "three starts")
        assert connection.request("send", text="hello", timeout_s=60) == {
            "id": 1,
            "ok": False,
            "why": NO_ANSWER,
            "unsent": True,
        }
    ground.end(session)
    assert session.exit()["survivors"] == 0


def test_a_watcher_that_cannot_be_started_is_not_waited_for(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    from hitchpost.agents import prepare

    monkeypatch.setattr(prepare, "watcher_command", lambda agent: ("/nowhere/python",))
    session = begin(ground, say("idle") + WAIT)
    with link(session) as connection:
        assert connection.request("answer", choice="yes", timeout_s=60)["ok"] is False
        assert connection.request("hook", name="x", payload="")["output"] == ""
    eventually(lambda: states(session) == {"state": "idle", "source": "osc7501"})
    ground.end(session)


def test_a_watcher_that_hangs_is_ended_and_another_one_comes(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    with_fake(monkeypatch, "mute")
    session = begin(ground, say("idle") + WAIT)
    comes(session, event="osc7501")
    first = watcher_pid(session)
    halt(first)
    with link(session) as connection:
        connection.send(wire.INPUT, b"echo something\n")
        watcher_pid(session, but=first)
    eventually(lambda: not alive(first), what="the end of the one that hung")
    ground.end(session)
    assert session.exit()["survivors"] == 0


def test_a_watcher_that_speaks_nonsense_is_ended(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    with_fake(monkeypatch, "nonsense")
    session = begin(ground, say("idle") + WAIT)
    eventually(lambda: len([event for event in heard(session) if event["event"] == "begun"]) >= 2, 60, "another one")
    eventually(lambda: states(session) == {"state": "idle", "source": "osc7501"})
    ground.end(session)


def test_only_the_process_that_the_keeper_started_may_say_what_the_agent_does(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
):
    with_fake(monkeypatch, "mute")
    session = begin(ground, say("idle") + WAIT)
    comes(session, event="osc7501")
    with pytest.raises(NoKeeper):
        Link.connect(str(session.run()), role=wire.WATCHER)
    with link(session) as connection:
        told = connection.request("verdict", seq=1, report={"state": "done", "source": "evil"})
        assert told["ok"] is False
    eventually(lambda: states(session) == {"state": "idle", "source": "osc7501"})
    ground.end(session)


def test_a_verdict_that_is_older_than_the_agents_own_word_is_dropped(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    with_fake(monkeypatch, "say")
    session = begin(ground, say("working") + WAIT)
    comes(session, event="osc7501", seq=1)
    with link(session) as connection:
        verdict(connection, 0, "idle")
        verdict(connection, 1, "nonsense")
        verdict(connection, 1, "blocked")
        eventually(lambda: states(session) == {"state": "blocked", "source": "screen"})
    said = [line for line in session.story() if line["event"] == "attention"]
    assert not [line for line in said if line.get("state") in ("idle", "nonsense")]
    ground.end(session)


def test_another_watcher_is_told_the_agents_last_word_and_is_believed(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    with_fake(monkeypatch, "say")
    session = begin(ground, say("working") + say("idle", ":app=x") + WAIT)
    comes(session, event="osc7501", seq=2)
    with link(session) as connection:
        verdict(connection, 2, "idle", "osc7501")  # the same: it is told once
        verdict(connection, 2, "blocked")
        eventually(lambda: states(session)["state"] == "blocked")
        first = watcher_pid(session)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: report(session) == LOST)
        watcher_pid(session, but=first)
        told = eventually(lambda: [event for event in heard(session) if event["event"] == "osc7501"][1:], 60)
        assert [(event["seq"], event["report"]["state"]) for event in told] == [(2, "idle")]
        verdict(connection, 2, "blocked")
        eventually(lambda: states(session)["state"] == "blocked")
    said = [line["state"] for line in session.story() if line["event"] == "attention"]
    assert said.count("idle") == 1
    ground.end(session)


def test_what_the_agent_said_of_itself_stands_when_its_watcher_dies(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    with_fake(monkeypatch, "say")
    session = begin(ground, say("blocked") + WAIT)
    comes(session, event="osc7501", seq=1)
    with link(session) as connection:
        answerable = {"state": "blocked", "source": "osc7501", "request": "1"}
        told = {"id": 0, "op": "verdict", "seq": 1, "report": answerable}
        connection.request("send", text=json.dumps(told), timeout_s=60)
        eventually(lambda: report(session).get("request") == "1")
        os.kill(watcher_pid(session), signal.SIGKILL)
        eventually(lambda: report(session) == {"state": "blocked", "source": "osc7501"})
    ground.end(session)


def test_words_that_a_watcher_knew_better_than_do_not_count_while_the_next_one_comes(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
):
    """Codex 0.163 reports the end of a turn as it does an interruption. Its server, which a watcher hears, does not."""
    with_fake(monkeypatch, "say")
    session = begin(ground, say("working") + "read line\n" + say("idle") + WAIT)
    comes(session, event="osc7501", seq=1)
    with link(session) as connection:
        better = {"state": "working", "source": "app-server"}
        told = {"id": 0, "op": "verdict", "seq": 1, "report": better, "overrules": True}
        connection.request("send", text=json.dumps(told), timeout_s=60)
        eventually(lambda: states(session) == better)
        first = watcher_pid(session)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: report(session) == LOST)
        connection.send(wire.INPUT, b"\n")
        comes(session, event="osc7501", seq=2)
        watcher_pid(session, but=first)
        connection.request("send", text="hello", timeout_s=60)  # what waits to be written down is written now
        assert report(session) == LOST
        verdict(connection, 2, "done")
        eventually(lambda: states(session)["state"] == "done")
    ground.end(session)


def test_what_the_agent_said_of_itself_counts_when_no_other_watcher_comes(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
):
    program = ground.place / "watch"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {FAKE} say "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(prepare, "watcher_command", lambda agent: (str(program),))
    session = begin(ground, say("blocked") + WAIT)
    comes(session, event="osc7501", seq=1)
    with link(session) as connection:
        told = {"id": 0, "op": "verdict", "seq": 1, "report": {"state": "working", "source": "x"}, "overrules": True}
        connection.request("send", text=json.dumps(told), timeout_s=60)
        eventually(lambda: states(session)["state"] == "working")
        program.unlink()
        os.kill(watcher_pid(session), signal.SIGKILL)
        eventually(lambda: states(session) == {"state": "blocked", "source": "osc7501"})
    ground.end(session)


def test_a_watcher_is_told_of_a_client_that_leaves(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    with_fake(monkeypatch, "mute")
    session = begin(ground, say("idle") + WAIT)
    with link(session) as connection:
        ask(connection, "send", text="hello")
        number = comes(session, event="asked")["number"]
    comes(session, event="gone", number=number)
    ground.end(session)


def test_too_many_requests_are_refused_and_hooks_go_on(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    with_fake(monkeypatch, "mute")
    session = begin(ground, say("idle") + WAIT)
    with link(session) as connection:
        for _ in range(MOST_ASKED):
            ask(connection, "send", text="hello")
        ask(connection, "send", text="one too many")
        assert replies(connection) == [{"id": 77, "ok": False, "why": TOO_MANY, "unsent": True}]
        ask(connection, "hook", name="x", payload="")
        assert replies(connection) == [{"id": 77, "ok": True, "output": ""}]
    ground.end(session)


def test_a_hook_with_a_megabyte_reaches_the_watcher(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    with_fake(monkeypatch, "say")
    session = begin(ground, say("idle") + WAIT)
    comes(session, event="osc7501")
    first = watcher_pid(session)
    with link(session) as connection:
        payload = "x" * 1_000_000
        assert connection.request("hook", name="x", payload=payload, timeout_s=60)["output"] == payload[:80]
    assert comes(session, event="asked")["size"] > len(payload)
    assert watcher_pid(session) == first
    ground.end(session)


def test_a_flood_of_reports_costs_no_watcher_and_its_last_one_counts(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    with_fake(monkeypatch, "mute")
    flood = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); " + say("working", ":n=$i").strip() + "; done\n"
    session = begin(ground, say("idle") + "read line\n" + flood + say("done") + "cat\n")
    comes(session, event="osc7501")
    first = watcher_pid(session)
    halt(first)
    with link(session) as connection:
        connection.send(wire.INPUT, b"\n")
        eventually(lambda: states(session)["state"] == "done", 60)
        os.kill(first, signal.SIGCONT)
        last = comes(session, event="osc7501", seq=20002)
    assert last["report"]["state"] == "done"
    assert watcher_pid(session) == first
    told = [line for line in session.story() if line["event"] == "attention"]
    assert len(told) <= MOST_TELLINGS + 10
    ground.end(session)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_watcher_ends_with_its_run_and_is_no_survivor(ground: Ground, monkeypatch: pytest.MonkeyPatch, stopped: bool):
    with_fake(monkeypatch, "mute")
    session = begin(ground, say("idle") + "read line\n")
    comes(session, event="osc7501")
    pid = watcher_pid(session)
    if stopped:
        halt(pid)
    with link(session) as connection:
        connection.send(wire.INPUT, b"\n")
        assert session.ended() == "completed"
    assert session.exit()["survivors"] == 0
    eventually(lambda: not alive(pid), what="the end of the watcher")


def test_a_watcher_ends_with_a_keeper_that_is_killed(ground: Ground):
    session = begin(ground, say("idle") + WAIT)
    pid = watcher_pid(session)
    session.kill_keeper()
    eventually(lambda: not alive(pid), what="the end of the watcher")


def test_a_watcher_holds_nothing_of_the_run_and_knows_no_secret(ground: Ground):
    session = begin(ground, say("idle") + WAIT, env={"ANTHROPIC_API_KEY": "sk-secret", "MY_TOKEN": "sk-secret"})
    with link(session) as connection:
        connection.request("hook", name="x", payload="", timeout_s=60)  # it is there
    pid = watcher_pid(session)
    names = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    files = {name for name in names if name.startswith("/") and not name.startswith("/dev/null")}
    assert files == {str(session.run() / "keeper.log")}
    found = Process.read(pid)
    assert found is not None
    assert b"sk-secret" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert not any("sk-secret" in word for word in found.argv)
    ground.end(session)
    assert "sk-secret" not in (session.run() / "keeper.log").read_text()
