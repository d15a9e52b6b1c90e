from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitchpost.store import files
from hitchpost.store.files import NewerSchema, Unreadable
from hitchpost.system import process
from tests.store.made import python, tree

# Writing --------------------------------------------------------------------------------------------------------


@pytest.mark.ids("A31-5")
def test_a_file_is_replaced_whole_and_for_its_owner_only(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    files.replace_file(str(path), b"new")
    assert tree(tmp_path) == {"file": b"new"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.ids("A31-5", "F37")
def test_a_write_that_fails_leaves_the_old_content_and_no_temp_file(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    limited = """
import resource, sys
from hitchpost.store import files
resource.setrlimit(resource.RLIMIT_FSIZE, (2, 2))
try:
    files.replace_file(sys.argv[1], b"new")
except OSError as error:
    print(error.errno)
"""
    assert python(limited, path).stdout == f"{errno.EFBIG}\n"
    assert tree(tmp_path) == {"file": b"old"}


@pytest.mark.ids("A31-5")
def test_two_writers_at_once_have_temp_files_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = []
    rename = os.rename

    def noting(old: str, new: str) -> None:
        names.append(old)
        rename(old, new)

    monkeypatch.setattr(os, "rename", noting)
    files.replace_file(str(tmp_path / "file"), b"1")
    files.replace_file(str(tmp_path / "file"), b"2")
    assert len(set(names)) == 2


@pytest.mark.ids("F37")
def test_room_set_aside_takes_the_write_that_a_full_disk_refuses(tmp_path: Path, full_disk: list[str]):
    path, spare = str(tmp_path / "file"), str(tmp_path / ".spare")
    files.reserve(spare)
    assert os.stat(spare).st_size == files.SPARE_BYTES
    full_disk.append("full")
    files.write_object(path, {"a": 1}, spare=spare)
    assert files.read_object(path) == {"a": 1}


@pytest.mark.ids("F37")
def test_room_set_aside_serves_every_later_write_of_the_same_file_too(tmp_path: Path, full_disk: list[str]):
    path, spare = str(tmp_path / "file"), str(tmp_path / ".spare")
    files.write_object(path, {"a": 0})
    files.reserve(spare)
    full_disk.append("full")
    for number in (1, 2, 3):
        files.write_object(path, {"a": number}, spare=spare)
        assert files.read_object(path) == {"a": number}
        assert os.path.exists(spare)
    assert sorted(os.listdir(tmp_path)) == [".spare", "file"]


@pytest.mark.ids("F37")
def test_what_does_not_fit_into_the_room_set_aside_is_refused_and_the_room_stays(tmp_path: Path, full_disk: list[str]):
    path, spare = str(tmp_path / "file"), str(tmp_path / ".spare")
    files.write_object(path, {"a": 0})
    files.reserve(spare)
    full_disk.append("full")
    with pytest.raises(OSError, match="do not fit into the 4096 reserved ones"):
        files.write_object(path, {"a": "x" * 5000}, spare=spare)
    assert files.read_object(path) == {"a": 0}
    files.write_object(path, {"a": 1}, spare=spare)
    assert files.read_object(path) == {"a": 1}


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """While it holds something, no new file can be made. ``tests/faults/test_store.py`` fills a disk for real."""
    state: list[str] = []
    real = os.open

    def refusing(path, flags, *rest, **more):
        if state and flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", refusing)
    return state


def test_a_line_is_appended_behind_one_that_a_crash_tore(tmp_path: Path):
    path = tmp_path / "story"
    path.write_bytes(b'{"a": 1}\n{"b"')
    files.append_line(str(path), '{"c": 3}')
    assert path.read_bytes() == b'{"a": 1}\n{"b"\n{"c": 3}\n'


# Reading --------------------------------------------------------------------------------------------------------


@pytest.mark.ids("F36")
@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_unreadable(data: bytes):
    path = f"/tmp/hp-any-{os.getpid()}"
    Path(path).write_bytes(data)
    try:
        assert isinstance(files.read_object(path), dict)
    except files.CannotRead:
        pass
    finally:
        os.unlink(path)


@pytest.mark.ids("F36")
@pytest.mark.parametrize(
    "text", ["", "[]", "1", "null", '"text"', '{"schema": "1"}', '{"schema": -1}', '{"schema": true}']
)
def test_what_is_no_object_with_a_schema_number_is_unreadable(tmp_path: Path, text: str):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(Unreadable):
        files.read_object(str(path))


@pytest.mark.ids("F34")
def test_a_newer_schema_is_named_with_what_to_do(tmp_path: Path):
    path = tmp_path / "file"
    path.write_text('{"schema": 2}')
    with pytest.raises(NewerSchema, match=r"was written by a newer hitchpost \(schema 2; this one knows 1\); upgrade"):
        files.read_object(str(path))


def test_a_file_that_is_not_there_is_an_unreadable_one_and_says_its_path(tmp_path: Path):
    with pytest.raises(Unreadable) as caught:
        files.read_object(f"{tmp_path}/state.json")
    assert isinstance(caught.value, FileNotFoundError)
    assert str(caught.value) == f"{tmp_path}/state.json: No such file or directory"


def test_a_disk_that_refuses_says_nothing_about_what_the_file_holds():
    with pytest.raises(files.DiskRefused) as caught:
        files.read_object("/proc/self/mem")  # reading its first page is an I/O error, for root, too
    assert isinstance(caught.value, files.CannotRead)
    assert not isinstance(caught.value, Unreadable)
    assert caught.value.errno == errno.EIO
    assert str(caught.value) == "/proc/self/mem: Input/output error"


# Identity -------------------------------------------------------------------------------------------------------


@pytest.mark.ids("F12")
def test_a_process_is_named_by_its_start_time_and_one_that_is_gone_has_none():
    assert process.start_time(os.getpid()) == process.start_time(os.getpid())
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert process.start_time(pid) is None


@pytest.mark.ids("F40")
def test_a_test_can_play_a_reboot(monkeypatch: pytest.MonkeyPatch):
    real = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert process.boot_id() == real
    monkeypatch.setenv("HITCHPOST_BOOT_ID", "another")
    assert process.boot_id() == "another"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "1970-01-01T00:00:00.000000Z"), (1.25, "1970-01-01T00:00:01.250000Z"), (-0.5, "1969-12-31T23:59:59.500000Z")],
)
def test_times_are_rfc_3339_in_utc(seconds: float, text: str):
    assert files.stamp(seconds) == text
