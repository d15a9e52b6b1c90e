"""The local runtime and the link to its keepers, without a record: one run folder, one keeper, one agent."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hitchpost import wire
from hitchpost.errors import UsageError
from hitchpost.runspec import RunSpec
from hitchpost.runtimes import base, keepers
from hitchpost.runtimes.base import Health, Started
from hitchpost.runtimes.link import Link, NoKeeper, Silent, exit_event, is_kept
from hitchpost.runtimes.local import Local, marked
from hitchpost.store import files, locks, process_marks
from hitchpost.store.home import new_id
from hitchpost.store.session import Session
from hitchpost.terminal.output import last_written
from tests.ground import NEVER_RAN, Ground, Truth, alive, descendants, died_of, left_with, waiting_for
from tests.support import Process, eventually, halt


class Yard:
    """A session folder in ``starting``, ready to be launched."""

    def __init__(self, ground: Ground, session: str = "") -> None:
        self.ground = ground
        self.truth = Truth(ground.home, session or new_id())
        self.truth.run().mkdir(parents=True, mode=0o700)
        stored = Session(str(self.truth.folder), actor="test")
        stored.create(self.truth.id, "")
        stored.transition("starting", run=1)

    @property
    def home_id(self) -> str:
        return files.folder_id(str(self.ground.home))

    def launch(self, *argv: str, **more: Any) -> Started:
        place = os.stat(self.ground.place)
        lock = os.open(self.truth.run() / "keeper.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        named = {"HITCHPOST_SESSION": self.truth.id, "HITCHPOST_RUN": "1", "HITCHPOST_HOME_ID": self.home_id}
        env = {"PATH": os.environ["PATH"], **named, **more.pop("env", {})}
        fields: dict[str, Any] = {
            "session": self.truth.id,
            "session_folder": str(self.truth.folder),
            "run": 1,
            "argv": tuple(map(os.fsencode, argv)),
            "env": {os.fsencode(name): os.fsencode(text) for name, text in env.items()},
            "folder": str(self.ground.place),
            "folder_dev": place.st_dev,
            "folder_ino": place.st_ino,
            "lock_fd": lock,
        }
        try:
            return Local().start(RunSpec(**{**fields, **more}))
        finally:
            os.close(lock)

    def health(self) -> Health:
        return Local().health(str(self.truth.folder), 1, session=self.truth.id)

    def stop(self) -> None:
        with Link.connect(str(self.truth.run())) as link:
            assert link.request("stop", by="user")["ok"] is True
        self.truth.ended()


@pytest.fixture
def yard(ground: Ground) -> Iterator[Yard]:
    made = Yard(ground)
    yield made
    if is_kept(str(made.truth.run())):
        try:
            made.stop()
        except NoKeeper:
            made.truth.ended()


# starting -------------------------------------------------------------------------------------------------------


def test_start_returns_when_the_agent_runs(yard: Yard):
    started = yard.launch("sleep", "1000")
    assert started == Started(yard.truth.agent_pid())
    assert yard.truth.state == "running"
    assert yard.health() == Health(keeper_alive=True, sandbox_alive=None, session_alive=None)
    run = yard.truth.run_file()
    agent = Process.read(yard.truth.agent_pid())
    keeper = Process.read(yard.truth.keeper_pid())
    assert agent is not None
    assert keeper is not None
    assert run["agent"] == {"pid": agent.pid, "start": agent.start_ticks}
    assert run["keeper"] == {"pid": keeper.pid, "start": keeper.start_ticks}
    assert agent.parent == keeper.pid
    assert keeper.parent != os.getpid()
    assert keeper.is_keeper
    assert os.getsid(agent.pid) == agent.pid
    assert os.readlink(f"/proc/{agent.pid}/cwd") == str(yard.ground.place)


def test_the_agent_has_the_environment_that_was_meant_and_no_other(yard: Yard):
    yard.launch("env", env={"A": "x=y", "EMPTY": ""})
    yard.truth.ended()
    marks = {f"HITCHPOST_SESSION={yard.truth.id}", "HITCHPOST_RUN=1", f"HITCHPOST_HOME_ID={yard.home_id}"}
    wanted = {"A=x=y", "EMPTY=", f"PATH={os.environ['PATH']}", *marks}
    assert set(yard.truth.output().decode().split("\r\n")) == wanted | {""}


def test_the_agent_has_the_size_that_was_meant(yard: Yard):
    yard.launch("stty", "size", cols=123, rows=45)
    yard.truth.ended()
    assert yard.truth.output() == b"45 123\r\n"


def test_the_agent_has_every_signal_as_by_default(yard: Yard):
    yard.launch("cat", "/proc/self/status")
    yard.truth.ended()
    lines = dict(line.split(":\t") for line in yard.truth.output().decode().split("\r\n") if line.startswith("Sig"))
    of_the_c_library = 0x180000000
    assert [int(lines[name], 16) & ~of_the_c_library for name in ("SigBlk", "SigIgn", "SigCgt")] == [0, 0, 0]


@pytest.mark.ids("F5")
def test_F5_a_folder_that_is_gone_is_a_failed_start(yard: Yard):
    gone = str(yard.ground.place / "gone")
    why = f"cannot enter the folder {gone}: No such file or directory"
    assert yard.launch("sleep", "1000", folder=gone) == Started(None, why)
    assert yard.truth.ended() == "failed"
    assert yard.truth.exit() == {**NEVER_RAN, "error": why}
    assert yard.truth.states() == ["starting", "failed"]
    assert list(yard.truth.run().glob(".*")) == []


@pytest.mark.ids("F5", "F51")
def test_a_folder_that_was_replaced_is_a_failed_start(yard: Yard):
    started = yard.launch("sleep", "1000", folder_ino=1)
    assert started.error == f"{yard.ground.place} is not the folder that the session was created in"
    assert yard.truth.ended() == "failed"


@pytest.mark.ids("F17", "F37")
def test_a_keeper_that_cannot_write_running_starts_nobody(yard: Yard):
    (yard.truth.folder / "state.json").write_text("{}")
    started = yard.launch("sleep", "1000")
    assert started.error is not None
    assert started.error.startswith("cannot write the state: ")
    eventually(lambda: not is_kept(str(yard.truth.run())))
    eventually(lambda: yard.ground.processes() == [], what="the end of every process")


def test_a_keeper_that_dies_at_once_has_last_words(yard: Yard):
    started = yard.launch("sleep", "1000", cols="wide")
    words = "ValueError: expected cols to be a whole number, but got 'wide'"
    assert started == Started(None, f"the keeper ended at once; its last words: {words}")
    assert yard.health().keeper_alive is False


def test_a_keeper_without_a_socket_starts_nobody(yard: Yard):
    (yard.truth.run() / "ctl.sock").mkdir()
    started = yard.launch("sleep", "1000")
    assert started.error == "cannot start the agent: Address already in use"
    assert yard.truth.ended() == "failed"


def test_leases_live_and_die_with_the_keeper(yard: Yard):
    path = yard.ground.watch.scratch / "slot"
    lease = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lease, fcntl.LOCK_EX)
    yard.launch("sleep", "1000", lease_fds=(lease,))
    os.close(lease)
    assert locks.is_held(str(path)) is True
    held = [os.readlink(f"/proc/{yard.truth.agent_pid()}/fd/{fd}") for fd in (0, 1, 2)]
    assert str(path) not in held
    yard.truth.kill_keeper()
    eventually(lambda: locks.is_held(str(path)) is False)
    assert Local().end_leftovers(str(yard.truth.folder), 1, session=yard.truth.id).count in (0, 1)


def test_a_keeper_is_started_without_site_packages():
    program = keepers.program()
    assert program[1:3] == ["-I", "-S"]
    assert Path(program[3]).is_file()


# keepers that are started ahead of their run ----------------------------------------------------------------------


def test_a_keeper_that_was_started_ahead_gets_the_run(yard: Yard):
    with keepers.Ahead(str(yard.truth.run())):
        (keeper,) = eventually(lambda: waiting_for(yard.truth.run()))
        assert process_marks.is_keeper(keeper) is False
        assert yard.launch("sleep", "1000").error is None
    assert yard.truth.keeper_pid() == keeper
    assert waiting_for(yard.truth.run()) == [keeper]
    assert process_marks.is_keeper(keeper) is True


def test_a_keeper_that_was_started_before_there_was_a_folder_has_its_log_there(ground: Ground):
    session = new_id()
    folder = Truth(ground.home, session).run()
    with keepers.Ahead(str(folder)):
        (keeper,) = eventually(lambda: waiting_for(folder))
        assert os.readlink(f"/proc/{keeper}/fd/2") == os.devnull
        yard = Yard(ground, session)
        assert yard.launch("sleep", "1000").error is None
    assert os.readlink(f"/proc/{keeper}/fd/2") == str(folder / "keeper.log")
    yard.stop()


def test_a_keeper_that_gets_no_run_ends_by_itself(ground: Ground):
    folder = Truth(ground.home, new_id()).run()
    with keepers.Ahead(str(folder)):
        eventually(lambda: waiting_for(folder))
    eventually(lambda: waiting_for(folder) == [], what="the end of the keeper")
    assert list(ground.home.iterdir()) == []


def test_a_keeper_ends_when_the_one_who_would_give_it_a_run_is_killed(ground: Ground):
    folder = Truth(ground.home, new_id()).run()
    code = "import sys, time; from hitchpost.runtimes.keepers import Waiting; w = Waiting(sys.argv[1]); time.sleep(99)"
    starter = subprocess.Popen([sys.executable, "-c", code, str(folder)])
    try:
        eventually(lambda: waiting_for(folder, starter.pid))
    finally:
        starter.kill()
        starter.wait()
    eventually(lambda: waiting_for(folder) == [], what="the end of the keeper")


def test_a_keeper_that_was_killed_while_it_waited_is_replaced(yard: Yard):
    with keepers.Ahead(str(yard.truth.run())):
        (keeper,) = eventually(lambda: waiting_for(yard.truth.run()))
        os.kill(keeper, signal.SIGKILL)
        eventually(lambda: not alive(keeper))
        assert yard.launch("sleep", "1000").error is None
    assert yard.truth.keeper_pid() != keeper
    assert yard.truth.state == "running"


# ------------------------------------------------------------------------------------------------------------------


def test_an_unknown_runtime_is_refused_with_those_that_are_known():
    with pytest.raises(UsageError, match="unknown runtime 'moon'; choose one of: local"):
        base.load("moon")


# health ---------------------------------------------------------------------------------------------------------


def test_health_follows_the_keeper_and_the_agent(yard: Yard):
    assert yard.health() == Health(keeper_alive=False, sandbox_alive=None, session_alive=None)
    yard.launch("sleep", "1000")
    halt(yard.truth.agent_pid())
    eventually(lambda: yard.health().process_stopped)
    os.kill(yard.truth.agent_pid(), signal.SIGCONT)
    eventually(lambda: not yard.health().process_stopped)
    yard.truth.kill_keeper()
    assert yard.health() == Health(keeper_alive=False, sandbox_alive=None, session_alive=None)
    eventually(lambda: not alive(yard.truth.agent_pid()))


@pytest.mark.ids("F12")
def test_another_process_with_the_agents_number_is_not_taken_for_it(yard: Yard):
    yard.launch("sleep", "1000")
    ticks = Process.read(yard.truth.agent_pid()).start_ticks  # type: ignore[union-attr]
    eventually(lambda: time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK") > ticks + 2)
    innocent = subprocess.Popen(["sleep", "1000"])
    try:
        innocent.send_signal(signal.SIGSTOP)
        eventually(lambda: Process.read(innocent.pid).state == "T")  # type: ignore[union-attr]
        value = yard.truth.run_file()
        value["agent"]["pid"] = innocent.pid
        (yard.truth.run() / "run.json").write_text(json.dumps(value))
        assert not yard.health().process_stopped
    finally:
        innocent.kill()
        innocent.wait()


# what a keeper leaves -------------------------------------------------------------------------------------------


@pytest.mark.ids("F17")
@pytest.mark.parametrize("tier", ["cgroup", "subreaper"])
def test_leftovers_are_ended_and_others_are_not(yard: Yard, tier: str, monkeypatch: pytest.MonkeyPatch):
    if tier == "subreaper":
        monkeypatch.setenv("HITCHPOST_TIER", "subreaper")
    other = Yard(yard.ground)
    other.launch("sleep", "1000")
    yard.launch("sh", "-c", "for i in 1 2 3; do setsid sleep 1000 </dev/null >/dev/null 2>&1 & done; wait")
    family = eventually(lambda: found if len(found := list(descendants(yard.truth.keeper_pid()))) == 4 else None)
    assert set(marked(str(yard.truth.folder), 1)) == {process.pid for process in family}
    # One that has not left the terminal's session yet would be ended by the terminal.
    eventually(lambda: all(os.getsid(process.pid) == process.pid for process in family))
    yard.truth.kill_keeper()
    eventually(lambda: not alive(yard.truth.agent_pid()))
    left = Local().end_leftovers(str(yard.truth.folder), 1, session=yard.truth.id)
    assert left.count == 3
    assert bool(left.unknown) == (yard.truth.run_file()["tier"] != "cgroup2")
    assert not any(alive(process.pid) for process in family)
    assert alive(other.truth.agent_pid())
    assert Local().end_leftovers(str(yard.truth.folder), 1, session=yard.truth.id).count == 0
    other.stop()


def test_marks_of_another_home_run_or_session_are_not_ours(yard: Yard):
    session, folder = yard.truth.id, str(yard.truth.folder)
    marks = {"HITCHPOST_SESSION": session, "HITCHPOST_RUN": "1", "HITCHPOST_HOME_ID": yard.home_id}
    older = {"HITCHPOST_SESSION": session, "HITCHPOST_RUN": "1"}
    others = [
        subprocess.Popen(["sleep", "1000"], env={**marks, "HITCHPOST_RUN": "11"}),
        subprocess.Popen(["sleep", "1000"], env={**marks, "HITCHPOST_SESSION": new_id()}),
        subprocess.Popen(["sleep", "1000"], env={**marks, "HITCHPOST_HOME_ID": "1-2"}),
        subprocess.Popen(["sleep", "1000"], env={"X": f"HITCHPOST_SESSION={session}", "HITCHPOST_RUN": "1"}),
        subprocess.Popen(["sleep", "1000"], env={**older, "HITCHPOST_HOME": str(yard.ground.place)}),
        subprocess.Popen(["sleep", "1000"], env={**older, "HOME": str(yard.ground.place)}),
        subprocess.Popen(["sh", "-c", "read line", f"HITCHPOST_SESSION={session}"], stdin=subprocess.PIPE, env={}),
    ]
    try:
        assert marked(folder, 1) == []
        assert Local().end_leftovers(folder, 1, session=session).count == 0
        assert [process.poll() for process in others] == [None] * 7
    finally:
        for process in others:
            process.kill()
            process.communicate()


def test_what_an_older_keeper_left_is_known_by_the_home_that_its_caller_had(yard: Yard):
    env = {"HITCHPOST_SESSION": yard.truth.id, "HITCHPOST_RUN": "1", "HITCHPOST_HOME": str(yard.ground.home)}
    left = subprocess.Popen(["sleep", "1000"], env=env)
    assert marked(str(yard.truth.folder), 1) == [left.pid]
    assert Local().end_leftovers(str(yard.truth.folder), 1, session=yard.truth.id).count == 1
    assert left.wait() == -signal.SIGKILL


# the link -------------------------------------------------------------------------------------------------------


def test_nobody_listens_before_and_after_a_run(yard: Yard):
    folder = str(yard.truth.run())
    for where in (folder, folder + "x"):
        with pytest.raises(NoKeeper):
            Link.connect(where)
    yard.launch("true")
    yard.truth.ended()
    with pytest.raises(NoKeeper):
        Link.connect(folder)


def test_a_keeper_that_was_stopped_by_a_signal_is_silent_and_not_dead(yard: Yard):
    yard.launch("cat")
    folder = str(yard.truth.run())
    with Link.connect(folder) as link:
        halt(yard.truth.keeper_pid())
        try:
            eventually(lambda: Process.read(yard.truth.keeper_pid()).state == "T")  # type: ignore[union-attr]
            with pytest.raises(Silent):
                Link.connect(folder, timeout_s=0.1)
            with pytest.raises(Silent):
                link.request("send", text="x", timeout_s=0.1)
            assert yard.health().keeper_alive is True
        finally:
            os.kill(yard.truth.keeper_pid(), signal.SIGCONT)
        assert link.request("send", text="y")["ok"] is True, "the late reply is passed over"


def test_a_client_hears_of_the_end_with_the_whole_exit(yard: Yard):
    yard.launch("sh", "-c", "read line; echo bye; exit 4")
    with Link.connect(str(yard.truth.run())) as link:
        assert link.welcome["state"] == "running"
        assert link.welcome["pid"] == yard.truth.agent_pid()
        link.request("send", text="go")
        frames = []
        while not link.closed:
            frames += link.frames(10)
    event = exit_event(frames)
    assert event is not None
    exit_file = json.loads((yard.truth.run() / "exit.json").read_bytes())
    assert event == {
        "event": "exit",
        "state": "failed",
        "reason": "command exited with code 4",
        "changed_at": yard.truth.state_file()["state_changed_at"],
        "written_at": last_written(str(yard.truth.run() / "output")),
        "end": len(b"go\r\nbye\r\n"),
        "exit": exit_file,
    }
    assert yard.truth.exit() == left_with(4)
    states = [json.loads(payload) for kind, payload in frames if kind == wire.EVENT]
    assert [event["state"] for event in states if event["event"] == "state"] == ["failed"]


@pytest.mark.ids("E-10")
def test_the_end_can_be_told_within_100_ms(yard: Yard):
    late = []
    for _ in range(8):
        one = Yard(yard.ground)
        one.launch("sh", "-c", "read line; date +%s.%N; exit 1")
        with Link.connect(str(one.truth.run())) as link:
            link.request("send", text="go")
            while not exit_event(link.frames(10)):
                pass
            now = time.time()
        late.append(now - float(one.truth.output().split()[1]))
        one.truth.ended()
    assert min(late) < 0.1, late


def test_followers_are_poked_when_output_comes(yard: Yard):
    yard.launch("cat")
    with Link.connect(str(yard.truth.run())) as link:
        link.follow(0)
        assert link.frames(0.05) == []
        link.request("send", text="hello")

        def poked() -> list[bytes]:
            return [payload for kind, payload in link.frames(1) if kind == wire.POKE]

        assert int.from_bytes(eventually(poked)[0], "big") > 0


# sending --------------------------------------------------------------------------------------------------------


def test_a_prompt_is_pasted_where_the_agent_asked_for_that(yard: Yard):
    yard.launch("sh", "-c", "stty raw -echo; printf '\\033[?2004hready'; head -c 22 | od -An -c -w22")
    eventually(lambda: b"ready" in yard.truth.output())
    with Link.connect(str(yard.truth.run())) as link:
        assert link.request("send", text="two\nlines") == {"id": 1, "ok": True, "offset": len(b"\x1b[?2004hready")}
    eventually(lambda: b"201" in yard.truth.output().replace(b" ", b""))
    assert b"033[200~two\\nlines033[201~" in yard.truth.output().replace(b" ", b"")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\x03", "the text holds control characters; only tab and newline can be sent"),
        ("a\x1b[201~b", "the text holds control characters; only tab and newline can be sent"),
        ("a\x7fb", "the text holds control characters; only tab and newline can be sent"),
        ("x" * 5000, "a line is longer than the 4094 bytes that a program reading by lines can take"),
    ],
)
def test_what_would_not_arrive_as_it_is_is_refused(yard: Yard, text: str, why: str):
    yard.launch("cat")
    with Link.connect(str(yard.truth.run())) as link:
        assert link.request("send", text=text) == {"id": 1, "ok": False, "why": why, "unsent": True}
        refused = {"id": 2, "ok": False, "why": "nothing watches this agent, so it gets no images", "unsent": True}
        assert link.request("send", text="look", images=["a.png"]) == refused
        assert link.request("send", text="fine")["ok"] is True
    eventually(lambda: yard.truth.output() == b"fine\r\n" * 2)


def test_an_agent_that_waits_for_a_permission_gets_no_prompt_unless_forced(yard: Yard):
    yard.launch("sh", "-c", "printf '\\033]7501;state=blocked\\a'; exec cat")
    with Link.connect(str(yard.truth.run())) as link:
        eventually(lambda: b"blocked" in yard.truth.output())
        refused = link.request("send", text="yes")
        why = "the agent is waiting for a permission"
        assert refused == {"id": 1, "ok": False, "why": why, "unsent": True, "forcible": True}
        assert link.request("send", text="forced", force=True)["ok"] is True
    eventually(lambda: b"forced" in yard.truth.output())
    assert b"yes" not in yard.truth.output()


def test_stop_kills_at_once_when_there_is_no_grace(yard: Yard):
    yard.launch("sh", "-c", "trap 'exit 9' TERM; while :; do sleep 0.02; done")
    with Link.connect(str(yard.truth.run())) as link:
        assert link.request("stop", by="reaper", grace_s=0)["ok"] is True
    assert yard.truth.ended() == "stopped"
    assert yard.truth.exit() == died_of(signal.SIGKILL, intent="reaper")


def test_an_intent_that_nobody_has_is_the_users(yard: Yard):
    yard.launch("sleep", "1000")
    with Link.connect(str(yard.truth.run())) as link:
        assert link.request("stop", by="the moon", grace_s=0)["ok"] is True
    yard.truth.ended()
    assert yard.truth.exit()["intent"] == "user"


@pytest.mark.parametrize("signal_name", ["SIGHUP", "SIGINT", "SIGTERM"])
def test_an_agent_is_asked_in_its_own_way(yard: Yard, signal_name: str):
    yard.launch("sleep", "1000", quit_signal=signal_name)
    yard.stop()
    assert yard.truth.exit()["signal"] == signal_name


def test_the_group_of_an_agent_is_asked_where_that_is_its_way(yard: Yard):
    yard.launch("sh", "-c", "trap 'echo heard; exit 3' INT; sleep 1000; exit 1", quit_signal="SIGINT", quit_group=True)
    eventually(lambda: len(list(descendants(yard.truth.agent_pid()))) == 1)
    yard.stop()
    assert yard.truth.exit() == left_with(3, intent="user")
    assert b"heard" in yard.truth.output()
