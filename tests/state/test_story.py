from __future__ import annotations

import json
from pathlib import Path

import pytest

from hitchpost.model import run as runs
from hitchpost.state import story
from hitchpost.state.files import SessionLock
from hitchpost.state.manager import Manager
from tests.state.made import session


def lines(folder: Path) -> list[bytes]:
    return (folder / "story.jsonl").read_bytes().splitlines(keepends=True)


def test_every_change_is_a_line_with_time_actor_reason_and_evidence(home: Path):
    folder = session(home)
    Manager(str(folder), actor="keeper").transition(runs.STARTING, run=1, reason="why", evidence={"pid": 7})
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
    manager = Manager(str(folder), actor="test")
    with SessionLock(str(folder)):
        manager.next_run()
    assert _rebuilt(folder) == _stored(folder)
    manager.transition(runs.STARTING, run=2)
    assert _rebuilt(folder) == _stored(folder)


@pytest.mark.ids("F36")
@pytest.mark.parametrize("word", ["flying", None, 1, []])
def test_a_told_state_that_is_none_is_not_believed(home: Path, word: object):
    folder = session(home, runs.RUNNING)
    story.tell(str(folder), "state", run=1, actor="x", **{"from": "running", "to": word})
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
