from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from hitchpost.errors import HitchpostError, NoSuchSession, Refused, StartFailed
from hitchpost.ops.sessions.remove import archive, remove
from hitchpost.ops.sessions.restart import restart
from hitchpost.ops.sessions.resume import resume
from hitchpost.ops.sessions.send import send
from hitchpost.ops.sessions.start import start
from hitchpost.ops.sessions.stop import stop
from hitchpost.ops.views.observe import observe
from hitchpost.settings import Settings
from tests.ground import Ground, Truth, alive, died_of, left_with, waiting_for
from tests.support import Hitch, eventually


def again(ground: Ground, session: Truth) -> None:
    restart(str(ground.home), session.id, Settings(), caller=Hitch.environment(), actor="test")


@pytest.mark.ids("E-6", "E-7", "X1")
def test_a_crashed_session_gets_a_new_run_in_the_same_folder_with_its_files(ground: Ground) -> None:
    dev = ground.begin_sh("ls > seen; echo $$ >> pids; [ -e kept ] && exec sleep 1000; echo kept > kept; exit 3")
    assert dev.ended() == "failed"
    again(ground, dev)
    assert (dev.state, dev.state_file()["run"]) == ("running", 2)
    eventually(lambda: "kept" in (ground.place / "seen").read_text())
    assert dev.exit(1) == left_with(3)
    first = json.loads((dev.run(1) / "state.json").read_bytes())
    assert (first["state"], first["run"]) == ("failed", 1)
    assert dev.states(2) == ["starting", "running"]
    assert dev.output(1) == b""
    ground.end(dev)


def test_a_live_session_is_stopped_first_with_that_intent(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    old = dev.agent_pid()
    again(ground, dev)
    assert not alive(old)
    assert dev.exit(1) == died_of(signal.SIGTERM, intent="restart")
    assert dev.state == "running"
    ground.end(dev)


def test_the_next_keeper_is_started_while_the_run_before_it_is_stopped(ground: Ground) -> None:
    dev = ground.begin_sh("trap 'until [ -e go ]; do sleep 0.01; done; exit' TERM; while :; do sleep 0.01; done")
    with ThreadPoolExecutor(1) as pool:
        restarting = pool.submit(again, ground, dev)
        (keeper,) = eventually(lambda: waiting_for(dev.run(2)))
        assert dev.state_file()["run"] == 1
        (ground.place / "go").touch()
        restarting.result(60)
    assert (dev.keeper_pid(2), dev.state) == (keeper, "running")
    ground.end(dev, grace_s=0)


@pytest.mark.ids("F8")
def test_what_an_ended_run_left_is_ended_before_the_next(ground: Ground) -> None:
    script = (
        "setsid sh -c 'echo $$ > daemon; exec sleep 1000' </dev/null >/dev/null 2>&1 & until [ -s daemon ]; do :; done"
    )
    dev = ground.begin_sh(script)
    dev.ended()
    daemon = int(ground.said("daemon"))
    assert alive(daemon)
    again(ground, dev)
    assert not alive(daemon)
    dev.ended(run=2)
    stop(str(ground.home), dev.id, actor="test")


@pytest.mark.ids("F8")
@pytest.mark.parametrize("deed", [stop, remove])
def test_what_an_earlier_run_left_is_ended_with_the_session(ground: Ground, deed: Callable[..., object]) -> None:
    """A run that goes on with the session does not end it: nobody has asked for that."""
    daemon = "setsid sh -c 'echo $$ > daemon; exec sleep 1000' </dev/null >/dev/null 2>&1 &"
    dev = ground.begin_sh(f"[ -e daemon ] && exit; {daemon} until [ -s daemon ]; do :; done")
    dev.ended()
    pid = int(ground.said("daemon"))
    resume(str(ground.home), dev.id, Settings(), caller=Hitch.environment(), actor="test")
    dev.ended(run=2)
    assert alive(pid)
    assert observe(str(ground.home), dev.id).record.earlier_survivors == 1
    deed(str(ground.home), dev.id, actor="test")
    assert not alive(pid)
    if deed is stop:
        assert json.loads((dev.run(1) / "exit.json").read_bytes())["survivors_now"] == 0
        assert [line["run"] for line in dev.story() if line["event"] == "survivors"] == [1]
        assert observe(str(ground.home), dev.id).record.earlier_survivors == 0


@pytest.mark.ids("F8")
def test_what_an_earlier_run_left_is_told_while_the_next_one_lives(ground: Ground) -> None:
    daemon = "setsid sh -c 'echo $$ > daemon; exec sleep 1000' </dev/null >/dev/null 2>&1 &"
    dev = ground.begin_sh(f"[ -e daemon ] && exec sleep 1000; {daemon} until [ -s daemon ]; do :; done", name="dev")
    dev.ended()
    resume(str(ground.home), dev.id, Settings(), caller=Hitch.environment(), actor="test")

    def told() -> tuple[str, int, list[str]]:
        found = ground.hitch("explain", "dev", "--json").json()
        facts = [fact["value"].partition(" (")[0] for fact in found["facts"] if fact["fact"] == "left behind"]
        assert ground.ps(dev)["survivors"] == found["session"]["survivors"]
        return found["session"]["label"], found["session"]["survivors"], facts

    assert told() == ("running", 1, ["1 process by run 1; 1 of them alive now"])
    os.kill(int(ground.said("daemon")), signal.SIGKILL)
    eventually(lambda: told()[2] == ["1 process by run 1; 0 of them alive now"], what="the end of the daemon")
    stop(str(ground.home), dev.id, actor="test", grace_s=0)
    assert told()[0] == "stopped"


def test_a_running_session_takes_no_second_start(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000", name="dev")
    with pytest.raises(Refused, match="dev is running; hitch restart dev stops it first"):
        start(str(ground.home), dev.id, Settings(), caller={}, actor="test")
    assert dev.state_file()["run"] == 1
    ground.end(dev)


@pytest.mark.ids("F42")
def test_of_many_starts_at_once_one_runs(ground: Ground) -> None:
    dev = ground.begin_sh("echo up >> ups; exec sleep 1000")
    ground.said("ups")
    ground.end(dev)
    together = threading.Barrier(6)

    def one(_: int) -> str:
        together.wait()
        try:
            start(str(ground.home), dev.id, Settings(), caller=Hitch.environment(), actor="test")
            return "started"
        except HitchpostError as error:
            return type(error).__name__

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(one, range(6))) == ["Refused"] * 5 + ["started"]
    eventually(lambda: (ground.place / "ups").read_text() == "up\n" * 2)
    assert dev.state_file()["run"] == 2
    ground.end(dev)


def test_a_run_that_could_not_start_can_be_tried_again(ground: Ground) -> None:
    program = ground.place / "agent"
    with pytest.raises(StartFailed, match="program not found"):
        ground.begin(str(program), name="dev")
    session = Truth(ground.home, next(path.name for path in (ground.home / "sessions").iterdir() if path.is_dir()))
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o700)
    again(ground, session)
    assert session.ended(run=2) == "completed"


