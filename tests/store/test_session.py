from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import hitchpost
from hitchpost.model import run as runs
from hitchpost.model.run import InvalidTransition
from hitchpost.store import locks, story
from hitchpost.store.files import NewerSchema, Unreadable, WrongRun
from hitchpost.store.locks import Removed, SessionLock
from hitchpost.store.session import Session
from tests.store.made import WAY, python, session, tree

EVERY_STEP = [(old, new) for old in runs.TRANSITIONS for new in runs.TRANSITIONS]
REFUSED = [(old, new) for old, new in EVERY_STEP if new not in runs.TRANSITIONS[old]]


def state_file(folder: Path) -> dict[str, object]:
    return json.loads((folder / "state.json").read_text())


@pytest.mark.ids("A31-1")
def test_the_component_is_called_manager_and_no_name_says_state_machine():
    assert Session.__module__ == "hitchpost.store.session"
    package = Path(hitchpost.__file__).parent
    names = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names |= {getattr(node, key) for key in ("name", "id", "attr", "arg") if hasattr(node, key)}
        names.add(path.stem)
    assert "Session" in names
    assert [name for name in names if name and "statemachine" in str(name).lower().replace("_", "")] == []


@pytest.mark.ids("A31-6")
def test_a_new_state_file_has_exactly_the_fields_of_adr_31_and_the_schema_and_run(home: Path):
    folder = session(home)
    value = state_file(folder)
    assert value == {
        "schema": 1,
        "run": 1,
        "state": "created",
        "state_changed_at": value["state_changed_at"],
        "updated_by": os.getpid(),
        "session_id": folder.name,
        "workspace_id": "",
    }


@pytest.mark.ids("A31-6", "A31-7")
def test_activity_is_recorded_as_a_fact_and_its_fields_are_left_out_until_then(home: Path):
    folder = session(home, runs.RUNNING)
    before = state_file(folder)
    assert [key for key in before if key.startswith("last_")] == []
    Session(str(folder), actor="test").record_activity(0xFFFFFFFF, "2026-01-02T03:04:05.000000Z", run=1)
    after = state_file(folder)
    assert after == before | {
        "last_activity_hash": 4294967295,
        "last_activity_at": "2026-01-02T03:04:05.000000Z",
        "last_checked_at": after["last_checked_at"],
    }
    assert Session(str(folder), actor="test").read().state == "running"


@pytest.mark.ids("A31-7")
def test_activity_goes_with_its_run(home: Path):
    folder = session(home, runs.COMPLETED)
    stored = Session(str(folder), actor="test")
    with SessionLock(str(folder)):
        stored.next_run()
    with pytest.raises(WrongRun):
        stored.record_activity(1, "2026-01-02T03:04:05.000000Z", run=1)
    assert stored.read().last_activity_hash is None


@pytest.mark.ids("A31-3")
@pytest.mark.parametrize(("old", "new"), [step for step in EVERY_STEP if step not in REFUSED])
def test_the_manager_goes_every_step_of_the_map(home: Path, old: str, new: str):
    folder = session(home, old)
    assert Session(str(folder), actor="test").transition(new, run=1, reason="why").state == new
    assert state_file(folder)["state"] == new
    last = story.read(str(folder))[-1]
    assert (last["event"], last["from"], last["to"], last["reason"]) == ("state", old, new, "why")


@pytest.mark.ids("A31-3")
@pytest.mark.parametrize(("old", "new"), REFUSED)
def test_any_other_step_is_refused_with_both_names_and_the_story_and_writes_nothing(home: Path, old: str, new: str):
    folder = session(home, old)
    before = tree(home)
    with pytest.raises(InvalidTransition) as refused:
        Session(str(folder), actor="test").transition(new, run=1)
    text = str(refused.value)
    assert (old in text and new in text) if old != new else f"already in state {old}" in text
    for first, second in pairwise(("created", *WAY[old])):
        assert f"{first} → {second} by test: made" in text
    assert "run 1 created by test" in text
    assert tree(home) == before


@pytest.mark.ids("A31-4")
def test_a_change_for_another_run_is_refused_and_writes_nothing(home: Path):
    folder = session(home, runs.RUNNING)
    before = tree(home)
    with pytest.raises(WrongRun, match="expected run 2 to be the current one, but it is run 1"):
        Session(str(folder), actor="test").transition(runs.FAILED, run=2)
    assert tree(home) == before


