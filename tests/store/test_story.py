from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hitchpost.model import run as runs
from hitchpost.store import story
from hitchpost.store.locks import SessionLock
from hitchpost.store.session import Session
from tests.store.made import session


def lines(folder: Path) -> list[bytes]:
    return (folder / "story.jsonl").read_bytes().splitlines(keepends=True)


def test_every_change_is_a_line_with_time_actor_reason_and_evidence(home: Path):
    folder = session(home)
    Session(str(folder), actor="keeper").transition(runs.STARTING, run=1, reason="why", evidence={"pid": 7})
    line = json.loads(lines(folder)[-1])
    assert line == {
        "at": line["at"],
        "event": "state",
        "run": 1,
        "actor": "keeper",
        "pid": line["pid"],
        "from": "created",
        "to": "starting",
        "reason": "why",
        "evidence": {"pid": 7},
    }


def test_a_story_that_is_not_there_is_empty(tmp_path: Path):
    assert story.read(str(tmp_path)) == []


@pytest.mark.ids("F36")
def test_a_story_cut_at_any_byte_is_read_up_to_its_last_whole_line(home: Path):
    folder = session(home, runs.RUNNING)
    whole = (folder / "story.jsonl").read_bytes()
    told = story.read(str(folder))
    for length in range(len(whole)):
        (folder / "story.jsonl").write_bytes(whole[:length])
        # a line that lacks only its newline is whole
        count = whole[:length].count(b"\n") + (whole[length : length + 1] == b"\n")
        assert story.read(str(folder)) == told[:count]


@pytest.mark.ids("F36")
@pytest.mark.parametrize(
    "junk", [b"", b"\0\0\0", b"\xff\xfe", b"[]", b"1", b'{"at": 1, "event": "x"}', b'{"event": "x"}', b"[" * 100_000]
)
def test_a_line_that_is_none_spoils_no_other(home: Path, junk: bytes):
    folder = session(home, runs.RUNNING)
    told = story.read(str(folder))
    first, *rest = lines(folder)
    (folder / "story.jsonl").write_bytes(b"".join([first, junk + b"\n", *rest]))
    assert story.read(str(folder)) == told


@pytest.mark.ids("F36")
@pytest.mark.parametrize("state", list(runs.TRANSITIONS))
def test_the_state_is_rebuilt_as_it_was(home: Path, state: str):
    folder = session(home, state)
    assert _rebuilt(folder) == _stored(folder)


def _rebuilt(folder: Path) -> dict[str, object]:
    value = story.rebuilt_state(str(folder), folder.name, "")
    assert value
    return value | {"state_changed_at": None} if value["state"] == runs.CREATED else value


def _stored(folder: Path) -> dict[str, object]:
    """A first state and its line in the story are stamped a few microseconds apart."""
    value = json.loads((folder / "state.json").read_text())
    return value | {"state_changed_at": None} if value["state"] == runs.CREATED else value


@pytest.mark.ids("F36")
def test_the_state_of_a_later_run_is_rebuilt_as_it_was(home: Path):
    folder = session(home, runs.COMPLETED)
    stored = Session(str(folder), actor="test")
    with SessionLock(str(folder)):
        stored.next_run()
    assert _rebuilt(folder) == _stored(folder)
    stored.transition(runs.STARTING, run=2)
    assert _rebuilt(folder) == _stored(folder)


@pytest.mark.ids("F36")
@pytest.mark.parametrize("word", ["flying", None, 1, []])
def test_a_told_state_that_is_none_is_not_believed(home: Path, word: object):
    folder = session(home, runs.RUNNING)
    Session(str(folder), actor="x").tell("state", run=1, **{"from": "running", "to": word})
    rebuilt = story.rebuilt_state(str(folder), folder.name, "")
    assert rebuilt
    assert rebuilt["state"] == "running"


def test_a_story_without_a_beginning_tells_of_no_state(home: Path):
    folder = session(home, runs.RUNNING)
    (folder / "story.jsonl").write_bytes(b"".join(lines(folder)[1:]))
    assert story.rebuilt_state(str(folder), folder.name, "") is None


@pytest.mark.ids("A31-3")
def test_the_end_of_the_story_reads_one_line_each():
    told: list[dict[str, object]] = [
        {"at": "T0", "event": "created", "run": 1, "actor": "cli"},
        {"at": "T1", "event": "state", "run": 1, "actor": "keeper", "from": "a", "to": "b", "reason": "why"},
    ]
    assert story.as_text(told) == "  T0 run 1 created by cli\n  T1 run 1 a → b by keeper: why"
    assert len(story.as_text(told * 20).splitlines()) == 12


KILLED = """
import os, signal, sys
from hitchpost.store import files, locks, records
from hitchpost.store.session import Session

files.write_object = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
folder, deed = sys.argv[1:]
with locks.SessionLock(folder):
    if deed == "suspended":
        Session(folder, actor="killed").change_record(deed, run=1)
    else:
        Session(folder, actor="killed").transition(deed, run=1, locked=True)
"""


@pytest.mark.ids("F38")
@pytest.mark.parametrize("then", [runs.STOPPING, runs.FAILED])
def test_a_change_whose_teller_was_killed_before_he_made_it_is_told_once(home: Path, then: str):
    folder = session(home, runs.RUNNING)
    killed(folder, runs.STOPPING)
    assert [line["to"] for line in story.read(str(folder))[-2:]] == [runs.RUNNING, runs.STOPPING]
    Session(str(folder), actor="recovery").transition(then, run=1)
    told = [(line["to"], line["actor"]) for line in story.read(str(folder)) if line["event"] == "state"]
    assert told[-2:] == [(runs.RUNNING, "test"), (then, "recovery")]


@pytest.mark.ids("F38")
def test_so_is_a_change_of_the_record(home: Path):
    folder = session(home, runs.COMPLETED)
    killed(folder, "suspended")
    with SessionLock(str(folder)):
        for new in ("suspended", "active", "suspended", "active", "archived"):
            Session(str(folder), actor="test").change_record(new, run=1)
    told = [(line["to"], line["actor"]) for line in story.read(str(folder)) if line["event"] == "record"]
    assert told == [(new, "test") for new in ("suspended", "active", "suspended", "active", "archived")]


@pytest.mark.ids("F38")
def test_and_a_run_that_was_never_begun(home: Path):
    folder = session(home, runs.COMPLETED)
    (folder / "runs" / "1").mkdir(parents=True, exist_ok=True)
    Session(str(folder), actor="killed").tell("run", run=2)
    with SessionLock(str(folder)):
        Session(str(folder), actor="test").next_run()
    assert [line["actor"] for line in story.read(str(folder)) if line["event"] == "run"] == ["test"]


def killed(folder: Path, deed: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), deed], check=False)
    assert done.returncode == -signal.SIGKILL
