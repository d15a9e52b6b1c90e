"""Faults of the agent's process, each provoked for real: what is written about it is compared with what happened."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hitchpost.settings import Settings
from hitchpost.store import process_marks
from tests.ground import NEVER_RAN, Ground, Truth, alive, descendants, died_of, left_with
from tests.support import Process, eventually, halt

LEFT = ("id", "index", "created_at", "started_at", "state_changed_at", "last_activity_at", "last_active_at", "since")


JUDGED = {
    "completed": {
        "headline": "Finished",
        "rank": 5,
        "glyph": "✓",
        "colour": "blue",
        "section": "finished",
        "actions": ["reply", "restart", "archive", "delete"],
        "takes_prompt": True,
    },
    "failed": {
        "headline": "Failed",
        "rank": 4,
        "glyph": "✕",
        "colour": "red",
        "section": "needs-you",
        "actions": ["restart", "archive", "delete"],
        "takes_prompt": False,
    },
}


def told(ground: Ground, session: Truth) -> dict[str, Any]:
    """The session in ``ps --json``, without what differs each time."""
    row = ground.ps(session)
    if row["exit"] is not None:
        assert row["exit"].pop("ended_at") is not None
        assert row["exit"].pop("ended_at_known") is True
    return {key: item for key, item in row.items() if key not in LEFT}


def shape(ground: Ground, session: Truth, **words: Any) -> dict[str, Any]:
    return {
        "name": "dev",
        "description": "",
        "agent": "sh",
        "runtime": "local",
        "node": None,
        "owner": None,
        "record": "active",
        "workspace": {"id": None, "path": str(ground.place), "branch": None, "repository": None},
        "run": 1,
        "sandbox_alive": None,
        "session_alive": False,
        "survivors": 0,
        "idle_after_s": 30.0,
        "supports_resume": False,
        "report": None,
        "conversation": None,
        "chat": False,
        "when_limit": "stop",
        "quiet_since": None,
        "live": False,
        "detail": words["label"].partition(": ")[2],
        "pinned": False,
        "changes": None,
        "snoozed_until": None,
        "seen_at": None,
        "refusal": None,
        **JUDGED[words["status"]],
        **words,
    }


def exit_of(code: int | None, name: str | None = None, core: bool = False, intent: str | None = None) -> dict[str, Any]:
    return {"code": code, "signal": name, "core_dumped": core, "intent": intent}


# how it ended ---------------------------------------------------------------------------------------------------


@pytest.mark.ids("F1", "A22-4", "A22-8", "A22-9", "A31-9")
def test_F1_exit_0_is_completed_whatever_it_prints(ground: Ground) -> None:
    dev = ground.sh("echo 'exit 1: command exited with code 1'; exit 0", name="dev")
    assert dev.ended() == "completed"
    assert dev.exit() == left_with(0)
    assert dev.exit_status() == "0\n"
    assert dev.states() == ["starting", "running", "completed"]
    assert dev.output() == b"exit 1: command exited with code 1\r\n"
    assert told(ground, dev) == shape(
        ground, dev, state="completed", status="completed", label="completed", attention="done", exit=exit_of(0)
    )


@pytest.mark.ids("F2", "A22-5", "A22-8", "A31-9", "E-14")
def test_F2_exit_3_is_failed_with_the_words_of_the_seed(ground: Ground) -> None:
    dev = ground.sh("exit 3", name="dev")
    assert dev.ended() == "failed"
    assert dev.exit() == left_with(3)
    assert dev.exit_status() == "3\n"
    assert dev.story()[-1]["reason"] == "command exited with code 3"
    assert told(ground, dev) == shape(
        ground,
        dev,
        state="failed",
        status="failed",
        label="failed: command exited with code 3",
        attention="unknown",
        exit=exit_of(3),
    )
    assert ground.place.is_dir()


@pytest.mark.ids("F3")
def test_F3_sigkill_is_failed_with_the_signal(ground: Ground) -> None:
    dev = ground.sh("kill -KILL $$", name="dev")
    assert dev.ended() == "failed"
    assert dev.exit() == died_of(signal.SIGKILL)
    assert dev.exit_status() == "137\n"
    assert told(ground, dev) == shape(
        ground,
        dev,
        state="failed",
        status="failed",
        label="failed: command killed by SIGKILL",
        attention="unknown",
        exit=exit_of(None, "SIGKILL"),
    )


@pytest.mark.ids("F4")
@pytest.mark.parametrize("limit", ["0", "unlimited"])
def test_F4_sigsegv_has_the_core_flag_of_the_wait_status(ground: Ground, limit: str) -> None:
    if limit != "0" and resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        pytest.skip("the hard limit for core dumps is 0 here")
    script = f"ulimit -c {limit}; kill -SEGV $$"
    there = subprocess.run(["sh", "-c", f"ulimit -c {limit}"], capture_output=True, check=False)
    if there.returncode:
        pytest.skip(f"ulimit -c {limit} is not allowed here")
    child = os.posix_spawn("/bin/sh", ["sh", "-c", f"cd '{ground.place}'; {script}"], os.environ)
    _, wanted = os.waitpid(child, 0)
    dev = ground.sh(script)
    assert dev.ended() == "failed"
    assert dev.exit() == died_of(signal.SIGSEGV, core=os.WCOREDUMP(wanted))
    assert dev.exit()["wait_status"] == wanted
    assert dev.exit_status() == "139\n"
    row = ground.ps(dev)
    assert (row["label"], row["exit"]["core_dumped"]) == ("failed: command killed by SIGSEGV", os.WCOREDUMP(wanted))


def test_a_real_time_signal_has_a_name_too(ground: Ground) -> None:
    dev = ground.begin("bash", "-c", "kill -40 $$")
    assert dev.ended() == "failed"
    assert dev.exit() == {**NEVER_RAN, "signal": "SIG40", "signal_number": 40, "wait_status": 40}


@pytest.mark.ids("F5")
@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("{place}/missing", "program not found: {place}/missing"),
        ("no-such-program-anywhere", "program not found on PATH: no-such-program-anywhere"),
        ("{place}/plain", "program is not executable: {place}/plain"),
        ("{place}/folder", "program is not executable: {place}/folder"),
        ("{place}/script", "the interpreter named in the first line was not found: {place}/script"),
        (
            "{place}/junk",
            "program has no executable format (is the first line #!… missing?): {place}/junk",
        ),
    ],
)
def test_F5_a_program_that_cannot_be_started_says_which_and_why(ground: Ground, program: str, why: str) -> None:
    (ground.place / "plain").write_text("#!/bin/sh\n")
    (ground.place / "folder").mkdir()
    for name, text in (("script", "#!/no/such/interpreter\n"), ("junk", "\0\1\2\3")):
        (ground.place / name).write_text(text)
        (ground.place / name).chmod(0o700)
    program, why = program.format(place=ground.place), why.format(place=ground.place)
    answer = ground.hitch("run", "--name", "dev", "--workspace", ground.place, "--", program, check=1)
    assert (answer.out, answer.err) == ("", f"hitch: dev failed to start: {why}\n")
    (row,) = ground.hitch("ps", "--json").json()
    dev = Truth(ground.home, row["id"])
    assert (row["state"], row["label"], row["session_alive"]) == ("failed", f"failed: {why}", False)
    assert dev.exit() == {**NEVER_RAN, "error": why}
    assert dev.exit_status() == ""
    assert dev.states() == ["starting", "failed"]
    eventually(lambda: ground.processes() == [], what="the end of every process")


@pytest.mark.ids("F6")
def test_F6_an_agent_that_executes_another_program_stays_the_same_run(ground: Ground) -> None:
    dev = ground.sh("echo $$ > pid; exec sh -c 'read line; exit 7'")
    assert int(ground.said("pid")) == dev.agent_pid()
    eventually(lambda: "read line" in " ".join(Process.read(dev.agent_pid()).argv))  # type: ignore[union-attr]
    ground.hitch("send", dev.id, "go")
    assert dev.ended() == "failed"
    assert dev.exit() == left_with(7)


@pytest.mark.ids("F7")
def test_F7_a_shell_whose_child_was_killed_left_with_a_code(ground: Ground) -> None:
    dev = ground.sh("sh -c 'kill -KILL $$'; exit $?")
    assert dev.ended() == "failed"
    assert dev.exit() == left_with(137)
    assert dev.exit_status() == "137\n"
    assert ground.ps(dev)["label"] == "failed: command exited with code 137"


@pytest.mark.ids("F15")
def test_F15_a_user_who_leaves_the_shell_has_completed_it(ground: Ground) -> None:
    dev = ground.run("sh", "-i")
    ground.hitch("send", dev.id, "exit")
    assert dev.ended() == "completed"
    assert dev.exit() == left_with(0)


ENDINGS: list[tuple[str, str, dict[str, Any]]] = [
    ("exit 0", "completed", left_with(0)),
    ("exit 1", "failed", left_with(1)),
    ("exit 255", "failed", left_with(255)),
    ("kill -KILL $$", "failed", died_of(signal.SIGKILL)),
    ("kill -TERM $$", "failed", died_of(signal.SIGTERM)),
    ("kill -HUP $$", "failed", died_of(signal.SIGHUP)),
    ("kill -USR1 $$", "failed", died_of(signal.SIGUSR1)),
    ("exec sh -c 'exit 143'", "failed", left_with(143)),
    ("exec 0<&- 1>&- 2>&-; exit 9", "failed", left_with(9)),
    ("echo; exec true", "completed", left_with(0)),
]


@pytest.mark.ids("F1", "F2", "F3")
def test_100_exits_of_all_kinds_are_all_told_right(ground: Ground) -> None:
    def one(number: int) -> tuple[str, dict[str, Any]]:
        session = ground.begin_sh(ENDINGS[number % len(ENDINGS)][0])
        return session.ended(), session.exit()

    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(one, range(100)))
    assert seen == [(state, ending) for _, state, ending in ENDINGS] * 10


@pytest.mark.ids("E-1", "E-8", "E-14")
def test_one_of_three_crashes_and_the_others_do_not_notice(ground: Ground) -> None:
    echo = 'while read line; do echo "<$line>"; [ "$line" = crash ] && kill -SEGV $$; done'
    one, two, three = (ground.begin_sh(echo, name=name) for name in ("one", "two", "three"))
    pids = [one.agent_pid(), three.agent_pid()]
    ground.hitch("send", "two", "crash")
    assert two.ended() == "failed"
    for name, session in (("one", one), ("three", three)):
        ground.hitch("send", name, f"hello {name}")
        eventually(lambda: f"<hello {name}>".encode() in session.output())  # noqa: B023
    rows = {row["name"]: (row["state"], row["run"]) for row in ground.hitch("ps", "--json").json()}
    assert rows == {"one": ("running", 1), "two": ("failed", 1), "three": ("running", 1)}
    assert [one.agent_pid(), three.agent_pid()] == pids
    assert not (two.run(2)).exists()
    assert b"crash" not in one.output() + three.output()


# its last words -------------------------------------------------------------------------------------------------


@pytest.mark.ids("F14")
def test_F14_the_last_line_of_50_quick_exits_is_in_the_log_50_times(ground: Ground) -> None:
    def one(number: int) -> bytes:
        session = ground.begin("sh", "-c", f"echo first; echo 'last words {number}'")
        session.ended()
        return session.output()

    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(one, range(50)))
    assert seen == [f"first\r\nlast words {number}\r\n".encode() for number in range(50)]


@pytest.mark.ids("F14", "F8")
def test_F14_the_last_line_is_in_the_log_although_a_grandchild_holds_the_terminal(ground: Ground) -> None:
    script = "trap '' HUP; sleep 1000 & echo 'last words'"
    sessions = [ground.begin_sh(script, settings=Settings(survivors="kill")) for _ in range(4)]
    for session in sessions:
        assert session.ended() == "completed"
        assert session.output() == b"last words\r\n"
    assert ground.processes() == []


# what it leaves behind ------------------------------------------------------------------------------------------


DAEMON = """
setsid sh -c 'echo $$ > daemon; exec sleep 1000' </dev/null >/dev/null 2>&1 &
while ! [ -s daemon ]; do sleep 0.01; done
"""


@pytest.mark.ids("F8")
def test_F8_a_daemon_that_the_agent_leaves_is_counted_and_kept_until_somebody_says_stop(ground: Ground) -> None:
    dev = ground.sh(DAEMON)
    assert dev.ended() == "completed"
    daemon = int(ground.said("daemon"))
    assert dev.exit() == left_with(0, survivors=1)
    assert alive(daemon)
    assert ground.ps(dev)["label"] == "completed (left 1 process behind)"
    assert ", nobody asked, 1 process still there" in ground.hitch("explain", dev.id).out
    ground.stop(dev)
    assert not alive(daemon)
    assert dev.exit() == left_with(0, survivors=1, survivors_now=0)
    assert ground.ps(dev)["label"] == "completed"
    assert "still there" not in ground.hitch("explain", dev.id).out
    assert (dev.state, ground.processes()) == ("completed", [])


@pytest.mark.ids("F8")
def test_F8_what_stop_cannot_find_is_said(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITCHPOST_TIER", "subreaper")
    dev = ground.begin_sh(DAEMON.replace("setsid", "env -i setsid"))
    assert dev.ended() == "completed"
    assert dev.exit() == left_with(0, survivors=1)
    ground.stop(dev)
    assert dev.story()[-1]["reason"] == "0 ended; processes that cleared their environment could not be found"
    assert ground.ps(dev)["label"] == "completed (left 1 process behind)"
    os.kill(int(ground.said("daemon")), signal.SIGKILL)


@pytest.mark.ids("F8")
def test_F8_a_daemon_is_ended_with_the_agent_where_that_is_the_setting(ground: Ground) -> None:
    ground.configure('survivors = "kill"\n')
    dev = ground.sh(DAEMON)
    assert dev.ended() == "completed"
    assert dev.exit() == left_with(0)
    assert ground.processes() == []


FAMILY = """
token=$1
sleep 1001.$token &
nohup sleep 1002.$token >/dev/null 2>&1 &
setsid sleep 1003.$token </dev/null >/dev/null 2>&1 &
(setsid sh -c "sleep 1004.$token & exit" </dev/null >/dev/null 2>&1 &)
env -i setsid sleep 1005.$token </dev/null >/dev/null 2>&1 &
deaf="trap '' HUP TERM INT; sleep 1006.$token; sleep 1007.$token"
(cd /; env -i nohup setsid sh -c "$deaf" </dev/null >/dev/null 2>&1 &)
python3 -c "
import os, time  # $token
end = time.monotonic() + 90
while time.monotonic() < end:
    if os.fork() == 0:
        os.setsid()
        os.write(os.open('generations', os.O_WRONLY | os.O_CREAT | os.O_APPEND), b'x')
    else:
        time.sleep(0.01)
        os._exit(0)
