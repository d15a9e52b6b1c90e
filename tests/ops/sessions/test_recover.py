from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hitchpost.model.status import status
from hitchpost.ops.sessions.recover import RECOVERY, recover
from hitchpost.ops.sessions.restart import restart
from hitchpost.ops.sessions.stop import stop
from hitchpost.ops.views.observe import observe
from hitchpost.ops.views.session_json import to_json
from hitchpost.settings import Settings
from tests.ground import NEVER_RAN, Ground, Truth, alive, left_with
from tests.support import Hitch, eventually, halt


def lost(ground: Ground, script: str = "exec sleep 1000") -> Truth:
    """A session whose keeper was killed."""
    session = ground.begin_sh(script)
    session.kill_keeper()
    eventually(lambda: not alive(session.agent_pid()))
    return session


def everything(session: Truth) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in session.folder.rglob("*") if path.is_file()}


def test_a_session_in_order_is_left_as_it_is(ground: Ground) -> None:
    live, ended = ground.begin("sleep", "1000"), ground.begin("true")
    ended.ended()
    before = [everything(session) for session in (live, ended)]
    for session in (live, ended):
        recover(str(ground.home), session.id, actor=RECOVERY)
    assert [everything(session) for session in (live, ended)] == before
    ground.end(live)


@pytest.mark.ids("F17")
def test_a_lost_keeper_is_written_down_once(ground: Ground) -> None:
    dev = lost(ground)
    with ThreadPoolExecutor(5) as pool:
        seen = list(pool.map(lambda _: recover(str(ground.home), dev.id, actor=RECOVERY).facts.state, range(5)))
    assert set(seen) == {"failed"}
    assert dev.states() == ["starting", "running", "failed"]
    assert dev.story()[-1]["actor"] == "recovery"
    assert dev.story()[-1]["reason"] == "keeper lost"


def times(ground: Ground, session: Truth, now: datetime) -> tuple[float, float, str | None]:
    seen = observe(str(ground.home), session.id)
    words = status(seen.facts, now)
    return words.in_status_s, words.total_s, to_json(seen, now)["state_changed_at"]


@pytest.mark.ids("A31-14", "F17")
def test_writing_down_a_lost_keeper_changes_no_time(ground: Ground) -> None:
    dev = lost(ground, "echo hello; exec sleep 1000")
    found_at = datetime.now(UTC) + timedelta(minutes=5)
    before = times(ground, dev, found_at)
    recover(str(ground.home), dev.id, actor=RECOVERY)
    assert times(ground, dev, found_at) == before
    in_status_s, total_s, _ = before
    assert in_status_s > 290
    assert total_s < 200, "time in which nothing ran is no work"
    restart(str(ground.home), dev.id, Settings(), caller=Hitch.environment(), actor="test")
    earlier_s = observe(str(ground.home), dev.id).record.earlier_runs_s
    assert earlier_s == pytest.approx(total_s)
    assert json.loads((dev.run() / "exit.json").read_bytes())["ended_at_known"] is False
    ground.end(dev)


@pytest.mark.ids("A31-14")
def test_an_end_that_a_stopped_keeper_missed_changes_no_time_when_it_goes_on(ground: Ground) -> None:
    dev = ground.begin_sh("echo hello; exec sleep 1000")
    began = time.time()
    keeper = dev.keeper_pid()
    eventually(lambda: b"hello" in dev.output())
    halt(keeper)
    eventually(lambda: observe(str(ground.home), dev.id).facts.keeper_stopped)
    eventually(lambda: time.time() > began + 1.5)
    os.kill(dev.agent_pid(), signal.SIGKILL)
    eventually(lambda: observe(str(ground.home), dev.id).facts.probe_failed, what="the agent's end to be seen")
    found_at = datetime.now(UTC) + timedelta(minutes=5)
    in_status_s, total_s, _ = times(ground, dev, found_at)
    os.kill(keeper, signal.SIGCONT)
    assert dev.ended() == "failed"
    after = times(ground, dev, found_at)
    assert after[:2] == pytest.approx((in_status_s, total_s), abs=0.1)
    assert total_s < 1.5, "it may have ended as soon as nobody watched"
    written = json.loads((dev.run() / "exit.json").read_bytes())
    assert (written["signal"], written["ended_at_known"]) == ("SIGKILL", False)


