"""Commands for a hub elsewhere: the same words, the same JSON and the same exit codes as on its own machine."""

from __future__ import annotations

import inspect
import json
import re
from datetime import UTC, datetime
from importlib import import_module

import click
import pytest

from hitchpost.cli.group import COMMANDS
from hitchpost.cli.remote.acts import ACTS
from hitchpost.cli.remote.advice import elsewhere
from hitchpost.cli.remote.table import ASKED, ONLY_HERE, REFUSED, answer
from hitchpost.hub.http.permissions import NEEDS
from hitchpost.model import run as runs
from hitchpost.model.facts import Pod
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.give_up import risk
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.runtimes.pod_file import write_pod
from hitchpost.settings import Settings
from hitchpost.store.session import Session
from hitchpost.values import replace
from tests.cli.remote.far import NAME, Far
from tests.ground import Ground, Truth
from tests.support import Answer, eventually


def test_every_command_works_from_afar_or_says_why_not() -> None:
    acts = {name.partition(" ")[0] for name in ACTS}
    asked = {name.partition(" ")[0] for name in ASKED}
    assert sorted([*asked, *acts, *REFUSED, *ONLY_HERE]) == sorted(COMMANDS)
    routes = [route for _, routes in ASKED.values() for route in routes] + [act.asks for act in ACTS.values()]
    assert [route for route in routes if tuple(route.split()) not in NEEDS] == []


@pytest.mark.parametrize("name", [name for name in ASKED if name not in ("run", "finish")])
def test_what_answers_from_afar_takes_the_options_of_the_command(name: str) -> None:
    word, _, inside = name.partition(" ")
    command: click.Command = import_module(f"hitchpost.cli.{word}").command
    if isinstance(command, click.Group):
        command = command.commands[inside]
    taken = dict(inspect.signature(answer(name)).parameters)
    options = {parameter.name or "" for parameter in command.params}
    if taken.pop("quota", None) is not None:
        options -= {"sessions", "cpu", "memory", "storage"}
    assert sorted(options) == sorted(set(taken) - {"hub"})


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_about_one_machine_is_refused_with_the_reason(far: Far, name: str) -> None:
    words = {"workspace": ["ls"], "rules": ["test", "x"], "adopt": ["--tmux", "x"]}
    why, instead = REFUSED[name]
    assert far(name, *words.get(name, []), check=4).err == (
        f"hitch: hitch {name} does not work with the context team: {why}; {elsewhere(instead, NAME)}\n"
    )
    assert far(name, "--help").out.startswith("Usage: hitch ")


def steady(said: Answer) -> tuple[int, str, str]:
    """Without what differs each time: ids, numbers of sessions, times and offsets."""
    texts = [re.sub(r"session \d+, id \w{12}", "session N, id ID", text) for text in (said.out, said.err)]
    return said.code, *(re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text) for text in texts)  # type: ignore[return-value]


def test_ps_lists_what_the_hub_lists(far: Far, ground: Ground) -> None:
    assert far("ps").out == ground.hitch("ps").out
    ground.begin_sh("exec sleep 1000", name="dev")
    gone = ground.begin_sh("exit 3", name="gone")
    gone.ended()
    eventually(lambda: len(far("ps", "--json").json()) == 2, what="both sessions")
    for words in (["ps"], ["ps", "--json"], ["ps", "--all"], ["ls", "--record=archived"], ["ps", "--record", "active"]):
        here, there = (re.sub(r"\d+s", "Ns", call(*words).out) for call in (ground.hitch, far))
        assert there == here
    assert far("ps", "--record", "never", check=2).err == ground.hitch("ps", "--record", "never", check=2).err