" </dev/null >/dev/null 2>&1 &
wait
"""
KINDS = {"1001.", "1002.", "1003.", "1004.", "1005.", "1006."}


def carriers(token: str) -> dict[int, str]:
    """The live processes that have the token in their arguments."""
    found = {}
    for process in Process.all():
        words = " ".join(process.argv)
        if token in words and not process.is_zombie:
            found[process.pid] = words
    return found


def wait_for_family(ground: Ground, token: str) -> None:
    def whole() -> bool:
        here = carriers(token)
        kinds = {kind for kind in KINDS if any(kind + token in words for words in here.values())}
        assert kinds == KINDS, KINDS - kinds
        return generations(ground) > 3

    eventually(whole, timeout_s=60)


def generations(ground: Ground) -> int:
    path = ground.place / "generations"
    return path.stat().st_size if path.exists() else 0


def nothing_left(ground: Ground, token: str) -> bool:
    """Nobody in the process table; and a process that forks and exits faster than it can be read counts no more."""
    counted = generations(ground)
    threading.Event().wait(0.2)
    return carriers(token) == {} and ground.processes() == [] and generations(ground) == counted


@pytest.fixture(params=["cgroup", "subreaper"])
def tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What finds the agent's processes: a control group where one is allowed, and always the sub-reaper."""
    if request.param == "subreaper":
        monkeypatch.setenv("HITCHPOST_TIER", "subreaper")
    return request.param


