"""Faults around the keeper: killed at any moment, asked twice, flooded, stalled, started twenty times at once."""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hitchpost.errors import HitchpostError
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.recover import RECOVERY, recover
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.start import start
from hitchpost.ops.sessions.stop import stop
from hitchpost.ops.views.observe import Observation
from hitchpost.runtimes.link import Link, NoKeeper
from hitchpost.settings import Settings
from hitchpost.store import locks
from tests.ground import NEVER_RAN, Ground, Truth, alive, died_of, left_with
from tests.support import Hitch, Process, eventually

LOST: dict[str, Any] = NEVER_RAN | {"error": "keeper lost", "lost_output_bytes": None}


def spawn(ground: Ground, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*ground.hitch.command, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=Hitch.environment(),
        cwd=ground.place,
    )


def results(commands: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    found = []
    for command in commands:
        out, err = command.communicate(timeout=60)
        found.append((command.returncode, out, err))
    return found


# killed ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["cgroup", "subreaper"])
def tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "subreaper":
        monkeypatch.setenv("HITCHPOST_TIER", "subreaper")
    return request.param


@pytest.mark.ids("F17")
def test_F17_a_killed_keeper_is_told_at_once_and_its_tree_ended_by_the_next_command(ground: Ground, tier: str) -> None:
    dev = ground.sh("setsid sh -c 'echo $$ > tool; exec sleep 1000' </dev/null >/dev/null 2>&1 & wait; sleep 1000")
    tool, agent = int(ground.said("tool")), dev.agent_pid()
    dev.kill_keeper()
    row = ground.ps(dev)
    assert (row["state"], row["status"], row["label"]) == (
        "failed",
        "failed",
        "failed: keeper lost (left 1 process behind)",
    )
    assert row["session_alive"] is False
    assert dev.state == "running", "a reader writes nothing"
    eventually(lambda: not alive(agent), what="the end of the agent by its parent's death")
    assert alive(tool)
    ground.stop(dev)
    assert not alive(tool)
    assert ground.processes() == []
    assert dev.state == "failed"
    assert dev.exit() == LOST | {"survivors": 1, "survivors_now": 0}
    *_, found, ended = dev.story()
    evidence = found["evidence"]
    assert (evidence["keeper_lock"], evidence["exit.json"], evidence["processes_left"]) == ("free", False, 1)
    assert (ended["event"], ended["reason"].split(";")[0]) == ("survivors", "1 ended")


@pytest.mark.ids("F17")
def test_F17_what_a_dead_keepers_successor_cannot_know_is_said(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITCHPOST_TIER", "subreaper")
    dev = ground.begin_sh("env -i setsid sh -c 'echo $$ > tool; exec sleep 1000' </dev/null >/dev/null 2>&1 & wait")
    tool = int(ground.said("tool"))
    try:
        dev.kill_keeper()
        eventually(lambda: not alive(dev.agent_pid()))
        ground.stop(dev)
        assert next(line["evidence"] for line in dev.story() if line.get("to") == "failed") == {
            "keeper_lock": "free",
            "exit.json": False,
            "processes_left": 0,
            "not_known": "processes that cleared their environment could not be found",
        }
        assert alive(tool)
    finally:
        os.kill(tool, signal.SIGKILL)


ALONE = """
trap 'rmdir busy; exit 0' TERM
mkdir busy || echo double > double
echo up >> ups
while :; do sleep 0.02; done
"""


@pytest.mark.ids("F17", "E-6")
def test_F17_five_restarts_at_once_of_a_lost_session_never_run_it_twice(ground: Ground) -> None:
    dev = ground.begin_sh(ALONE)
    ground.said("ups")
    dev.kill_keeper()
    eventually(lambda: not alive(dev.agent_pid()))
    (ground.place / "busy").rmdir()
    answers = results([spawn(ground, "restart", dev.id) for _ in range(5)])
    assert {code for code, _, _ in answers} <= {0, 4}, answers
    assert 0 in [code for code, _, _ in answers]
    assert not (ground.place / "double").exists()
    number = dev.state_file()["run"]
    assert dev.state == "running"
    agents = [process for process in ground.processes() if ALONE in process.argv]
    assert [process.pid for process in agents] == [dev.agent_pid(number)]
    assert [process.is_keeper for process in ground.processes()].count(True) == 1
    assert dev.exit(1) == LOST
    for earlier in range(2, number):
        assert dev.exit(earlier) == left_with(0, intent="restart")
    ground.stop(dev)


@pytest.mark.ids("E-8", "F17")
def test_nothing_is_restarted_by_itself(ground: Ground) -> None:
    dev = ground.begin_sh("exit 1")
    assert dev.ended() == "failed"
    for _ in range(3):
        assert ground.ps(dev)["run"] == 1
    assert dev.state_file()["run"] == 1
    assert not dev.run(2).exists()


def keepers(session: Truth) -> list[Process]:
    """Two for an instant, while the first one forks."""
    mark = str(session.run())
    return [process for process in Process.all() if process.is_keeper and mark in process.argv]


def kill_after(session: Truth, delay_s: float, going_on: Callable[[], bool]) -> None:
    """Kill the session's keeper some time after it appears.

    It forks once when it begins, and a look at all processes can miss both halves: so until the command is over.
    """
    while not keepers(session) and going_on():
        pass
    threading.Event().wait(delay_s)
    busy = True
    while busy:
        busy = going_on()
        found = [process for process in keepers(session) if not process.is_zombie]
        busy = busy or bool(found)
        for process in found:
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def settled(ground: Ground, session: Truth) -> tuple[str, str | None]:
    """The final state and error once recovery has looked; checks that the files agree.

    A child that a killed keeper had just forked holds its locks for an instant longer.
    """

    def over() -> Observation | None:
        seen = recover(str(ground.home), session.id, actor=RECOVERY)
        return None if seen.facts.keeper_alive else seen

    seen = eventually(over, what="the end of the keeper")
    state, ending = session.state, session.exit()
    assert seen.facts.state == state
    assert state in ("failed", "stopped", "completed"), state
    assert session.states()[-1] == state
    if ending["error"] is not None:
        assert state == "failed"
    elif ending["intent"] is not None:
        assert state == "stopped"
    else:
        assert state == ("completed" if ending["code"] == 0 else "failed")
    return state, ending["error"]


@pytest.mark.ids("F18")
def test_F18_a_keeper_killed_at_any_moment_of_a_start(ground: Ground) -> None:
    dice = random.Random(18)

    def one(delay_s: float) -> str:
        argv = ("sleep", "1000")
        session = Truth(
            ground.home,
            create(str(ground.home), SessionSpec(str(ground.place), command=argv), Settings(), actor="test").id,
        )
        failure: list[BaseException] = []

        def begin() -> None:
            try:
                start(str(ground.home), session.id, Settings(), caller=Hitch.environment(), actor="test")
            except HitchpostError as error:
                failure.append(error)

        thread = threading.Thread(target=begin)
        thread.start()
        kill_after(session, delay_s, thread.is_alive)
        thread.join(30)
        assert not thread.is_alive()
        state, error = settled(ground, session)
        assert state == "failed"
        assert error == "keeper lost", (error, failure)
        return state

    with ThreadPoolExecutor(3) as pool:
        seen = list(pool.map(one, [dice.random() * 0.15 for _ in range(20)]))
    assert seen == ["failed"] * 20
    eventually(lambda: ground.processes() == [], what="the end of every agent")


@pytest.mark.ids("F18")
def test_F18_a_keeper_killed_at_any_moment_of_a_stop(ground: Ground) -> None:
    dice = random.Random(81)
    script = "trap '' TERM; (setsid sleep 1000 </dev/null >/dev/null 2>&1 &) ; sleep 1000 & wait; sleep 1000"

    def one(delay_s: float) -> tuple[str, str | None]:
        session = ground.begin_sh(script)
        options = {"grace_s": 0.1, "actor": "test"}
        thread = threading.Thread(target=stop, args=(str(ground.home), session.id), kwargs=options)
        thread.start()
        kill_after(session, delay_s, thread.is_alive)
        thread.join(30)
        assert not thread.is_alive()
        return settled(ground, session)

    with ThreadPoolExecutor(3) as pool:
        seen = list(pool.map(one, [dice.random() * 0.25 for _ in range(20)]))
    assert set(seen) <= {("failed", "keeper lost"), ("stopped", None)}
    eventually(lambda: ground.processes() == [], what="the end of every process")


def test_a_lost_session_can_be_restarted_and_keeps_its_first_run(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    dev.kill_keeper()
    ground.hitch("restart", dev.id)
    assert (dev.state, dev.state_file()["run"]) == ("running", 2)
    assert json.loads((dev.run(1) / "state.json").read_bytes())["state"] == "failed"
    assert dev.exit(1) == LOST
    ground.stop(dev)
    assert dev.exit(2) == died_of(signal.SIGTERM, intent="user")


# stopping -------------------------------------------------------------------------------------------------------


def test_stop_waits_out_a_start(ground: Ground) -> None:
    argv = ("sleep", "1000")
    spec = SessionSpec(str(ground.place), command=argv)
    dev = Truth(ground.home, create(str(ground.home), spec, Settings(), actor="test").id)
    options = {"caller": Hitch.environment(), "actor": "test"}
    thread = threading.Thread(target=start, args=(str(ground.home), dev.id, Settings()), kwargs=options)
    thread.start()
    eventually(lambda: dev.state == "starting")
    with locks.SessionLock(str(dev.folder)):
        assert dev.state == "starting", "the keeper was faster than this test"
        stopping = spawn(ground, "stop", dev.id)
        eventually(lambda: (dev.run() / "ctl.sock").exists())
        threading.Event().wait(0.3)
        assert stopping.poll() is None
        assert dev.state == "starting"
    ((code, out, err),) = results([stopping])
    thread.join()
    assert (code, err) == (0, "")
    assert out.endswith(": stopped\n")
    assert dev.states() == ["starting", "running", "stopping", "stopped"]
    assert dev.exit() == died_of(signal.SIGTERM, intent="user")


def test_two_stops_at_once_are_one_stop(ground: Ground) -> None:
    dev = ground.begin_sh("trap '' TERM HUP; echo ready > ready; while :; do sleep 0.02; done", name="dev")
    ground.said("ready")
    answers = results([spawn(ground, "stop", "dev", "--grace", "0.5") for _ in range(2)])
    assert answers == [(0, "dev: stopped\n", "")] * 2
    assert dev.states() == ["starting", "running", "stopping", "stopped"]
    assert dev.exit() == died_of(signal.SIGKILL, intent="user")


def test_a_second_stop_can_shorten_the_grace_time_and_not_lengthen_it(ground: Ground) -> None:
    dev = ground.begin_sh("trap '' TERM HUP; echo ready > ready; while :; do sleep 0.02; done", name="dev")
    ground.said("ready")
    began = time.monotonic()
    patient = spawn(ground, "stop", "dev", "--grace", "50")
    eventually(lambda: dev.state == "stopping")
    assert ground.ps(dev)["state"] == "stopping"
    more_patient = spawn(ground, "stop", "dev", "--grace", "100")
    hasty = spawn(ground, "stop", "dev", "--grace", "0.2")
    assert results([patient, more_patient, hasty]) == [(0, "dev: stopped\n", "")] * 3
    assert time.monotonic() - began < 25
    assert json.loads((dev.run() / "intent.json").read_bytes())["grace_s"] == 50
    assert dev.exit() == died_of(signal.SIGKILL, intent="user")


def test_a_session_that_has_ended_can_be_stopped_again(ground: Ground) -> None:
    dev = ground.begin_sh("exit 3", name="dev")
    dev.ended()
    before = dev.state_file()
    assert ground.stop(dev).out == "dev: failed: command exited with code 3\n"
    assert dev.state_file() == before
    assert not (dev.run() / "intent.json").exists()


@pytest.mark.ids("D-3", "A31-9")
def test_sigterm_to_the_keeper_stops_the_run_with_that_intent(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    dev.kill_keeper(signal.SIGTERM)
    assert dev.ended() == "stopped"
    assert dev.exit() == died_of(signal.SIGTERM, intent="shutdown")
    assert json.loads((dev.run() / "intent.json").read_bytes())["by"] == "shutdown"
    assert ground.ps(dev)["exit"]["intent"] == "shutdown"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGPIPE, signal.SIGTTOU])
def test_other_signals_do_not_end_a_keeper(ground: Ground, number: int) -> None:
    dev = ground.begin("cat")
    os.kill(dev.keeper_pid(), number)
    ground.hitch("send", dev.id, "still here")
    eventually(lambda: b"still here" in dev.output())
    assert dev.state == "running"
    ground.stop(dev)


# many at once ---------------------------------------------------------------------------------------------------


@pytest.mark.ids("F42")
def test_20_sessions_started_at_once_by_20_processes_all_run(ground: Ground) -> None:
    answers = results([spawn(ground, "run", "--json", "--", "sleep", "1000") for _ in range(20)])
    assert [code for code, _, _ in answers] == [0] * 20, answers
    rows = ground.hitch("ps", "--json").json()
    assert sorted(row["index"] for row in rows) == list(range(1, 21))
    assert len({row["name"] for row in rows}) == 20
    assert {(row["state"], row["run"]) for row in rows} == {("running", 1)}
    sessions = [Truth(ground.home, row["id"]) for row in rows]
    assert all(alive(session.agent_pid()) for session in sessions)
    ground.hitch("stop", *(session.id for session in sessions))
    assert ground.processes() == []


def test_one_name_asked_for_by_8_processes_is_given_once(ground: Ground) -> None:
    answers = results([spawn(ground, "run", "--name", "only", "--", "sleep", "1000") for _ in range(8)])
    assert sorted(code for code, _, _ in answers) == [0] + [5] * 7, answers
    (row,) = ground.hitch("ps", "--json").json()
    assert row["name"] == "only"
    ground.hitch("stop", "only")


# what the agent reports -----------------------------------------------------------------------------------------


@pytest.mark.ids("OSC7501")
def test_reports_become_attention_and_the_last_one_is_kept_with_the_exit(ground: Ground) -> None:
    dev = ground.begin_sh("while read line; do printf '\\033]7501;state=%s\\033\\\\' \"$line\"; done")
    words = {
        "working:app=x": "working",
        "blocked:kind=permission:msg=aGk=": "blocked",
        "idle": "waiting",
        "error": "error",
        "nonsense": "error",
        "done": "done",
    }
    for word, attention in words.items():
        with Link.connect(str(dev.run())) as link:
            assert link.request("send", text=word, force=True)["ok"] is True
        eventually(lambda: f"state={word}\x1b\\".encode() in dev.output())  # noqa: B023
        eventually(lambda: ground.ps(dev)["attention"] == attention, what=attention)  # noqa: B023
    ground.stop(dev)
    assert dev.exit() == died_of(signal.SIGTERM, intent="user", attention="done")


def test_a_report_just_before_the_exit_is_not_lost(ground: Ground) -> None:
    dev = ground.begin_sh("printf '\\033]7501;state=working\\a\\033]7501;state=error\\a'; exit 1")
    dev.ended()
    assert dev.exit() == left_with(1, attention="error")


def test_a_report_cannot_speak_for_the_keeper(ground: Ground) -> None:
    dev = ground.begin_sh("printf '\\033]7501;state=done:schema=999:at=never:source=me\\a'; read line")
    eventually(lambda: ground.ps(dev)["attention"] == "done")
    report = json.loads((dev.run() / "attention.json").read_bytes())
    assert (report["schema"], report["source"]) == (1, "osc7501")
    ground.stop(dev)


ASK = """
import os, sys, termios, tty
tty.setraw(0)
os.write(1, sys.argv[1].encode("latin-1").decode("unicode_escape").encode())
heard = b""
while not heard.endswith(b"~"):
    heard += os.read(0, 100)
open("heard", "w").write(repr(heard) + "\\n")
"""


@pytest.mark.ids("OSC7501")
def test_queries_are_answered_when_nobody_is_attached(ground: Ground) -> None:
    ask = "\\x1b]7501;?\\x1b\\\\\\x1b[c\\x1b[>c\\x1b[>0q\\x1b[5n\\x1b[6n"
    dev = ground.begin(sys.executable, "-c", ASK, ask)
    eventually(lambda: b"[6n" in dev.output())
    with Link.connect(str(dev.run())) as link:
        link.request("send", text="~", enter=False)
    assert ground.said("heard") == (
        repr(b"\x1b]7501;?\x1b\\\x1b[?62;22c\x1b[>1;10;0c\x1bP>|hitchpost\x1b\\\x1b[0n\x1b[1;1R~") + "\n"
    )
    assert dev.ended() == "completed"


def test_with_an_owner_only_the_status_query_is_answered_by_the_keeper(ground: Ground) -> None:
    dev = ground.begin_sh(
        'while ! [ -e go ]; do sleep 0.01; done; exec "$1" -c "$2" "$3"', sys.executable, ASK, "\\x1b[c\\x1b]7501;?\\a"
    )
    with Link.connect(str(dev.run()), role="attach", cols=80, rows=24) as owner:
        (ground.place / "go").touch()
        eventually(lambda: b"7501" in dev.output())
        owner.send(b"A", b"mine~")
        assert ground.said("heard") == repr(b"\x1b]7501;?\x1b\\mine~") + "\n"
    dev.ended()


# floods ---------------------------------------------------------------------------------------------------------

FLOOD = "stty -opost; yes 'all work and no play makes jack a dull boy' | head -c {size}; printf end"


def flood_bytes(size: int) -> bytes:
    line = b"all work and no play makes jack a dull boy\n"
    return (line * (size // len(line) + 1))[:size] + b"end"


@pytest.mark.ids("F72", "F70")
def test_a_flood_of_50_mb_is_in_the_log_byte_for_byte_although_clients_stall(ground: Ground) -> None:
    size = 50_000_000
    dev = ground.begin_sh(f"while ! [ -e go ]; do sleep 0.01; done; {FLOOD.format(size=size)}")
    stalled = [Link.connect(str(dev.run()), role="attach", cols=80, rows=24) for _ in range(3)]
    for link in stalled:
        link.follow(0)
    (ground.place / "go").touch()
    most = 0

    def over() -> bool:
        nonlocal most
        most = max(most, resident_kib(dev.keeper_pid()))
        return dev.state == "completed"

    eventually(over, timeout_s=60)
    for link in stalled:
        link.close()
    dev.ended()
    assert most < 40_000
    assert hashlib.sha256(dev.output()).hexdigest() == hashlib.sha256(flood_bytes(size)).hexdigest()
    assert dev.exit() == left_with(0)


@pytest.mark.ids("F72")
def test_a_flood_beyond_the_cap_keeps_its_end(ground: Ground) -> None:
    size = 10_000_000
    dev = ground.begin_sh(FLOOD.format(size=size), settings=Settings(log_cap_mib=1))
    assert dev.ended(timeout_s=60) == "completed"
    kept = dev.output()
    assert len(kept) <= 1 << 20
    assert len(kept) > 1 << 19
    assert kept == flood_bytes(size)[-len(kept) :]
    first = min(int(path.stem) for path in (dev.run() / "output").glob("*.log"))
    assert first + len(kept) == size + len(b"end")


def resident_kib(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS:")), 0)


# descriptors and paths ------------------------------------------------------------------------------------------


def descriptors(pid: int) -> dict[int, str]:
    """Those that a process holds; not those that it closes in this very moment."""
    folder = f"/proc/{pid}/fd"
    found = {}
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):
            found[int(name)] = os.readlink(f"{folder}/{name}")
    return found


def test_neither_keeper_nor_agent_holds_what_the_caller_had_open(ground: Ground) -> None:
    ours, theirs = os.pipe()
    command = [*ground.hitch.command, "run", "--name", "dev", "--", "sleep", "1000"]
    try:
        subprocess.run(command, pass_fds=(theirs,), cwd=ground.place, env=Hitch.environment(), check=True)
        os.close(theirs)
        os.set_blocking(ours, False)
        assert os.read(ours, 1) == b"", "the end of the pipe"
    finally:
        os.close(ours)
        ground.hitch("stop", "dev")


def test_an_agent_inherits_its_terminal_and_nothing_else(ground: Ground) -> None:
    dev = ground.sh("exec sleep 1000")
    eventually(lambda: Process.read(dev.agent_pid()).argv[0] == "sleep")  # type: ignore[union-attr]
    found = descriptors(dev.agent_pid())
    assert sorted(found) == [0, 1, 2]
    assert len(set(found.values())) == 1
    assert found[0].startswith("/dev/pts/")
    ground.stop(dev)


@pytest.mark.ids("F74")
def test_a_keeper_leaks_no_descriptor_over_200_clients(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    before = descriptors(dev.keeper_pid())
    for number in range(200):
        link = Link.connect(str(dev.run()), role="attach" if number % 2 else "control", cols=80, rows=24)
        if number % 3 == 0:
            link.follow(0)
        link.close()
    eventually(lambda: descriptors(dev.keeper_pid()).items() <= before.items())
    ground.stop(dev)


@pytest.mark.ids("F74")
def test_a_keeper_without_descriptors_left_stays_calm_and_serves_again(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    keeper = dev.keeper_pid()
    most = max(descriptors(keeper)) + 5
    resource.prlimit(keeper, resource.RLIMIT_NOFILE, (most, most))
    links = []
    refused = 0
    for _ in range(20):
        try:
            links.append(Link.connect(str(dev.run())))
        except NoKeeper:
            refused += 1
    before = cpu_ticks(keeper)
    threading.Event().wait(0.5)
    spent = cpu_ticks(keeper) - before
    for link in links:
        link.close()
    assert (len(links) + refused, refused > 0, len(links) > 0) == (20, True, True)
    assert spent <= os.sysconf("SC_CLK_TCK") // 20
    ground.stop(dev)
    assert dev.exit() == died_of(signal.SIGTERM, intent="user")


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_home_with_a_path_of_180_bytes_works(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    top = ground.home / "long"
    home = top / ("x" * (180 - len(str(top)) - 1))
    assert len(str(home)) == 180
    monkeypatch.setenv("HITCHPOST_HOME", str(home))
    dev = Truth(home, ground.run("cat", name="dev").id)
    ground.hitch("send", "dev", "hello")
    eventually(lambda: b"hello" in dev.output())
    ground.hitch("stop", "dev")
    assert dev.exit() == died_of(signal.SIGTERM, intent="user")


def test_every_folder_of_a_session_is_for_its_owner_only(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    old = os.umask(0)
    try:
        dev = ground.run("sleep", "1000")
        modes = {
            str(path.relative_to(ground.home)): path.stat().st_mode & 0o777
            for path in [ground.home, *ground.home.rglob("*")]
        }
    finally:
        os.umask(old)
        ground.stop(dev)
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}
