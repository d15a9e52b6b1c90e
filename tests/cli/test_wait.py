"""``hitch wait``."""

from __future__ import annotations

import shutil
import signal
from datetime import UTC, datetime

import pytest

from tests.cli.live import live
from tests.cli.places import SHAPE, new_session
from tests.ground import Ground
from tests.support import Hitch, eventually

REPORT = r"report() { printf '\033]7501;state=%s\033\\' $1; }; await() { while [ ! -e $1 ]; do sleep 0.02; done; }; "


def test_an_end_that_is_over_is_not_waited_for(ground: Ground) -> None:
    session = ground.begin_sh("exit 3", name="dev")
    session.ended()
    assert ground.hitch("wait", "dev").out == "dev: failed: command exited with code 3\n"
    assert ground.hitch("wait", "dev", "--until", "exit", "--timeout", "0").code == 0


@pytest.mark.parametrize(
    ("script", "label"),
    [
        ("exit 0", "completed"),
        ("exit 3", "failed: command exited with code 3"),
        ("kill -SEGV $$", "failed: command killed by SIGSEGV"),
    ],
)
def test_waiting_for_the_end_tells_how_it_was(ground: Ground, script: str, label: str) -> None:
    ground.begin_sh(f"ulimit -c 0; while [ ! -e go ]; do sleep 0.02; done; {script}", name="dev")
    with live("wait", "dev") as wait:
        eventually(wait.is_asleep, 60, what="a command that waits without polling")
        (ground.place / "go").touch()
        assert wait.code() == 0
        assert (wait.out(), wait.err()) == (f"dev: {label}\n".encode(), "")


def test_json_is_the_one_shape(ground: Ground) -> None:
    ground.begin_sh("exit 3", name="dev")
    answer = ground.hitch("wait", "dev", "--json").json()
    assert set(answer) == SHAPE
    assert (answer["status"], answer["exit"]["code"]) == ("failed", 3)


def test_silence_is_idle_only_when_it_has_lasted(ground: Ground) -> None:
    ground.configure("quiet_s = 0.5")
    session = ground.run(
        "sh", "-c", "while [ ! -e quiet ]; do echo work; sleep 0.05; done; exec sleep 1000", name="dev"
    )
    with live("wait", "dev", "--until", "idle", "--json") as wait:
        had = len(session.output())
        eventually(lambda: len(session.output()) > had + 100, what="output while somebody waits")
        assert wait.process.poll() is None
        (ground.place / "quiet").touch()
        assert wait.code() == 0
        now = datetime.now(UTC)
    last = datetime.fromisoformat(ground.ps(session)["last_activity_at"])
    assert (now - last).total_seconds() >= 0.5
    assert ground.hitch("wait", "dev", "--until", "idle", "--timeout", "0").out == "dev: idle (Quiet)\n"
    ground.stop(session, "--now")


@pytest.mark.parametrize(
    ("until", "state", "words"),
    [
        ("waiting", "idle", "waiting (Your turn)"),
        ("waiting", "done", "done (Finished)"),
        ("blocked", "blocked", "blocked (Needs you)"),
        ("idle", "idle", "waiting (Your turn)"),
        ("idle", "blocked", "blocked (Needs you)"),
        ("idle", "done", "done (Finished)"),
        ("idle", "error", "error"),
        ("your-turn", "blocked", "blocked (Needs you)"),
        ("your-turn", "idle", "waiting (Your turn)"),
        ("your-turn", "done", "done (Finished)"),
        ("your-turn", "error", "error"),
    ],
)
def test_what_the_agent_reports_ends_the_wait(ground: Ground, until: str, state: str, words: str) -> None:
    session = ground.begin_sh(f"{REPORT} report working; await go; report {state}; exec sleep 1000", name="dev")
    eventually(lambda: (session.run() / "attention.json").exists(), what="the first report")
    with live("wait", "dev", "--until", until) as wait:
        eventually(wait.is_asleep, 60, what="a command that waits without polling")
        (ground.place / "go").touch()
        assert wait.code() == 0
        assert wait.out() == f"dev: {words}\n".encode()
    ground.stop(session, "--now")


@pytest.mark.parametrize(("until", "state"), [("waiting", "blocked"), ("blocked", "idle"), ("idle", "working")])
def test_what_is_not_waited_for_does_not_end_the_wait(ground: Ground, until: str, state: str) -> None:
    session = ground.begin_sh(f"{REPORT} report {state}; exec sleep 1000", name="dev")
    eventually(lambda: (session.run() / "attention.json").exists(), what="the report")
    answer = ground.hitch("wait", "dev", "--until", until, "--timeout", "0.3", check=1)
    assert answer.err.startswith(f"hitch: dev was not {until} after 0.3 s (it is running")
    ground.stop(session, "--now")