@pytest.mark.ids("F9")
def test_F9_stop_leaves_nothing_whatever_the_children_did(ground: Ground, tier: str) -> None:
    token = str(time.monotonic_ns())
    dev = ground.sh(FAMILY, token)
    assert tier in dev.run_file()["tier"] or not cgroups_allowed()
    wait_for_family(ground, token)
    ground.stop(dev, "--grace", "0.5")
    assert nothing_left(ground, token)
    assert dev.state == "stopped"
    assert dev.exit() == died_of(signal.SIGTERM, intent="user")


@pytest.mark.ids("F9")
def test_F9_stop_now_leaves_nothing_and_asks_nobody(ground: Ground, tier: str) -> None:
    token = str(time.monotonic_ns())
    dev = ground.sh("trap 'echo asked > asked' TERM HUP INT;" + FAMILY, token)
    wait_for_family(ground, token)
    ground.stop(dev, "--now")
    assert nothing_left(ground, token)
    assert dev.exit() == died_of(signal.SIGKILL, intent="user")
    assert not (ground.place / "asked").exists()


def cgroups_allowed() -> bool:
    return any(os.access(folder, os.W_OK) for folder in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/cgroup.procs"))


# signals --------------------------------------------------------------------------------------------------------


@pytest.mark.ids("F10")
def test_F10_a_stopped_process_is_shown_as_such_and_can_be_ended(ground: Ground) -> None:
    dev = ground.sh("trap 'exit 4' TERM; echo ready > ready; while :; do sleep 0.05; done")
    ground.said("ready")
    halt(dev.agent_pid())
    eventually(lambda: Process.read(dev.agent_pid()).state == "T")  # type: ignore[union-attr]
    row = ground.ps(dev)
    assert (row["state"], row["status"], row["label"]) == ("running", "running", "running (process stopped)")
    ground.stop(dev)
    assert dev.state == "stopped"
    assert dev.exit() == left_with(4, intent="user")
    assert ground.processes() == []


@pytest.mark.ids("F11")
def test_F11_an_agent_that_ignores_sigterm_is_killed_after_the_grace_time_and_not_before(ground: Ground) -> None:
    dev = ground.sh("trap '' TERM HUP; echo ready > ready; while :; do sleep 0.05; done")
    ground.said("ready")
    ground.stop(dev, "--grace", "1.2")
    assert dev.exit() == died_of(signal.SIGKILL, intent="user")
    assert dev.state == "stopped"
    assert 1.2 <= stopping_s(dev) < 1.2 + 3


@pytest.mark.ids("F11")
def test_F11_an_agent_that_takes_its_time_over_sigterm_has_all_of_the_grace_time(ground: Ground) -> None:
    script = "trap 'sleep 1.2; echo saved > saved; exit 0' TERM; echo ready > ready; while :; do sleep 0.05; done"
    dev = ground.sh(script)
    ground.said("ready")
    ground.stop(dev, "--grace", "8")
    assert dev.exit() == left_with(0, intent="user")
    assert (dev.state, ground.said("saved")) == ("stopped", "saved\n")


@pytest.mark.ids("F11")
def test_F11_a_python_agent_that_saves_on_sigterm_is_not_disturbed(ground: Ground) -> None:
    script = """
import pathlib, signal, sys, time
def save(*_):
    end = time.monotonic() + 1.5
    while (left := end - time.monotonic()) > 0:
        time.sleep(left)
    pathlib.Path("saved").write_text("saved\\n")
    sys.exit(5)
signal.signal(signal.SIGTERM, save)
pathlib.Path("ready").write_text("ready\\n")
while True:
    signal.pause()
"""
    dev = ground.begin(sys.executable, "-c", script)
    ground.said("ready")
    ground.stop(dev, "--grace", "2.5")
    assert dev.exit() == left_with(5, intent="user")


def test_an_interactive_shell_that_ignores_sigterm_is_hung_up(ground: Ground) -> None:
    dev = ground.begin("bash", "--norc", "-i")
    eventually(lambda: dev.output())
    ground.stop(dev, "--grace", "4")
    assert dev.exit()["signal_number"] == signal.SIGHUP
    assert stopping_s(dev) < 4


def stopping_s(session: Truth) -> float:
    """How long it took from the intent to the end."""
    from datetime import datetime

    intent = json.loads((session.run() / "intent.json").read_bytes())
    ended = json.loads((session.run() / "exit.json").read_bytes())["ended_at"]
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(intent["at"])).total_seconds()


