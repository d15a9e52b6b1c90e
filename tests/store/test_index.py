from __future__ import annotations

import json
import os
import time
from binascii import crc32
from collections.abc import Iterator
from pathlib import Path

import pytest
from typing_extensions import is_typeddict

from hitchpost.model import run as runs
from hitchpost.ops.views import session_types
from hitchpost.ops.views.listing import listing
from hitchpost.store import files, index, statefile
from hitchpost.store.index import TICK_NS, Index
from hitchpost.store.session import Session
from hitchpost.values import asdict
from tests.store.made import in_memory, record, session
from tests.support import Hitch

COUNT = 10_000


def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Play that what was written until now was written long before the index is taken."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 2 * TICK_NS)


def stored(home: Path) -> dict[str, str]:
    """The lines of the stored index."""
    return Index(str(home))._load()


@pytest.fixture
def indexed(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three ended sessions, listed and remembered."""
    for number in (1, 2, 3):
        session(home, runs.COMPLETED, index=number, name=f"s{number}")
    settled(monkeypatch)
    listing(str(home))
    return home


def test_what_has_not_changed_is_not_read_again(indexed: Path):
    found = Index(str(indexed)).refresh()
    assert list(found.changed) == []
    assert sorted(row["name"] for row in found.rows.values()) == ["s1", "s2", "s3"]
    assert all(found.shape(session) for session in found.lines)


def test_what_is_stored_has_another_version_when_it_has_other_fields() -> None:
    types = [found for found in vars(session_types).values() if is_typeddict(found)]
    fields = sorted((found.__name__, *sorted(found.__annotations__)) for found in types)
    assert (index.VERSION, crc32(repr(fields).encode())) == (13, 1399895633), "a new VERSION, and both numbers here"


def test_a_change_of_state_is_seen(indexed: Path):
    folder = session(indexed, runs.RUNNING, index=4, name="s4")
    assert [row.shape["state"] for row in listing(str(indexed), shapes=True)][:3] == ["completed"] * 3
    Session(str(folder), actor="test").transition(runs.FAILED, run=1)
    assert [row.shape["state"] for row in listing(str(indexed), shapes=True)] == ["completed"] * 3 + ["failed"]


@pytest.mark.ids("F41")
@pytest.mark.parametrize("name", ["session.json", "state.json"])
def test_a_file_that_was_replaced_behind_its_back_is_read_again(indexed: Path, name: str):
    folder = indexed / "sessions" / _named(indexed, "s2")
    text = (folder / name).read_text()
    (folder / "new").write_text(text.replace('"s2"', '"t2"').replace("completed", "stopped"))
    (folder / "new").rename(folder / name)
    row = next(row for row in listing(str(indexed), shapes=True) if row.shape["id"] == folder.name)
    assert (row.shape["name"], row.shape["state"]) == (
        ("t2", "completed") if name == "session.json" else ("s2", "stopped")
    )


def _named(home: Path, name: str) -> str:
    return next(session for session, row in index.rows(str(home)).items() if row["name"] == name)


@pytest.mark.ids("F41")
def test_changes_within_one_tick_of_the_clock_are_all_seen(home: Path):
    folder = session(home, runs.COMPLETED)
    for number in range(300):
        made = record(folder.name, name=f"n{number}")
        (folder / "session.json").write_text(json.dumps({"schema": 1, **asdict(made)}))
        assert [row["name"] for row in index.rows(str(home)).values()] == [f"n{number}"]


@pytest.mark.ids("F41")
def test_what_changed_in_the_tick_of_the_look_is_not_trusted_even_when_saving_took_long(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = session(home, runs.COMPLETED)
    taken = Index(str(home)).refresh()
    settled(monkeypatch)
    taken.save()
    assert stored(home)[folder.name].split("\t")[index.STAMP] == index.NO_STAMP
    assert Index(str(home)).refresh().changed.keys() == {folder.name}


def test_sessions_that_came_and_went_are_seen(indexed: Path):
    gone = indexed / "sessions" / _named(indexed, "s1")
    gone.rename(indexed / "gone")
    session(indexed, runs.FAILED, index=9, name="s9")
    assert [row.shape["name"] for row in listing(str(indexed), shapes=True)] == ["s2", "s3", "s9"]
    assert len(stored(indexed)) == 3


@pytest.mark.ids("F36")
@pytest.mark.parametrize("content", ["", "\n", "{}", "hitchpost index 999 0 00000000\n", "x\ty\tz\n" * 100])
def test_an_index_that_is_none_is_made_anew(indexed: Path, content: str):
    (indexed / index.INDEX).write_text(content)
    assert [row.shape["name"] for row in listing(str(indexed), shapes=True)] == ["s1", "s2", "s3"]
    assert len(stored(indexed)) == 3


@pytest.mark.ids("F36")
def test_an_index_cut_at_any_byte_is_made_anew(indexed: Path):
    whole = (indexed / index.INDEX).read_bytes()
    for length in range(0, len(whole), 61):
        (indexed / index.INDEX).write_bytes(whole[:length])
        assert [row.shape["name"] for row in listing(str(indexed), shapes=True)] == ["s1", "s2", "s3"]


@pytest.mark.ids("F36", "F39")
@pytest.mark.parametrize("hole", [b"\0", b"\t", b"9", b"\n", b"\xff"])
def test_an_index_with_a_hole_anywhere_is_made_anew(indexed: Path, hole: bytes):
    whole = (indexed / index.INDEX).read_bytes()
    for start in range(0, len(whole), 37):
        (indexed / index.INDEX).write_bytes(whole[:start] + hole * len(whole[start : start + 20]) + whole[start + 20 :])
        assert [row.shape["name"] for row in listing(str(indexed), shapes=True)] == ["s1", "s2", "s3"]


@pytest.mark.ids("F36")
def test_a_session_whose_record_is_broken_keeps_its_name_and_number(indexed: Path):
    broken = indexed / "sessions" / _named(indexed, "s2")
    (broken / "session.json").write_bytes(b"\0")
    row = index.rows(str(indexed))[broken.name]
    assert row == {"id": broken.name, "index": 2, "name": "s2", "record": "active"}


@pytest.mark.ids("F37")
def test_an_index_that_cannot_be_saved_is_no_loss(indexed: Path, monkeypatch: pytest.MonkeyPatch):
    (indexed / index.INDEX).unlink()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "replace_file", full)
    assert len(listing(str(indexed))) == 3
    assert not (indexed / index.INDEX).exists()


def test_a_home_without_sessions_has_no_rows(home: Path):
    assert index.rows(str(home / "nowhere")) == {}


@pytest.fixture
def memory_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with in_memory(home, monkeypatch) as folder:
        yield folder


@pytest.fixture
def many(memory_home: Path) -> Path:
    """10,000 session folders, written directly: half completed, half failed."""
    home = memory_home
    top = home / "sessions"
    top.mkdir(mode=0o700)
    template = json.dumps({"schema": 1, **asdict(record("X" * 12, 0, "NAME"))})
    state = json.dumps(statefile.new_state("X" * 12, "", 1, "2026-01-02T03:04:05Z") | {"state": "STATE"})
    for number in range(COUNT):
        name = f"{number:012d}"
        os.mkdir(top / name, 0o700)
        texts = {
            "session.json": template.replace("X" * 12, name)
            .replace("NAME", f"s{number}")
            .replace('"index": 0', f'"index": {number + 1}'),
            "state.json": state.replace("X" * 12, name).replace("STATE", ("completed", "failed")[number % 2]),
        }
        for file, text in texts.items():
            fd = os.open(top / name / file, os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(fd, text.encode())
            os.close(fd)
    return home


@pytest.mark.ids("F41")
@pytest.mark.long
@pytest.mark.timeout(400)
def test_10_000_sessions_are_listed_right_and_checked_against_their_files(many: Path, hitch: Hitch):
    def states() -> list[tuple[str, str]]:
        return [(row["name"], row["state"]) for row in hitch("ps", "--json", timeout_s=120).json()]

    expected = [(f"s{number}", ("completed", "failed")[number % 2]) for number in range(COUNT)]
    assert states() == expected
    assert len(stored(many)) == COUNT

    path = many / "sessions" / f"{5000:012d}" / "state.json"
    path.with_suffix(".new").write_text(path.read_text().replace("completed", "stopped"))
    path.with_suffix(".new").rename(path)
    assert states() == [*expected[:5000], ("s5000", "stopped"), *expected[5001:]]
    lines = hitch("ps", timeout_s=120).out.splitlines()
    assert len(lines) == COUNT + 1
    assert lines[5001].split()[:2] == ["5001", "s5000"]