@pytest.mark.ids("A31-4")
def test_a_change_of_a_session_that_was_removed_is_refused_and_brings_nothing_back(home: Path):
    folder = session(home)
    stored = Session(str(folder), actor="test")
    folder.rename(home / "elsewhere")
    with pytest.raises(Removed):
        stored.transition(runs.STARTING, run=1)
    assert not folder.exists()


@pytest.mark.ids("A31-8")
def test_observers_are_asked_before_anything_is_written(home: Path):
    folder = session(home)
    stored = Session(str(folder), actor="test")
    seen = []
    before = tree(home)
    stored.on_change(
        lambda old, new: seen.append((old, new, tree(home) == before, locks.is_held(str(folder / "lock"))))
    )
    stored.transition(runs.STARTING, run=1)
    assert seen == [("created", "starting", True, True)]
    assert state_file(folder)["state"] == "starting"


@pytest.mark.ids("A31-8")
def test_an_observer_may_veto_and_nothing_is_written_then(home: Path):
    class Veto(Exception):
        pass

    def no(old: str, new: str) -> None:
        raise Veto

    folder = session(home)
    stored = Session(str(folder), actor="test")
    stored.on_change(no)
    before = tree(home)
    with pytest.raises(Veto):
        stored.transition(runs.STARTING, run=1)
    assert tree(home) == before
    assert locks.is_held(str(folder / "lock")) is False


@pytest.mark.ids("A31-8")
def test_a_refused_step_asks_no_observer(home: Path):
    folder = session(home)
    stored = Session(str(folder), actor="test")
    stored.on_change(lambda old, new: pytest.fail("asked"))
    with pytest.raises(InvalidTransition):
        stored.transition(runs.COMPLETED, run=1)


@pytest.mark.ids("A31-10", "A31-16")
def test_a_new_process_reads_what_an_old_one_wrote_and_needs_nothing_but_the_file(home: Path):
    folder = session(home, runs.RUNNING)
    program = """
import sys
from hitchpost.store.session import Session
print(Session(sys.argv[1], actor="test").read())
assert not [name for name in sys.modules if "sqlite" in name or "dbm" in name]
"""
    assert python(program, folder).stdout.strip() == str(Session(str(folder), actor="test").read())


@pytest.mark.ids("A31-10")
def test_a_change_says_which_process_made_it(home: Path):
    folder = session(home)
    program = """
import os, sys
from hitchpost.store.session import Session
print(os.getpid(), Session(sys.argv[1], actor="test").transition("starting", run=1).updated_by)
"""
    pid, by = python(program, folder).stdout.split()
    assert pid == by == str(state_file(folder)["updated_by"])


@pytest.mark.ids("A31-11")
@pytest.mark.parametrize("limit", [0, 100])
def test_an_attempt_that_the_disk_refuses_leaves_the_state_and_goes_on(home: Path, limit: int):
    folder = session(home, runs.STARTING)
    before = tree(home)
    program = """
import logging, resource, sys
from hitchpost.store.session import Session
logging.basicConfig(format="%(message)s")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
print(Session(sys.argv[1], actor="test").attempt("running", run=1).state)
"""
    done = python(program, folder, limit)
    assert done.stdout == "starting\n"
    assert "state not changed to running" in done.stderr
    assert tree(home) == before


@pytest.mark.ids("A31-11")
def test_an_attempt_does_not_hide_a_step_that_the_map_refuses(home: Path):
    folder = session(home)
    with pytest.raises(InvalidTransition):
        Session(str(folder), actor="test").attempt(runs.COMPLETED, run=1)


@pytest.mark.ids("A31-9")
def test_the_next_run_keeps_the_end_of_the_one_before(home: Path):
    folder = session(home, runs.STOPPED)
    ended = state_file(folder)
    stored = Session(str(folder), actor="test")
    with SessionLock(str(folder)):
        following = stored.next_run(reason="again")
    assert (following.run, following.state) == (2, "created")
    assert json.loads((folder / "runs" / "1" / "state.json").read_text()) == ended


@pytest.mark.ids("A31-3")
@pytest.mark.parametrize("state", [state for state in runs.TRANSITIONS if state not in runs.TERMINAL])
def test_there_is_no_next_run_before_the_current_one_has_ended(home: Path, state: str):
    folder = session(home, state)
    before = tree(home)
    with SessionLock(str(folder)), pytest.raises(InvalidTransition):
        Session(str(folder), actor="test").next_run()
    assert tree(home) == before


@pytest.mark.ids("F36")
def test_a_state_file_in_order_is_not_repaired(home: Path):
    folder = session(home, runs.RUNNING)
    before = tree(home)
    assert Session(str(folder), actor="test").repair() is None
    assert tree(home) == before


