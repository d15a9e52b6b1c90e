"""``hitch explain``: the words, the facts behind them, and what was true at an earlier moment."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hitchpost.cli.explain import parse_time
from hitchpost.errors import UsageError
from hitchpost.model.facts import Exit, Facts, Report
from hitchpost.model.status import status
from hitchpost.ops.views.explain import rule
from tests.cli.places import HOSTILE, SHAPE, is_harmless, new_session, tree
from tests.ground import Ground, Truth, alive
from tests.support import Hitch, eventually, halt
from tests.watched import say

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
CLOCK_TICK = timedelta(milliseconds=20)  # a file's times come from a clock that the kernel moves on in ticks


def explain(ground: Ground, session: Truth, *words: str) -> dict[str, Any]:
    value = ground.hitch("explain", session.id, "--json", *words).json()
    assert set(value) == {"session", "at", "in_status_s", "rule", "facts", "story"}
    assert set(value["session"]) == SHAPE
    assert all(set(fact) == {"fact", "value", "source", "at"} for fact in value["facts"])
    return value


def values(explained: dict[str, Any]) -> dict[str, str]:
    return {fact["fact"]: fact["value"] for fact in explained["facts"]}


def moment_of(session: Truth, to: str, run: int = 1) -> datetime:
    """When the story tells that the run became ``to``."""
    for line in session.story():
        if line["event"] == "state" and (line["run"], line["to"]) == (run, to):
            return datetime.fromisoformat(line["at"])
    raise AssertionError(f"the story does not tell of {to}")


def at(ground: Ground, session: Truth, moment: datetime) -> dict[str, Any]:
    return explain(ground, session, "--at", moment.isoformat())


# Now ------------------------------------------------------------------------------------------------------------


def test_a_running_session_is_explained_by_its_files_and_its_keeper_s_lock(ground: Ground) -> None:
    session = ground.sh("echo hello; exec sleep 1000", name="dev")
    eventually(lambda: session.output() == b"hello\r\n")
    found = explain(ground, session)
    assert found["session"] == {**ground.ps(session), "attention": found["session"]["attention"]}
    assert values(found) == {
        "record": "active",
        "state": "running (run 1)",
        "keeper": f"alive: its lock is held by pid {session.keeper_pid()}",
        "boot": "the same as the run's",
        "last output": "seen",
        "folder": f"present: {ground.place}",
        "protection": session.run_file()["tier"],
    }
    sources = {fact["fact"]: fact["source"] for fact in found["facts"]}
    assert (sources["state"], sources["keeper"]) == ("state.json", "runs/1/keeper.lock")
    assert found["rule"] == "its process is alive"
    assert found["story"] == session.story()
    ground.stop(session, "--now")


def test_the_text_has_the_label_the_rule_the_facts_and_the_story(ground: Ground) -> None:
    session = ground.sh("exit 3", name="dev")
    session.ended()
    out = ground.hitch("explain", "dev").out
    assert out.splitlines()[0].startswith(f"dev (session 1, id {session.id}, run 1) at 2")
    assert "\n  failed: command exited with code 3, for " in out
    assert "\n  because the run failed: the command exited with code 3\n" in out
    assert "command exited with code 3, nobody asked" in out
    assert "Story, from its creation:" in out
    assert out.splitlines()[-1].endswith("running → failed by keeper: command exited with code 3")


def test_an_end_is_told_with_what_the_agent_had_used(ground: Ground) -> None:
    session = ground.run(
        sys.executable, "-c", "import os; held = b'x' * (50 << 20); os.kill(os.getpid(), 9)", name="dev"
    )
    session.ended()
    used = re.fullmatch(r"(\d+\.\d) MiB of memory, \d+\.\d\d s of CPU time", values(explain(ground, session))["used"])
    assert used is not None
    assert float(used[1]) > 50


def test_a_stopped_session_names_who_asked(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    ground.stop(session)
    found = explain(ground, session)
    assert found["session"]["label"] == "stopped"
    assert values(found)["intent"] == "user asked it to end (asked by cli)"
    assert values(found)["exit"] == "command killed by SIGTERM, asked by user"
    assert values(found)["keeper"] == "gone: its lock is free"
    assert "a requested end counts as stopped" in found["rule"]


@pytest.mark.ids("F17")
def test_a_lost_keeper_is_explained_before_anybody_has_written_it_down(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    session.kill_keeper()
    before = tree(session.folder)
    found = explain(ground, session)
    assert (found["session"]["label"], values(found)["state"]) == ("failed: keeper lost", "running (run 1)")
    written = "running is recorded, but its keeper is gone"
    died = "the agent, its child, ends with it"
    assert found["rule"] == f"the run failed: keeper lost; {written}; {died}"
    assert tree(session.folder) == before


@pytest.mark.ids("F17")
def test_an_agent_that_refuses_to_end_with_its_keeper_is_not_told_as_ended(ground: Ground) -> None:
    stays = "import ctypes, signal; ctypes.CDLL(None).prctl(1, 0); signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    session = ground.run("python3", "-c", f"{stays}; print('on', flush=True); signal.pause()", name="dev")
    eventually(lambda: b"on" in session.output())
    agent = session.agent_pid()
    session.kill_keeper()
    found = explain(ground, session)
    assert found["session"]["label"] == "failed: keeper lost (left 1 process behind)"
    lives = f"the agent, its child, has refused to end with it, and lives on as process {agent}, unheard"
    assert found["rule"].endswith(f"; {lives}")
    ground.hitch("stop", "dev")
    assert not alive(agent)
    assert explain(ground, session)["rule"].endswith("; the agent, its child, ends with it")


@pytest.mark.ids("F40")
def test_a_reboot_is_explained_by_the_boot_id(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    session = ground.run("sleep", "1000", name="dev")
    session.kill_keeper()
    monkeypatch.setenv("HITCHPOST_BOOT_ID", "another")
    found = explain(ground, session)
    assert found["session"]["label"] == "suspended: interrupted by reboot"
    assert values(found)["boot"] == "not the run's: the machine has restarted since"
    assert found["rule"] == (
        "the record comes first, and this run was interrupted by reboot, so the session is suspended"
    )


@pytest.mark.ids("F50")
def test_a_workspace_that_is_gone_is_a_fact(ground: Ground) -> None:
    place = ground.place / "inner"
    place.mkdir()
    session = ground.run("sleep", "1000", name="dev", place=place)
    shutil.rmtree(place)
    eventually(lambda: session.state == "orphaned")
    found = explain(ground, session)
    assert found["session"]["label"] == "orphaned: workspace no longer exists"
    assert values(found)["folder"] == f"gone: {place} (no such file or directory)"
    assert values(found)["keeper"].startswith("alive")
    ground.stop(session, "--now")


def test_another_folder_in_the_workspace_s_place_is_a_fact(ground: Ground) -> None:
    place = ground.place / "inner"
    place.mkdir()
    session = ground.run("true", name="dev", place=place)
    session.ended()
    place.rename(ground.place / "moved")
    place.mkdir()
    assert values(explain(ground, session))["folder"] == f"another folder is now at {place}"


def test_a_report_of_the_agent_is_a_fact(ground: Ground) -> None:
    session = ground.sh(r"printf '\033]7501;state=blocked\033\\'; exec sleep 1000", name="dev")
    eventually(lambda: (session.run() / "attention.json").exists())
    found = explain(ground, session)
    assert values(found)["attention"] == "blocked (by osc7501)"
    assert found["session"]["label"].startswith("running (needs you ")
    assert found["rule"].endswith("and it says that it is waiting for a permission")
    ground.stop(session, "--now")


def test_an_archived_record_counts_first(ground: Ground) -> None:
    session = Truth(ground.home, new_session(ground.home, ground.place, name="dev"))
    ground.hitch("archive", "dev")
    found = explain(ground, session)
    assert found["rule"] == "the record is archived, and the record comes first, whatever became of the run"
    assert (
        ground.hitch("explain", "dev").out.splitlines()[-1].endswith("active → archived by cli: archived by the user")
    )


def test_an_unreadable_file_is_a_fact(ground: Ground) -> None:
    session = Truth(ground.home, new_session(ground.home, ground.place, name="dev"))
    (session.folder / "state.json").write_bytes(b"garbage")
    found = explain(ground, session)
    assert str(session.folder / "state.json") in values(found)["problem"]
    assert values(found)["state"] == "created (run 1)"


def test_the_story_s_end_is_shown_and_all_of_it_with_all(ground: Ground) -> None:
    session = ground.run("true", name="dev")
    for run in (2, 3):
        session.ended(run - 1)
        ground.hitch("restart", "dev")
    session.ended(3)
    lines = len(session.story())
    assert lines > 10
    out = ground.hitch("explain", "dev").out
    assert f"Story, the last 10 of {lines} lines:" in out
    assert "run 1 created by cli" not in out
    assert "run 1 created by cli" in ground.hitch("explain", "dev", "--all").out
    assert len(explain(ground, session)["story"]) == lines


@pytest.mark.ids("S8")
def test_hostile_texts_in_the_story_are_escaped(ground: Ground) -> None:
    ground.hitch("run", "--name", HOSTILE, "--", HOSTILE, check=1)
    answer = ground.hitch("explain", HOSTILE, "--all")
    assert is_harmless(answer.out)
    assert not any(line.startswith("root") for line in answer.out.splitlines())


@pytest.mark.parametrize(
    ("facts", "end"),
    [
        (Facts(NOON, state="running", started_at=NOON), "silent for longer than 30s, which counts as idle"),
        (Facts(NOON, state="running", report=Report("idle", "screen", NOON)), "its screen says: it is at its prompt"),
        (Facts(NOON, state="running", report=Report("working", "hooks", NOON)), "its hooks say: it is working"),
        (Facts(NOON, state="running", report=Report("working", "delivered", NOON)), "sent to it: it is working"),
        (Facts(NOON, state="running", process_stopped=True), "a signal has stopped it (it can still be ended)"),
        (Facts(NOON, state="running", keeper_stopped=True), "cannot hear or write anything until it gets SIGCONT"),
        (Facts(NOON, state="failed", exit=Exit(signal="SIGKILL")), "failed: the command was killed by SIGKILL"),
        (
            Facts(NOON, state="running", probe_failed=True, keeper_stopped=True, doubt="keeper stopped"),
            "which alone knows how it ended, so its status is unknown; its last known state is running",
        ),
        (
            Facts(NOON, state="running", probe_failed=True, doubt="keeper stopped"),
            "keeper stopped, so its status is unknown; its last known state is running",
        ),
        (
            Facts(NOON, state="running", report=Report("blocked", "osc7501", NOON)),
            "it says that it is waiting for a permission",
        ),
        (Facts(NOON, state="running", probe_failed=True), "its last known state is running"),
        (
            Facts(NOON, state="running", runtime="docker", sandbox_alive=True, session_alive=False),
            "the sandbox is alive, but the agent in it is gone, and nobody asked for that",
        ),
        (Facts(NOON, record="suspended"), "and the record comes first, whatever became of the run"),
    ],
)
def test_the_rule_is_told_in_plain_words(facts: Facts, end: str) -> None:
    assert rule(facts, status(facts, NOON + timedelta(minutes=5))).endswith(end)


# At an earlier moment -------------------------------------------------------------------------------------------


def test_at_tells_what_was_true_then(ground: Ground) -> None:
    session = ground.sh("test -e again && exec sleep 1000; exit 3", name="dev")
    session.ended()
    (ground.place / "again").touch()
    ground.hitch("restart", "dev")
    ground.hitch("stop", "--now", "dev")
    ground.hitch("archive", "dev")
    instant = timedelta(microseconds=1)
    story = [
        (moment_of(session, "starting") - instant, 1, "created", "created"),
        (moment_of(session, "starting"), 1, "starting", "starting"),
        (moment_of(session, "running"), 1, "running", "running"),
        (moment_of(session, "failed") - instant, 1, "running", "running"),
        (moment_of(session, "failed"), 1, "failed", "failed: command exited with code 3"),
        (moment_of(session, "running", 2), 2, "running", "running"),
        (moment_of(session, "stopping", 2), 2, "stopping", "stopping"),
        (moment_of(session, "stopped", 2), 2, "stopped", "stopped"),
    ]
    for moment, run, state, label in story:
        found = at(ground, session, moment)
        then = found["session"]
        assert (then["run"], then["state"], then["label"], then["record"]) == (run, state, label, "active"), moment
        assert all(datetime.fromisoformat(line["at"]) <= moment for line in found["story"])
    assert explain(ground, session)["session"]["label"] == "archived"


def test_at_tells_what_the_agent_wanted_then_and_who_said_so(ground: Ground) -> None:
    states = {"working": "", "blocked": ":kind=permission", "done": ""}
    says = (say(state, more) + "read -r _\n" for state, more in states.items())
    session = ground.sh("stty -echo\n" + "".join(says) + "exec sleep 1000", name="dev")

    def told(state: str) -> datetime | None:
        lines = (line for line in session.story() if line["event"] == "attention" and line.get("state") == state)
        return next((datetime.fromisoformat(line["at"]) for line in lines), None)

    moments = []
    for state in states:
        moments.append(eventually(partial(told, state), 60, state))
        ground.hitch("send", "dev", "--force", "go on")
    words = [("working", "working (by osc7501)"), ("blocked", "blocked, permission (by osc7501)")]
    words.append(("done", "done (by osc7501)"))
    for moment, (state, fact) in zip(moments, words, strict=True):
        found = at(ground, session, moment)
        report = found["session"]["report"]
        assert (report["state"], report["source"], values(found)["attention"]) == (state, "osc7501", fact)
    labels = [at(ground, session, moment)["session"]["attention"] for moment in moments]
    assert labels == ["working", "blocked", "done"]
    ground.stop(session, "--now")


def test_total_time_and_exit_are_those_of_that_moment(ground: Ground) -> None:
    session = ground.sh("exit 3", name="dev")
    session.ended()
    before = at(ground, session, moment_of(session, "running"))["session"]
    after = at(ground, session, moment_of(session, "failed"))["session"]
    assert (before["exit"], before["session_alive"]) == (None, True)
    assert (after["exit"]["code"], after["session_alive"]) == (3, False)


def test_last_activity_comes_from_the_time_index(ground: Ground) -> None:
    session = ground.sh("echo one; until test -e go; do sleep 0.02; done; echo two; exec sleep 1000", name="dev")
    eventually(lambda: session.output() == b"one\r\n")
    first = explain(ground, session)["session"]["last_activity_at"]
    between = datetime.now(UTC)
    (ground.place / "go").touch()
    eventually(lambda: session.output() == b"one\r\ntwo\r\n")
    now = explain(ground, session)["session"]["last_activity_at"]
    then = at(ground, session, between)
    seen = datetime.fromisoformat(then["session"]["last_activity_at"])
    assert datetime.fromisoformat(now) > between - CLOCK_TICK
    assert between >= seen
    assert abs(seen - datetime.fromisoformat(first)) < timedelta(seconds=1)
    assert {fact["fact"]: fact["source"] for fact in then["facts"]}["last output"] == "runs/1/output"
    assert at(ground, session, moment_of(session, "starting"))["session"]["last_activity_at"] is None
    ground.stop(session, "--now")


@pytest.mark.ids("F17")
@pytest.mark.parametrize("written_down", [False, True])
def test_after_the_last_sign_of_a_keeper_that_was_lost_nothing_is_claimed(ground: Ground, written_down: bool) -> None:
    session = ground.sh("echo one; exec sleep 1000", name="dev")
    eventually(lambda: session.output() == b"one\r\n")
    session.kill_keeper()
    after = datetime.now(UTC)
    if written_down:
        ground.hitch("doctor", "--fix")
        assert session.state == "failed"
        assert explain(ground, session)["session"]["label"] == "failed: keeper lost"
    alive = at(ground, session, moment_of(session, "running"))["session"]
    assert (alive["label"], alive["session_alive"]) == ("running", True), "output came later, so it lived"
    found = at(ground, session, after)
    assert (found["session"]["label"], found["session"]["session_alive"]) == ("unknown", None)
    assert values(found)["keeper"].startswith("unknown")


def test_after_the_last_sign_before_an_end_that_a_stopped_keeper_missed_nothing_is_claimed(ground: Ground) -> None:
    session = ground.sh("echo one; exec sleep 1000", name="dev")
    eventually(lambda: session.output() == b"one\r\n")
    halt(session.keeper_pid())
    eventually(lambda: ground.ps(session)["label"] == "running (keeper stopped)")
    os.kill(session.agent_pid(), signal.SIGKILL)
    eventually(lambda: ground.ps(session)["label"] == "unknown (keeper stopped)")
    after = datetime.now(UTC)

    def then(moment: datetime) -> str:
        return at(ground, session, moment)["session"]["label"]

    assert (then(moment_of(session, "running")), then(after)) == ("running", "unknown")
    os.kill(session.keeper_pid(), signal.SIGCONT)
    assert session.ended() == "failed"
    assert (then(moment_of(session, "running")), then(after)) == ("running", "unknown")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("2001-01-01T00:00:00Z", "there is nothing to tell about 2001-01-01T00:00:00Z"),
        ("2999-01-01T00:00:00Z", "2999-01-01T00:00:00Z is in the future"),
        ("nonsense", "expected --at to be a time like"),
        ("25:00", "expected --at to be a time like"),
        ("", "expected --at to be a time like"),
        ("9" * 9 + "d ago", "expected --at to be a time like"),
        ("0001-01-01T00:00:00+14:00", "expected --at to be a time like"),
        ("\x1b[2J", "expected --at to be a time like"),
    ],
)
def test_a_moment_without_facts_is_an_error_that_says_why(ground: Ground, words: str, text: str) -> None:
    new_session(ground.home, ground.place, name="dev")
    answer = ground.hitch("explain", "dev", "--at", words, check=2)
    assert text in answer.err
    assert is_harmless(answer.err)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-04T10:00:00Z", "2026-05-04T10:00:00+00:00"),
        ("2026-05-04T10:00:00+02:00", "2026-05-04T08:00:00+00:00"),
        ("2026-05-04T10:00:00.5", "2026-05-04T08:00:00.500000+00:00"),
        ("10:00", "2026-05-04T08:00:00+00:00"),
        ("9:05", "2026-05-04T07:05:00+00:00"),
        ("09:05:07", "2026-05-04T07:05:07+00:00"),
        ("5m ago", "2026-05-04T11:55:00+00:00"),
        ("2h ago", "2026-05-04T10:00:00+00:00"),
        ("1h 30m ago", "2026-05-04T10:30:00+00:00"),
        ("90 s ago", "2026-05-04T11:58:30+00:00"),
        ("1d ago", "2026-05-03T12:00:00+00:00"),
    ],
)
def test_times_are_read_as_people_write_them(monkeypatch: pytest.MonkeyPatch, text: str, expected: str) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert parse_time(text, NOON.astimezone()).isoformat() == expected
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["ago", "5 ago", "5x ago", "-5m ago", "٥m ago", "12", "12:5", "tomorrow"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_time(text, NOON)


def test_ago_works_on_the_command_line(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    assert explain(ground, session, "--at", "0s ago")["session"]["label"] == "running"
    ground.stop(session, "--now")


def test_explain_makes_no_home(hitch: Hitch, home: Path) -> None:
    home.rmdir()
    hitch("explain", "dev", check=3)
    assert not home.exists()
    home.mkdir(mode=0o700)


def test_a_session_whose_agent_was_stopped_by_a_signal_says_so(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    halt(session.agent_pid())
    eventually(lambda: "a signal has stopped it" in explain(ground, session)["rule"])
    ground.stop(session, "--now")
