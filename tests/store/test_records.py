from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitchpost.model.record import ACTIVE, ARCHIVED, ERROR, SUSPENDED, InvalidRecordChange
from hitchpost.store import records, story
from hitchpost.store.files import NewerSchema, Unreadable
from hitchpost.store.home import is_id, new_id
from hitchpost.store.records import Record, StoredTree
from hitchpost.store.session import Session
from hitchpost.values import fields, replace
from tests.store.made import record, session, tree


def change_file(place: Path, /, **changes: object) -> None:
    path = place / "session.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.ids("A31-10")
def test_a_record_comes_back_as_it_was_written(home: Path):
    folder = session(home)
    made = replace(
        record(folder.name), description="a\nb\u202e", workspace_id="w", conversation_id="c", earlier_runs_s=1.5
    )
    Session(str(folder), actor="test").save(made)
    assert records.read(str(folder)) == made


@pytest.mark.ids("A31-15")
def test_the_file_is_plain_json_that_a_person_can_inspect(home: Path):
    folder = session(home)
    value = json.loads((folder / "session.json").read_text())
    assert set(value) == {"schema", *fields(Record)}
    assert (value["schema"], value["name"], value["argv"]) == (1, "dev", ["sh", "-c", "read line"])


WORKTREE = {
    "top": "/src/shop",
    "top_id": "1-2",
    "common": "/src/shop/.git",
    "common_id": "1-3",
    "objects_id": "1-4",
    "own": "worktrees/shop",
    "keep": "",
    "inside": "",
}


def test_the_worktree_in_a_record_is_a_type_in_memory_and_the_same_json_on_disk(home: Path):
    folder = session(home)
    change_file(folder, git=WORKTREE)
    read = records.read(str(folder))
    assert read.git == StoredTree("/src/shop", "1-2", "/src/shop/.git", "1-3", "1-4", "worktrees/shop")
    Session(str(folder), actor="test").save(read)
    assert json.loads((folder / "session.json").read_text())["git"] == WORKTREE
    assert list(json.loads((folder / "session.json").read_text())["git"]) == list(WORKTREE)


@pytest.mark.parametrize("wrong", [{}, {"top": 3}, {**WORKTREE, "common": ""}, {**WORKTREE, "own": None}])
def test_a_worktree_that_cannot_be_one_is_none_and_the_record_is_read(home: Path, wrong: dict[str, object]):
    folder = session(home)
    change_file(folder, git=wrong)
    assert records.read(str(folder)).git is None


def test_keys_that_are_not_known_are_left_out(home: Path):
    folder = session(home)
    change_file(folder, colour="green")
    assert records.read(str(folder)).name == "dev"


@pytest.mark.ids("F36")
@pytest.mark.parametrize("field", fields(Record))
def test_a_field_of_the_wrong_type_is_unreadable_and_named(home: Path, field: str):
    folder = session(home)
    kind = Record.__annotations__[field]
    for wrong in (
        ["a"] if "Stored" in kind else {"a": 1},
        1 if "str" in kind else "1",
        *([True] if kind == "int" else []),
    ):
        change_file(folder, **{field: wrong})
        with pytest.raises(Unreadable, match=field):
            records.read(str(folder))


@pytest.mark.ids("F36")
def test_a_record_that_lacks_a_field_is_unreadable(home: Path):
    folder = session(home)
    (folder / "session.json").write_text('{"schema": 1, "id": "x"}')
    with pytest.raises(Unreadable, match="missing index, name"):
        records.read(str(folder))


@pytest.mark.ids("F36")
@pytest.mark.parametrize("word", ["", "paused", "completed"])
def test_a_record_in_no_known_state_is_unreadable(home: Path, word: str):
    folder = session(home)
    change_file(folder, record=word)
    with pytest.raises(Unreadable, match="expected a record state"):
        records.read(str(folder))


@pytest.mark.ids("F36")
def test_a_record_with_another_id_than_its_folder_is_unreadable(home: Path):
    folder = session(home)
    change_file(folder, id="a" * 12)
    with pytest.raises(Unreadable, match=f"expected id {folder.name}"):
        records.read(str(folder))


@pytest.mark.ids("F34")
def test_a_newer_record_is_refused(home: Path):
    folder = session(home)
    change_file(folder, schema=2)
    with pytest.raises(NewerSchema):
        records.read(str(folder))


@pytest.mark.parametrize(
    ("old", "new"),
    [(ACTIVE, SUSPENDED), (SUSPENDED, ACTIVE), (ACTIVE, ARCHIVED), (SUSPENDED, ARCHIVED), (ACTIVE, ERROR)],
)
def test_a_change_of_the_record_is_told_in_the_story(home: Path, old: str, new: str):
    folder = session(home)
    change_file(folder, record=old)
    changed = Session(str(folder), actor="test").change_record(new, run=3, reason="why")
    assert records.read(str(folder)) == changed
    assert changed.record == new
    last = story.read(str(folder))[-1]
    assert (last["event"], last["from"], last["to"], last["run"], last["actor"], last["reason"]) == (
        "record",
        old,
        new,
        3,
        "test",
        "why",
    )


@pytest.mark.ids("D-12")
@pytest.mark.parametrize("old", [ARCHIVED, ERROR])
def test_archived_and_error_are_final_and_a_refused_change_writes_nothing(home: Path, old: str):
    folder = session(home)
    change_file(folder, record=old)
    before = tree(home)
    with pytest.raises(InvalidRecordChange):
        Session(str(folder), actor="test").change_record(ACTIVE, run=1)
    assert tree(home) == before


@pytest.mark.ids("F36")
def test_the_story_gives_the_record_back(home: Path):
    folder = session(home)
    Session(str(folder), actor="test").change_record(SUSPENDED, run=1)
    told = records.from_story(str(folder))
    assert replace(told, record_changed_at="") == replace(record(folder.name), record=SUSPENDED, record_changed_at="")


@pytest.mark.ids("F36")
def test_a_record_from_the_story_has_its_folder_s_own_id(home: Path):
    folder = session(home)
    copy = folder.with_name("c" * 12)
    folder.rename(copy)
    assert records.from_story(str(copy)).id == "c" * 12


@pytest.mark.ids("F36")
@given(st.lists(st.binary(max_size=40) | st.sampled_from([b'{"at": "", "event": "created", "record": {"argv": 1}}'])))
def test_whatever_the_story_holds_there_is_a_record(lines: list[bytes]):
    folder = f"/tmp/hp-any-{os.getpid()}"
    os.mkdir(folder)
    try:
        Path(folder, "story.jsonl").write_bytes(b"\n".join(lines))
        assert records.from_story(folder).argv == ()
    finally:
        os.unlink(f"{folder}/story.jsonl")
        os.rmdir(folder)


@pytest.mark.ids("S6")
@pytest.mark.parametrize("text", ["", "a" * 11, "a" * 13, "A" * 12, "../../../etc", "aaaaaa/aaaaa", "ä" * 12, "٣" * 12])
def test_what_is_not_twelve_of_our_letters_is_no_id(text: str):
    assert not is_id(text)


def test_new_ids_are_ids_and_do_not_repeat():
    made = {new_id() for _ in range(1000)}
    assert len(made) == 1000
    assert all(map(is_id, made))


def test_ids_are_those_of_whole_folders_only(home: Path):
    one, two = session(home, name="one"), session(home, name="two")
    for name in (".new-" + "a" * 12, ".removed-" + "a" * 12, ".lock"):
        (home / "sessions" / name).mkdir()
    assert records.ids(str(home)) == sorted([one.name, two.name])
    assert records.ids(str(home / "nowhere")) == []