@pytest.mark.ids("D-12")
def test_an_archived_session_takes_no_new_run(ground: Ground) -> None:
    dev = ground.begin("true", name="dev")
    dev.ended()
    archive(str(ground.home), dev.id, actor="test")
    with pytest.raises(Refused, match="dev is archived: it takes no new run"):
        again(ground, dev)
    with pytest.raises(Refused, match="archived and takes no input"):
        send(observe(str(ground.home), dev.id), "hello")
    assert dev.state_file()["run"] == 1


@pytest.mark.ids("D-5")
def test_only_what_has_ended_is_archived_or_removed(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000", name="dev")
    with pytest.raises(Refused, match="dev is running; stop it before you archive it"):
        archive(str(ground.home), dev.id, actor="test")
    with pytest.raises(Refused, match="dev is running; stop it first, or use --force"):
        remove(str(ground.home), dev.id, actor="test")
    pid = dev.agent_pid()
    assert alive(pid)
    remove(str(ground.home), dev.id, force=True, actor="test")
    assert not alive(pid)
    assert not dev.folder.exists()
    assert ground.place.is_dir()
    with pytest.raises(NoSuchSession):
        stop(str(ground.home), dev.id, actor="test")


def test_a_session_that_was_never_started_cannot_be_stopped(ground: Ground) -> None:
    from hitchpost.ops.sessions.create import create
    from hitchpost.ops.sessions.spec import SessionSpec

    record = create(
        str(ground.home), SessionSpec(str(ground.place), command=("x",), name="dev"), Settings(), actor="test"
    )
    with pytest.raises(Refused, match="dev has not been started"):
        stop(str(ground.home), record.id, actor="test")
    remove(str(ground.home), record.id, actor="test")


@pytest.mark.ids("F51")
def test_a_folder_that_is_gone_stops_nothing(ground: Ground) -> None:
    workshop = ground.place / "workshop"
    workshop.mkdir()
    dev = ground.begin("sleep", "1000", place=workshop)
    workshop.rmdir()
    with pytest.raises(Refused, match="is gone or is another folder"):
        again(ground, dev)
    assert alive(dev.agent_pid())
    ground.end(dev)


def test_the_time_of_all_runs_is_kept(ground: Ground) -> None:
    dev = ground.begin("sleep", "0.2")
    dev.ended()
    again(ground, dev)
    dev.ended(run=2)
    record = json.loads((dev.folder / "session.json").read_bytes())
    assert 0.1 <= record["earlier_runs_s"] < 60


def test_a_prompt_to_a_session_that_is_over_says_so(ground: Ground) -> None:
    dev = ground.begin_sh("exit 3", name="dev")
    dev.ended()
    with pytest.raises(Refused, match=r"dev is not running \(failed: command exited with code 3\); hitch restart dev"):
        send(observe(str(ground.home), dev.id), "hello")


def test_a_prompt_gives_the_offset_before_it(ground: Ground) -> None:
    dev = ground.begin_sh("stty -echo; printf ready; exec cat")
    eventually(lambda: dev.output() == b"ready")
    assert send(observe(str(ground.home), dev.id), "hello").offset == len(b"ready")
    eventually(lambda: dev.output() == b"readyhello\r\n")
    assert send(observe(str(ground.home), dev.id), "no enter", enter=False).offset == len(b"readyhello\r\n")
    ground.end(dev)