@pytest.mark.ids("F12", "F17")
@pytest.mark.parametrize("verb", [("stop",), ("restart",), ("rm",), ("rm", "--force")])
def test_F12_a_process_that_has_got_the_number_of_the_agent_is_never_signalled(
    ground: Ground, verb: tuple[str, ...]
) -> None:
    dev = ground.begin("sleep", "1000")
    dev.kill_keeper()
    eventually(lambda: not alive(dev.agent_pid()))
    innocent = subprocess.Popen(["sleep", "1000"], cwd="/", env={}, start_new_session=True)
    try:
        start = Process.read(innocent.pid).start_ticks  # type: ignore[union-attr]
        value = json.loads((dev.run() / "run.json").read_bytes())
        for key in ("keeper", "agent"):
            value[key] = {"pid": innocent.pid, "start": start}
        (dev.run() / "run.json").write_text(json.dumps(value))
        (dev.run() / "keeper.lock").write_text(f"{innocent.pid} {start} {value['boot_id']}\n")
        assert ground.ps(dev)["label"] == "failed: keeper lost"
        ground.hitch(*verb, dev.id)
        assert innocent.poll() is None
        assert alive(innocent.pid)
    finally:
        innocent.kill()
        innocent.wait()
    if verb == ("restart",):
        assert dev.state_file()["run"] == 2
        ground.stop(dev)
    assert ground.processes() == []