@pytest.mark.ids("F36")
def test_a_state_that_neither_file_nor_story_can_tell_stays_as_it_is(home: Path):
    folder = session(home, runs.RUNNING)
    (folder / "state.json").write_bytes(b"\0\0")
    (folder / "story.jsonl").write_bytes(b"\0\0")
    before = tree(home)
    with pytest.raises(Unreadable, match="its story tells of no state"):
        Session(str(folder), actor="test").repair()
    assert tree(home) == before


@pytest.mark.ids("F36")
def test_a_repair_that_was_cut_short_is_finished_by_the_next_one(home: Path):
    folder = session(home, runs.RUNNING)
    (folder / "state.json").unlink()
    assert "state.json" in (Session(str(folder), actor="test").repair() or "")
    assert Session(str(folder), actor="test").read().state == "running"


@pytest.mark.ids("F34")
def test_a_newer_state_file_is_refused_by_every_method_and_nothing_is_written(home: Path):
    folder = session(home, runs.COMPLETED)
    value = state_file(folder) | {"schema": 2, "state": "hibernating"}
    (folder / "state.json").write_text(json.dumps(value))
    stored = Session(str(folder), actor="test")
    before = tree(home)
    with SessionLock(str(folder)):
        for deed in (
            stored.read,
            stored.repair,
            stored.next_run,
            lambda: stored.transition(runs.STARTING, run=1, locked=True),
        ):
            with pytest.raises(NewerSchema):
                deed()
    with pytest.raises(NewerSchema):
        stored.record_activity(1, "2026-01-02T03:04:05.000000Z", run=1)
    assert tree(home) == before


CHANGER = """
import random, sys
from hitchpost.model import run as runs
from hitchpost.store import files, locks
from hitchpost.store.session import Session

folder, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
chance = random.Random(name)
stored = Session(folder, actor=name)
print("ready", flush=True)
sys.stdin.read()
for _ in range(rounds):
    state = stored.read()
    try:
        if state.state in runs.TERMINAL:
            with locks.SessionLock(folder, timeout_s=60):
                following = stored.next_run()
            print("run", following.run, "", "", flush=True)
        elif chance.random() < 0.2:
            stored.record_activity(chance.getrandbits(32), files.stamp(), run=state.run)
        else:
            with locks.SessionLock(folder, timeout_s=60):
                new = chance.choice(list(runs.TRANSITIONS))
                changed = stored.transition(new, run=state.run, locked=True)
            print("state", changed.run, changed.state, changed.state_changed_at, flush=True)
    except (runs.InvalidTransition, files.WrongRun):
        pass
    except locks.LockTimeout:
        sys.exit("an activity record waited 10 s for the lock")
"""


@pytest.mark.ids("F42", "A31-4")
def test_32_processes_change_one_session_at_once_and_every_change_is_valid_and_none_is_lost(home: Path):
    folder = session(home)
    changers = [
        subprocess.Popen(
            [sys.executable, "-c", CHANGER, str(folder), f"changer-{number}", "12"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(32)
    ]
    acknowledged = set()
    for changer in changers:
        assert changer.stdout
        assert changer.stdout.readline() == "ready\n"
    for changer in changers:
        assert changer.stdin
        changer.stdin.close()
        changer.stdin = None
    for number, changer in enumerate(changers):
        out, _ = changer.communicate(timeout=100)
        assert changer.returncode == 0
        acknowledged |= {(f"changer-{number}", *line.split(" ")) for line in out.splitlines()}

    lines = [line for line in story.read(str(folder)) if str(line["actor"]).startswith("changer")]
    told = {
        (line["actor"], line["event"], str(line["run"]), line.get("to", ""), line["at"] if "to" in line else "")
        for line in lines
    }
    assert told == acknowledged
    assert len(lines) == len(acknowledged) > 32

    state, run = runs.CREATED, 1
    for line in lines:
        if line["event"] == "run":
            assert state in runs.TERMINAL
            state, run = runs.CREATED, run + 1
            assert line["run"] == run
        else:
            assert (line["run"], line["from"]) == (run, state)
            assert line["to"] in runs.TRANSITIONS[state]
            state = str(line["to"])
    final = Session(str(folder), actor="test").read()
    assert (final.run, final.state) == (run, state)
    assert sorted(path.name for path in (folder / "runs").iterdir()) == sorted(str(n) for n in range(1, run))
    assert list(folder.rglob("*.tmp")) == []