def test_silence_alone_is_nobodys_turn_and_an_end_is(ground: Ground) -> None:
    ground.configure("quiet_s = 0")
    session = ground.begin_sh("while [ ! -e go ]; do sleep 0.02; done; exit 3", name="dev")
    ground.hitch("wait", "dev", "--until", "idle")
    said = ground.hitch("wait", "dev", "--until", "your-turn", "--timeout", "0.3", check=1).err
    assert said.startswith("hitch: dev did not need anybody after 0.3 s (it is running")
    (ground.place / "go").touch()
    assert ground.hitch("wait", "dev", "--until", "your-turn").out == "dev: failed: command exited with code 3\n"
    session.ended()


def test_an_end_before_the_awaited_is_told(ground: Ground) -> None:
    ground.begin_sh(f"{REPORT} report working; await go; exit 3", name="dev")
    with live("wait", "dev", "--until", "waiting") as wait:
        (ground.place / "go").touch()
        assert wait.code() == 1
        told = "hitch: dev ended before it was waiting: failed: command exited with code 3\n"
        assert (wait.out(), wait.err()) == (b"", told)
    assert ground.hitch("wait", "dev", "--until", "idle", "--json", check=1).json()["status"] == "failed"


def test_a_killed_keeper_ends_the_wait(ground: Ground) -> None:
    session = ground.begin_sh("exec sleep 1000", name="dev")
    with live("wait", "dev") as wait:
        eventually(wait.is_asleep, 60, what="a command that waits")
        session.kill_keeper()
        assert wait.code() == 0
        assert wait.out() == b"dev: failed: keeper lost\n"


def test_a_restart_ends_the_wait_for_the_run_that_was_there(ground: Ground) -> None:
    session = ground.begin_sh("exec sleep 1000", name="dev")
    with live("wait", "dev") as wait:
        eventually(wait.is_asleep, 60, what="a command that waits")
        ground.hitch("restart", "dev")
        assert wait.code() == 0
        assert wait.out() == b"dev: stopped\n"
    ground.stop(session, "--now")


def test_an_orphaned_run_ends_when_its_process_does(ground: Ground) -> None:
    place = ground.place / "inner"
    place.mkdir()
    session = ground.begin_sh("exec sleep 1000", name="dev", place=place)
    with live("wait", "dev", "--until", "blocked") as blocked, live("wait", "dev") as ended:
        shutil.rmtree(place)
        assert blocked.code() == 1
        assert blocked.err() == "hitch: dev ended before it was blocked: orphaned: workspace no longer exists\n"
        eventually(ended.is_asleep, 60, what="a command that waits without polling")
        assert ended.process.poll() is None
        ground.stop(session, "--now")
        assert ended.code() == 0
        assert ended.out() == b"dev: orphaned: workspace no longer exists\n"


def test_the_time_can_be_limited(ground: Ground) -> None:
    session = ground.begin_sh("exec sleep 1000", name="dev")
    answer = ground.hitch("wait", "dev", "--timeout", "0.2", check=1)
    assert (answer.out, answer.err) == ("", "hitch: dev had not ended after 0.2 s (it is running)\n")
    ground.stop(session, "--now")


def test_control_c_ends_the_wait_without_a_word(ground: Ground) -> None:
    session = ground.begin_sh("exec sleep 1000")
    with live("wait", session.id) as wait:
        eventually(wait.is_asleep, 60, what="a command that waits")
        wait.signal(signal.SIGINT)
        assert wait.code() == 130
        assert (wait.out(), wait.err()) == (b"", "")
    ground.stop(session, "--now")


def test_what_cannot_be_waited_for(ground: Ground, hitch: Hitch) -> None:
    assert "no session 'dev'" in hitch("wait", "dev", check=3).err
    new_session(ground.home, ground.place, name="fresh")
    assert "fresh has not been started" in hitch("wait", "fresh", check=4).err
    assert "'never' is not one of" in hitch("wait", "fresh", "--until", "never", check=2).err


def test_the_first_of_several_is_told(ground: Ground, hitch: Hitch) -> None:
    one = ground.begin_sh("exec cat", name="one")
    two = ground.begin_sh("read -r line; exit 2", name="two")
    assert "--any" in hitch("wait", "one", "two", check=2).err
    hitch("send", "two", "go")
    assert hitch("wait", "one", "two", "--any").out == "two: failed: command exited with code 2\n"
    answer = hitch("wait", "one", "one", "--any", "--timeout", "0.01", check=1)
    assert "one, one had not ended after 0.01 s" in answer.err
    assert two.state == "failed"
    ground.end(one)
