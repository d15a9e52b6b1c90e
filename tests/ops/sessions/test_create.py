from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hitchpost.errors import NameTaken, UsageError
from hitchpost.ops.doctor.report import unfinished
from hitchpost.ops.sessions.create import LONGEST_DESCRIPTION, LONGEST_NAME, create, sweep
from hitchpost.ops.sessions.edit import edit
from hitchpost.ops.sessions.remove import archive, remove
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.settings import Settings
from hitchpost.store import locks, records
from hitchpost.store.home import new_id
from hitchpost.store.index import Index
from hitchpost.store.records import Record
from hitchpost.store.session import Session, State
from tests.ground import Ground, Truth

ARGV = ("agent", "x")


def made(ground: Ground, name: str | None = None, new_id: Callable[[], str] = new_id, **more) -> Record:
    fields = {"command": ARGV, "folder": str(ground.place), "name": name, **more}
    settings = Settings(grace_s=7, quiet_s=5, survivors="kill")
    return create(str(ground.home), SessionSpec(**fields), settings, actor="test", new_id=new_id)


def test_a_session_is_written_whole(ground: Ground) -> None:
    record = made(ground, "dev", description="what for")
    place = os.stat(ground.place)
    assert records.read(str(ground.home / "sessions" / record.id)) == record
    assert record == Record(
        id=record.id,
        index=1,
        name="dev",
        agent="agent",
        argv=ARGV,
        folder=str(ground.place),
        folder_dev=place.st_dev,
        folder_ino=place.st_ino,
        created_at=record.created_at,
        description="what for",
        record_changed_at=record.created_at,
        last_active_at=record.created_at,
        quiet_after_s=5,
        grace_s=7,
        survivors="kill",
    )
    truth = Truth(ground.home, record.id)
    assert (truth.state, truth.state_file()["run"]) == ("created", 1)
    assert [line["event"] for line in truth.story()] == ["created"]
    assert sorted(os.listdir(truth.folder)) == ["lock", "session.json", "state.json", "story.jsonl"]


def test_no_number_is_given_out_twice(ground: Ground) -> None:
    one, two, three = made(ground), made(ground), made(ground)
    assert [one.index, two.index, three.index] == [1, 2, 3]
    remove(str(ground.home), three.id, actor="test")
    archive(str(ground.home), one.id, actor="test")
    assert made(ground).index == 4
    (ground.home / "numbers.json").write_text("broken")
    assert made(ground).index == 5, "the numbers of those that are there still count"


def test_a_name_is_made_from_agent_and_folder(ground: Ground) -> None:
    assert [made(ground).name for _ in range(3)] == ["agent-place", "agent-place-2", "agent-place-3"]


def test_a_name_is_given_once_among_sessions_that_are_not_archived(ground: Ground) -> None:
    first = made(ground, "dev")
    with pytest.raises(NameTaken, match=f"session {first.id} is already named 'dev'") as caught:
        made(ground, "dev")
    assert caught.value.exit_code == 5
    archive(str(ground.home), first.id, actor="test")
    assert made(ground, "dev").name == "dev"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "at least one visible character"),
        (" \t", "at least one visible character"),
        ("123", "only digits"),
        ("x" * (LONGEST_NAME + 1), f"has {LONGEST_NAME + 1} characters; the limit is {LONGEST_NAME}"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_leaves_nothing(ground: Ground, name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        made(ground, name)
    assert records.ids(str(ground.home)) == []


@pytest.mark.parametrize("name", ["x" * LONGEST_NAME, "1a", "ünï", "..", "a/b", "-x", "٣"])
def test_a_name_is_any_other_label(ground: Ground, name: str) -> None:
    assert made(ground, name).name == name


def test_what_is_too_long_or_nowhere_is_refused(ground: Ground) -> None:
    (ground.place / "file").touch()
    with pytest.raises(UsageError, match=f"longer than {LONGEST_DESCRIPTION}"):
        made(ground, description="x" * (LONGEST_DESCRIPTION + 1))
    with pytest.raises(UsageError, match="no such file or directory"):
        made(ground, folder=str(ground.place / "gone"))
    with pytest.raises(UsageError, match="it is not a folder"):
        made(ground, folder=str(ground.place / "file"))
    assert records.ids(str(ground.home)) == []


def test_a_folder_is_known_by_its_real_path(ground: Ground) -> None:
    link = ground.place.with_name("link")
    link.symlink_to(ground.place)
    assert made(ground, folder=str(link)).folder == str(ground.place)


@pytest.mark.ids("F38")
def test_what_was_never_finished_is_cleared_away(ground: Ground) -> None:
    kept = made(ground)
    top = ground.home / "sessions"
    shutil.copytree(top / kept.id, top / ".new-abc")
    shutil.copytree(top / kept.id, top / ".removed-abc")
    (top / "mine").mkdir()
    made(ground)
    assert not (top / ".new-abc").exists()
    assert not (top / ".removed-abc").exists()
    assert (top / "mine").exists()
    assert kept.id in records.ids(str(ground.home))


def test_a_disk_that_refuses_leaves_nothing(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    made(ground)
    before = sorted(os.listdir(ground.home / "sessions"))

    def full(session: Session, record: Record, **more: bool) -> None:
        raise OSError(28, "No space left on device", session.folder)

    monkeypatch.setattr(Session, "save", full)
    with pytest.raises(OSError):
        made(ground)
    assert sorted(os.listdir(ground.home / "sessions")) == before


def test_a_session_that_is_being_made_has_its_name_and_number_and_keeps_nobody_waiting(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[Record] = []
    create_state = Session.create

    def meanwhile(manager: Session, *args: Any, **told: Any) -> State:
        if manager.folder.endswith(dev_id):
            sweep(str(ground.home))
            assert unfinished(str(ground.home)) == []
            with pytest.raises(NameTaken):
                made(ground, "dev")
            with pytest.raises(NameTaken):
                edit(str(ground.home), kept.id, name="dev", actor="test")
            others.append(made(ground))
        return create_state(manager, *args, **told)

    kept, dev_id = made(ground, "kept"), "d" * 12
    monkeypatch.setattr(Session, "create", meanwhile)
    dev = made(ground, "dev", new_id=lambda: dev_id)
    (other,) = others
    assert (kept.index, dev.index, other.index) == (1, 2, 3)
    assert sorted(records.ids(str(ground.home))) == sorted((kept.id, dev.id, other.id))


def test_names_given_out_a_moment_ago_are_known(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the long look at all sessions and the lock, others come, go and get other names."""
    one, two = made(ground, "one"), made(ground, "two")
    refresh = Index.refresh
    came: list[Record] = []

    def then_others(known: Index) -> Index:
        refresh(known)
        if not came:
            patch.undo()
            remove(str(ground.home), one.id, actor="test")
            edit(str(ground.home), two.id, name="deux", actor="test")
            came.append(made(ground, "three"))
        return known

    with monkeypatch.context() as patch:
        patch.setattr(Index, "refresh", then_others)
        with pytest.raises(NameTaken):
            made(ground, "deux")
    assert came[0].index == 3
    assert [made(ground, name).index for name in ("one", "two")] == [4, 5]


def test_names_are_given_out_one_at_a_time(ground: Ground) -> None:
    made(ground)
    with locks.Lock(str(ground.home / "sessions" / ".lock")):
        assert locks.is_held(str(Path(ground.home, "sessions", ".lock"))) is True