class Pair:
    """The same command here and from afar, each on a session of its own."""

    def __init__(self, far: Far, ground: Ground) -> None:
        self.far, self.ground = far, ground

    def sessions(self, script: str) -> tuple[Truth, Truth]:
        self.near = self.ground.begin_sh(script, name="here")
        self.away = self.ground.begin_sh(script, name="there")
        eventually(lambda: self.far("ps", "--json", "--all").json()[-1]["name"] == "there", what="the hub to know it")
        return self.near, self.away

    def same(self, *words: str, stdin: str = "") -> tuple[int, str, str]:
        """What both say. A word ``SESSION`` is the session's name."""
        near = [word.replace("SESSION", "here") for word in words]
        away = [word.replace("SESSION", "there") for word in words]
        here = steady(self.ground.hitch(*near, check=False, stdin=stdin))
        there = steady(self.far(*away, check=False, stdin=stdin))
        as_here = (str(part).replace("there", "here").replace(f"hitch --context {NAME} ", "hitch ") for part in there)
        assert tuple(as_here) == tuple(map(str, here))
        return here


@pytest.fixture
def pair(far: Far, ground: Ground) -> Pair:
    return Pair(far, ground)


def test_a_session_lives_the_same_life_from_afar(pair: Pair) -> None:
    near, away = pair.sessions("read line; echo got $line; exec sleep 1000")
    assert pair.same("send", "SESSION", "hello")[1] == "sent to here\n"
    eventually(lambda: b"got hello" in near.output() and b"got hello" in away.output(), what="the prompt")
    assert "got hello\n" in pair.same("logs", "SESSION")[1]
    assert pair.same("stop", "SESSION", "--now")[1] == "here: stopped\n"
    assert pair.same("stop", "SESSION")[1] == "here: stopped\n"
    assert pair.same("send", "SESSION", "more")[0] == 4
    assert pair.same("restart", "SESSION")[1] == "here: running (run 2)\n"
    assert pair.same("restart", "SESSION", "--again")[0] != 0
    assert pair.same("wait", "SESSION", "--timeout", "0")[0] == 1
    assert pair.same("pin", "SESSION")[1] == "here: pinned\n"
    assert pair.same("pin", "--off", "SESSION", "nobody")[0] == 3
    assert pair.same("snooze", "SESSION", "1h")[1] == "here: snoozed for 1h 0m\n"
    assert pair.same("answer", "SESSION", "yes")[0] == 4
    assert pair.same("archive", "SESSION")[0] == 4
    assert pair.same("rm", "SESSION")[0] == 4
    assert pair.same("cancel", "SESSION", "--yes")[1] == "here: cancelled\n"
    assert pair.same("wait", "SESSION", "--until", "idle")[0] == 1
    assert pair.same("unarchive", "SESSION")[1].startswith("here: brought back; hitch resume here")
    assert pair.same("resume", "SESSION")[1] == "here: running (run 3), a new conversation\n"
    assert pair.same("rename", "SESSION", "SESSION")[0] == 0
    assert pair.same("rm", "-f", "SESSION", "nobody") == (
        3, "here: removed\n", "hitch: no session 'nobody'; hitch ps --all lists them\n",
    )  # fmt: skip


def test_giving_a_pod_up_names_the_risk_and_asks_here_and_from_afar(far: Far, ground: Ground) -> None:
    spec = SessionSpec(str(ground.place), command=("sleep", "1000"), name="dev")
    session = Truth(ground.home, create(str(ground.home), spec, Settings(), actor="test").id)
    stored = Session(str(session.folder), actor="test")
    with stored.lock():
        stored.save(replace(stored.record(), runtime="pod"))
    for state in (runs.STARTING, runs.RUNNING):
        stored.transition(state, run=1)
    pod = Pod("hitch-dev", "uid", 1, "Running", node="n2", node_ready=False, unreachable_since=datetime.now(UTC))
    write_pod(str(session.folder), pod)
    risk = "dev may still be running on node n2, which nobody reaches; if it is, two agents will work on the same files"
    for call in (ground.hitch, far):
        eventually(lambda call=call: "unknown (node n2 unreachable" in call("ps").out, what="its doubt")  # type: ignore[misc]
        asked = call("restart", "--force", "dev", stdin="n\n", check=False)
        assert (asked.code, f"{risk}. Give it up? [y/N]" in asked.err) == (1, True)
        assert session.state == "running"
        given = call("restart", "--force", "--yes", "dev", check=False)
        assert risk not in given.err
        assert "no cluster is connected here" in given.err, "it was not given up"
        refused = call("restart", "dev", check=False)
        assert "restart --force dev" in refused.err