# one session against the others ---------------------------------------------------------------------------------


def echo_s(session: Truth, ground: Ground, word: str) -> float:
    """How long a line takes to come back from a session that echoes."""
    from hitchpost.runtimes.link import Link

    began = time.monotonic()
    with Link.connect(str(session.run())) as link:
        assert link.request("send", text=word)["ok"] is True
    eventually(lambda: f"<{word}>".encode() in session.output())
    return time.monotonic() - began


BOMB = """
import os, time
end = time.monotonic() + 60
while time.monotonic() < end:
    try:
        os.fork()
    except OSError:
        time.sleep(0.2)
"""
ECHO = 'while read line; do echo "<$line>"; done'


@pytest.mark.ids("F13")
def test_F13_a_fork_bomb_stays_in_its_session(ground: Ground) -> None:
    settings = Settings(pids_max=60)
    quiet = ground.begin_sh(ECHO)
    bomb = ground.begin(sys.executable, "-c", BOMB, settings=settings)
    if not limits(bomb, "pids.max"):
        ground.stop(bomb, "--now")
        ground.stop(quiet)
        assert "unprotected" in ground.hitch("doctor", check=False).out
        pytest.skip("no control group with a pids controller is allowed here")
    count = eventually(lambda: bombs if len(bombs := list(descendants(bomb.keeper_pid()))) >= 55 else None)
    assert len(count) <= 60
    assert echo_s(quiet, ground, "hello") < 1
    assert ground.ps(quiet)["state"] == "running"
    ground.stop(bomb, "--now")
    assert [process for process in ground.processes() if process.pid not in kept(quiet)] == []
    ground.stop(quiet)