@pytest.mark.ids("A31-14")
def test_an_agent_works_while_only_its_keeper_is_stopped(ground: Ground) -> None:
    dev = ground.begin_sh("read line; exit 0")
    halt(dev.keeper_pid())
    eventually(lambda: observe(str(ground.home), dev.id).facts.keeper_stopped)
    stopped_at = datetime.now(UTC)
    eventually(lambda: datetime.now(UTC) > stopped_at + timedelta(seconds=1))
    os.kill(dev.keeper_pid(), signal.SIGCONT)
    ground.hitch("send", dev.id, "go on")
    assert dev.ended() == "completed"
    end = json.loads((dev.run() / "exit.json").read_bytes())
    assert end["ended_at_known"] is True
    assert datetime.fromisoformat(end["ended_at"]) > stopped_at + timedelta(seconds=1)


@pytest.mark.ids("A31-14", "F40")
def test_writing_down_a_reboot_changes_no_time(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    dev = lost(ground)
    monkeypatch.setenv("HITCHPOST_BOOT_ID", "another")
    found_at = datetime.now(UTC) + timedelta(minutes=5)
    before = times(ground, dev, found_at)
    recover(str(ground.home), dev.id, actor=RECOVERY)
    assert times(ground, dev, found_at) == before


@pytest.mark.ids("A31-14", "F36")
def test_a_state_rebuilt_from_the_story_has_the_time_of_the_end(ground: Ground) -> None:
    dev = lost(ground)
    recover(str(ground.home), dev.id, actor=RECOVERY)
    before = dev.state_file()["state_changed_at"]
    (dev.folder / "state.json").write_bytes(b"")
    recover(str(ground.home), dev.id, actor=RECOVERY)
    assert dev.state_file()["state_changed_at"] == before


def test_a_silent_agent_is_known_to_have_lived_until_its_keeper_s_last_sign(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    lock = dev.run() / "keeper.lock"
    os.utime(lock, (0, 0))
    eventually(lambda: lock.stat().st_mtime > 1e9, 60, what="the keeper to touch its lock")
    dev.kill_keeper()
    sign = lock.stat().st_mtime
    seen = recover(str(ground.home), dev.id, actor=RECOVERY)
    assert seen.facts.exit is not None
    assert seen.facts.exit.ended_at is not None
    assert seen.facts.exit.ended_at >= datetime.fromtimestamp(sign, UTC)


def test_an_exit_that_the_keeper_saw_and_could_not_tell_is_told_late(ground: Ground) -> None:
    dev = lost(ground)
    value = {**left_with(5), "rusage": None, "ended_at": "2026-01-01T00:00:00Z"}
    (dev.run() / "exit.json").write_text(json.dumps(value))
    seen = recover(str(ground.home), dev.id, actor=RECOVERY)
    assert (seen.facts.state, seen.facts.exit and seen.facts.exit.code) == ("failed", 5)
    assert dev.exit() == left_with(5)
    assert dev.story()[-1]["reason"] == "command exited with code 5"


@pytest.mark.parametrize(
    ("ending", "state", "states"),
    [
        (left_with(0), "completed", ["starting", "running", "completed"]),
        (left_with(0, intent="user"), "stopped", ["starting", "running", "stopping", "stopped"]),
        ({**NEVER_RAN, "error": "x"}, "failed", ["starting", "running", "failed"]),
    ],
)
def test_a_late_exit_goes_by_the_steps_of_the_map(
    ground: Ground, ending: dict[str, Any], state: str, states: list[str]
) -> None:
    dev = lost(ground)
    (dev.run() / "exit.json").write_text(json.dumps({**ending, "rusage": None, "ended_at": "2026-01-01T00:00:00Z"}))
    assert recover(str(ground.home), dev.id, actor=RECOVERY).facts.state == state
    assert dev.states() == states


@pytest.mark.ids("F17")
def test_a_keeper_that_died_while_stopping_keeps_the_intent(ground: Ground) -> None:
    dev = ground.begin_sh("trap '' TERM HUP; echo ready > ready; while :; do sleep 0.02; done")
    ground.said("ready")
    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(stop, str(ground.home), dev.id, actor="test", grace_s=30)
        eventually(lambda: dev.state == "stopping")
        dev.kill_keeper()
        assert stopping.result().facts.state == "failed"
    assert dev.exit()["intent"] == "user"
    assert dev.exit()["error"] == "keeper lost"
    assert dev.states() == ["starting", "running", "stopping", "failed"]


@pytest.mark.ids("F40")
def test_F40_another_boot_suspends_and_touches_no_process(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    dev = lost(ground, "setsid sh -c 'echo $$ > tool; exec sleep 1000' </dev/null >/dev/null 2>&1 & wait")
    tool = int(ground.said("tool"))
    monkeypatch.setenv("HITCHPOST_BOOT_ID", "another")
    row = ground.ps(dev)
    assert (row["state"], row["status"], row["label"]) == ("failed", "suspended", "suspended: interrupted by reboot")
    seen = recover(str(ground.home), dev.id, actor=RECOVERY)
    assert (seen.facts.state, seen.record.record) == ("failed", "suspended")
    assert dev.exit()["error"] == "interrupted by reboot"
    assert alive(tool), "its number is another process's now, for all that is known"
    os.kill(tool, signal.SIGKILL)
    restart(str(ground.home), dev.id, Settings(), caller=Hitch.environment(), actor="test")
    assert ground.ps(dev)["record"] == "active"
    monkeypatch.delenv("HITCHPOST_BOOT_ID")
    ground.hitch("stop", dev.id)


@pytest.mark.ids("F36")
@pytest.mark.parametrize("name", ["state.json", "session.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\0" * 50, b'{"state": "flying"}', b'{"schema": "one"}'])
def test_F36_an_unreadable_file_under_a_live_session_is_rebuilt_and_the_agent_goes_on(
    ground: Ground, name: str, content: bytes
) -> None:
    dev = ground.begin("sleep", "1000", name="dev")
    pid = dev.agent_pid()
    before = json.loads((dev.folder / name).read_bytes())
    (dev.folder / name).write_bytes(content)
    seen = recover(str(ground.home), dev.id, actor=RECOVERY)
    assert (seen.facts.state, seen.record.name, seen.problem) == ("running", "dev", "")
    after = json.loads((dev.folder / name).read_bytes())
    same = {"updated_by", "state_changed_at", "last_active_at", "earlier_runs_s"}
    assert {key: item for key, item in after.items() if key not in same} == {
        key: item for key, item in before.items() if key not in same
    }
    (kept,) = (ground.home / "quarantine").iterdir()
    assert kept.read_bytes() == content
    assert alive(pid)
    ground.end(dev)
    assert dev.state == "stopped"


@pytest.mark.ids("F38")
def test_F38_half_written_files_are_swept_by_the_next_command_that_writes(ground: Ground) -> None:
    dev = ground.begin("true")
    dev.ended()
    left = dev.folder / ".state.json.99999.abcd1234.tmp"
    left.write_text("half")
    recover(str(ground.home), dev.id, actor=RECOVERY)
    assert not left.exists()


def test_an_end_counts_from_the_agents_own_whatever_it_left_behind(ground: Ground) -> None:
    """What holds its terminal open delays that it is written down, by a second."""
    dev = ground.begin_sh("trap '' HUP; sleep 1000 & exit 0", name="dev")
    dev.ended()
    end = json.loads((dev.run() / "exit.json").read_bytes())
    assert end["survivors"] == 1
    assert dev.state_file()["state_changed_at"] == end["ended_at"]
    ground.hitch("stop", "dev")