def test_a_session_is_started_elsewhere_in_a_folder_there(far: Far, ground: Ground) -> None:
    place = str(ground.place)
    began = far(
        "run", "--folder", place, "--name", "dev", "--env", "WORD=x", "--", "sh", "-c", "echo $WORD; sleep 1000"
    )
    assert re.fullmatch(r"dev started as session 1, id \w{12} \(run 1\)\n", began.out)
    dev = Truth(ground.home, far("ps", "--json").json()[0]["id"])
    eventually(lambda: dev.output() == b"x\r\n", what="its environment")
    assert [line["actor"] for line in dev.story() if line["event"] == "created"] == ["token test"]
    shape = far("run", "--json", "--folder", place, "--", "sleep", "1000").json()
    assert shape["workspace"]["path"] == place
    assert far("run", "--folder", place, "--name", "dev", "--", "true", check=5).err == (
        f"hitch: session {dev.id} is already named 'dev'; choose another name, "
        f"or hitch --context team cancel {dev.id} ends and archives that one\n"
    )
    ended = far("run", "--folder", place, "--name", "bad", "--", "sh", "-c", "exit 3", check=1).err
    printed = "hitch --context team logs bad shows what it printed"
    assert ended == f"hitch: bad ended at once: command exited with code 3; {printed}\n"
    assert far("run", "--", "true", check=2).err == (
        "hitch: the current folder is on this machine, and the session will be on another; "
        "name a folder there with --folder, or a repository to clone with --repo\n"
    )
    assert "cannot be combined" in far("run", "--folder", place, "--repo", "x", "--", "true", check=2).err
    assert "no cluster is connected here" in far("run", "--repo", "https://x/y.git", "--", "true", check=1).err
    assert far("run", "--folder", "/nowhere", "--", "true", check=2).err == (
        "hitch: cannot work in /nowhere: no such file or directory\n"
    )


def test_a_run_is_waited_for_elsewhere(far: Far, ground: Ground) -> None:
    words = ("run", "--wait", "--folder", str(ground.place), "--name")
    done = far(*words, "fine", "--", "true")
    assert (done.out, done.err) == ("", "fine: finished (completed)\n")
    bad = far(*words, "bad", "--json", "--", "sh", "-c", "exit 3", check=12).json()
    assert (bad["outcome"], bad["session"]["label"]) == ("failed", "failed: command exited with code 3")
    late = far(*words, "late", "--timeout", "1s", "--", "sleep", "1000", check=1)
    assert re.fullmatch(r"hitch: late had not ended after 1 s \(it is running.*\)\n", late.err)


def test_a_pod_that_nobody_reaches_is_given_up_from_afar_when_a_person_says_so(far: Far, ground: Ground) -> None:
    ground.begin_sh("exec sleep 1000", name="dev")
    refused = "hitch: dev is not in a pod that could be given up; hitch --context team stop dev ends it\n"
    assert far("restart", "--force", "dev", check=4).err == refused
    lost = ground.begin_sh("exit 0", name="lost")
    lost.ended()
    far.hub.stop()
    path = lost.folder / "session.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "runtime": "pod"}))
    state = lost.folder / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_bytes()), "state": "running"}))
    (lost.run() / "exit.json").unlink()
    away = datetime(2026, 1, 1, tzinfo=UTC)
    write_pod(str(lost.folder), Pod("p", "u", node="n1", run=1, unreachable_since=away))
    far.restart_hub()
    assert far("ps", "--json").json()[-1]["status"] == "unknown"
    asked = risk("lost", "n1")
    no = far("restart", "--force", "lost", stdin="n\n", check=1).err
    assert no == f"{asked}. Give it up? [y/N]: Aborted!\n"
    yes = far("restart", "--force", "lost", stdin="y\n", check=1).err
    assert yes.partition(" [y/N]: ")[2].startswith("hitch: no cluster is connected here; ")
    assert far("restart", "--force", "--yes", "lost", check=1).err.startswith("hitch: no cluster is connected here; ")