@pytest.mark.ids("F13", "C19")
def test_F13_a_memory_hog_ends_alone(ground: Ground) -> None:
    settings = Settings(memory_max_mib=64)
    quiet = ground.begin_sh(ECHO)
    hog = ground.begin_sh(
        f"while ! [ -e go ]; do sleep 0.01; done; exec {sys.executable} -c 'x = b\"x\" * (200 << 20); print(len(x))'",
        settings=settings,
    )
    if not limits(hog, "memory.limit_in_bytes") and not limits(hog, "memory.max"):
        ground.stop(hog, "--now")
        ground.stop(quiet)
        assert "unprotected" in ground.hitch("doctor", check=False).out
        pytest.skip("no control group with a memory controller is allowed here")
    (ground.place / "go").touch()
    assert hog.ended(timeout_s=60) == "failed"
    assert hog.exit() == died_of(signal.SIGKILL, out_of_memory=True)
    assert ground.ps(hog)["label"] == "failed: command killed by SIGKILL (out of memory)"
    assert echo_s(quiet, ground, "hello") < 1
    ground.stop(quiet)


def limits(session: Truth, file: str) -> bool:
    """Whether the session's processes are in a group that has the limit."""
    from hitchpost.system import cgroup

    paths = [Path(folder) / file for folder in cgroup.find(process_marks.group_name(str(session.folder), 1)).folders]
    return any(path.exists() and path.read_text().strip() != "max" for path in paths)


def kept(session: Truth) -> set[int]:
    return {session.keeper_pid(), *(process.pid for process in descendants(session.keeper_pid()))}


@pytest.mark.ids("F9")
def test_a_session_started_inside_another_one_outlives_it(ground: Ground, tier: str) -> None:
    hitch = f"{sys.executable} -m hitchpost"
    outer = ground.sh(f"{hitch} run --name inner -- sh -c 'echo up > inner; exec sleep 1000'; echo done > done; read x")
    ground.said("inner")
    ground.said("done")
    rows = {row["name"]: row for row in ground.hitch("ps", "--json").json()}
    inner = Truth(ground.home, rows["inner"]["id"])
    ground.stop(outer, "--grace", "1")
    assert ground.ps(inner)["state"] == "running"
    assert alive(inner.agent_pid())
    assert {process.pid for process in ground.processes()} == kept(inner)
    inner_pid = inner.agent_pid()
    ground.stop(inner)
    assert not alive(inner_pid)
    assert outer.exit()["survivors"] == 0


