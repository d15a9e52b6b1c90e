from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hitchpost.agents import catalog
from hitchpost.errors import NameTaken, UsageError
from hitchpost.ops.create import LONGEST_DESCRIPTION, LONGEST_NAME, Wish, create
from hitchpost.ops.remove import archive, remove
from hitchpost.settings import Settings
from hitchpost.state import files, records
from hitchpost.state.records import Record
from tests.ground import Ground, Truth

ARGV = ("agent", "x")


def made(ground: Ground, name: str | None = None, **more) -> Record:
    fields = {"agent": catalog.unknown(ARGV), "argv": ARGV, "folder": str(ground.place), "name": name, **more}
    return create(str(ground.home), Wish(**fields), Settings(grace_s=7, quiet_s=5, survivors="kill"), actor="test")


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


def test_the_number_is_the_lowest_free_one(ground: Ground) -> None:
    one, two, three = made(ground), made(ground), made(ground)
    assert [one.index, two.index, three.index] == [1, 2, 3]
    remove(str(ground.home), two.id, actor="test")
    assert made(ground).index == 2
    archive(str(ground.home), one.id, actor="test")
    assert made(ground).index == 1
    assert made(ground).index == 4


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
        ("", "at least one character"),
        (" \t", "at least one character"),
        ("123", "only digits"),
        ("x" * (LONGEST_NAME + 1), f"has {LONGEST_NAME + 1} characters; {LONGEST_NAME} is the most"),
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

    def full(folder: str, record: Record) -> None:
        raise OSError(28, "No space left on device", folder)

    monkeypatch.setattr(records, "write", full)
    with pytest.raises(OSError):
        made(ground)
    assert sorted(os.listdir(ground.home / "sessions")) == before


def test_names_are_given_out_one_at_a_time(ground: Ground) -> None:
    made(ground)
    with files.Lock(str(ground.home / "sessions" / ".lock")):
        assert files.is_held(str(Path(ground.home, "sessions", ".lock"))) is True