# the folder -----------------------------------------------------------------------------------------------------


@pytest.fixture
def workshop(ground: Ground) -> Path:
    folder = ground.place / "workshop"
    folder.mkdir()
    return folder


@pytest.mark.ids("F50", "F51", "A31-9")
@pytest.mark.parametrize("what", ["deleted", "renamed", "replaced", "parent renamed", "a file"])
def test_F50_a_session_without_its_folder_is_orphaned_within_2_s_and_not_killed(
    ground: Ground, workshop: Path, what: str
) -> None:
    dev = ground.begin("sleep", "1000", place=workshop)
    away = ground.watch.scratch / "away"
    if what == "deleted":
        workshop.rmdir()
    elif what == "parent renamed":
        ground.place.rename(away)
    else:
        workshop.rename(away)
    if what == "replaced":
        workshop.mkdir()
    elif what == "a file":
        workshop.touch()
    began = time.monotonic()
    eventually(lambda: dev.state == "orphaned")
    assert time.monotonic() - began < 2
    assert alive(dev.agent_pid())
    row = ground.ps(dev)
    assert (row["state"], row["label"], row["session_alive"], row["exit"]) == (
        "orphaned",
        "orphaned: workspace no longer exists",
        True,
        None,
    )
    refused = ground.hitch("restart", dev.id, check=4)
    assert "is gone or is another folder" in refused.err
    assert alive(dev.agent_pid())
    assert dev.state_file()["run"] == 1
    ground.stop(dev)
    assert dev.exit() == died_of(signal.SIGTERM, intent="user")
    assert (dev.state, ground.processes()) == ("orphaned", [])
    assert ground.hitch("restart", dev.id, check=4).err == refused.err


@pytest.mark.ids("F50")
def test_a_folder_that_was_away_for_a_moment_orphans_nobody(ground: Ground, workshop: Path) -> None:
    """Away for a twentieth of a second again and again, and never when the keeper looks a second time."""
    away = workshop.with_name("away")

    def longest_absence_s() -> float:
        longest_s = 0.0
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            began = time.monotonic()
            workshop.rename(away)
            threading.Event().wait(0.05)
            away.rename(workshop)
            longest_s = max(longest_s, time.monotonic() - began)
            threading.Event().wait(0.25)
        return longest_s

    dev = ground.begin("sleep", "1000", place=workshop)
    while longest_absence_s() > 0.15:  # on a busy machine a moment can be long: then it was rightly missed
        ground.end(dev)
        dev = ground.begin("sleep", "1000", place=workshop)
    assert dev.state == "running"
    assert dev.states() == ["starting", "running"]
    ground.stop(dev)


@pytest.mark.ids("F50", "F51")
def test_an_orphaned_session_whose_folder_came_back_can_be_restarted(ground: Ground, workshop: Path) -> None:
    dev = ground.begin("sleep", "1000", place=workshop)
    away = workshop.with_name("away")
    workshop.rename(away)
    eventually(lambda: dev.state == "orphaned")
    away.rename(workshop)
    ground.hitch("restart", dev.id)
    assert (dev.state, dev.state_file()["run"]) == ("running", 2)
    assert dev.exit(1) == died_of(signal.SIGTERM, intent="restart")
    ground.stop(dev)


@pytest.mark.ids("F50", "F17")
def test_an_orphaned_session_whose_keeper_was_killed_leaves_nothing_after_stop(ground: Ground, workshop: Path) -> None:
    script = f"setsid sh -c 'echo $$ > {ground.place}/tool; exec sleep 1000' </dev/null >/dev/null 2>&1 & wait"
    dev = ground.begin_sh(script, place=workshop)
    tool = int(ground.said("tool"))
    workshop.rename(workshop.with_name("away"))
    eventually(lambda: dev.state == "orphaned")
    dev.kill_keeper()
    row = ground.ps(dev)
    assert (row["state"], row["session_alive"]) == ("orphaned", False)
    assert alive(tool)
    ground.stop(dev)
    assert not alive(tool)
    assert ground.processes() == []
