from __future__ import annotations

import _thread
import errno
import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitchpost.store import files
from hitchpost.store.files import Lock, LockTimeout, NewerSchema, Removed, SessionLock, Unreadable, is_held
from hitchpost.system import process
from tests.store.made import finish, python, session, started, tree
from tests.support import eventually

HOLD = """
import sys, time
from hitchpost.store.files import Lock
with Lock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""

PROBE = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
print("probing", flush=True)
sys.stdin.read()
"""


# Locks ----------------------------------------------------------------------------------------------------------


@pytest.mark.ids("F33", "A31-13")
def test_the_lock_of_a_killed_holder_goes_to_the_next_one_at_once(tmp_path: Path):
    path = str(tmp_path / "lock")
    holder = started(HOLD, path)
    try:
        assert is_held(path) is True
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        began = time.monotonic()
        with Lock(path, timeout_s=5):
            assert time.monotonic() - began < 1
    finally:
        finish(holder)


@pytest.mark.ids("A31-4", "A31-13")
def test_a_lock_excludes_other_processes_and_says_so_when_time_is_up(tmp_path: Path):
    path = str(tmp_path / "lock")
    holder = started(HOLD, path)
    try:
        began = time.monotonic()
        with (
            pytest.raises(LockTimeout, match=r"lock is locked by another process for more than 0\.1 s"),
            Lock(path, 0.1),
        ):
            pass
        assert 0.1 <= time.monotonic() - began < 5
    finally:
        finish(holder)


def test_a_lock_without_patience_does_not_wait(tmp_path: Path):
    path = str(tmp_path / "lock")
    with Lock(path), pytest.raises(LockTimeout), Lock(path, timeout_s=0):
        pass


@pytest.mark.ids("A31-13")
def test_a_lock_that_is_waited_for_comes_as_soon_as_it_is_free(tmp_path: Path):
    path = str(tmp_path / "lock")
    holder = started(HOLD, path)
    try:
        assert holder.stdin
        holder.stdin.close()
        with Lock(path, timeout_s=10):
            assert is_held(path) is True
        assert is_held(path) is False
    finally:
        holder.wait()
        assert holder.stdout
        holder.stdout.close()


WAIT = """
import sys
from hitchpost.store.files import Lock
print("waiting", flush=True)
with Lock(sys.argv[1]):
    with open(sys.argv[2], "a") as order:
        order.write(sys.argv[3])
"""


def in_line(path: str) -> int:
    """How many wait for the lock, as the kernel has it."""
    inode = f":{os.stat(path).st_ino} "
    return sum("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


def test_who_waits_longest_for_a_lock_is_the_next_to_have_it(tmp_path: Path):
    path, order = str(tmp_path / "lock"), tmp_path / "order"
    order.touch()
    waiting: list[subprocess.Popen[str]] = []
    try:
        with Lock(path):
            for number in range(6):
                waiting.append(started(WAIT, path, str(order), str(number)))
                eventually(lambda: in_line(path) == len(waiting), what="one more in line")
        eventually(lambda: len(order.read_text()) == len(waiting), what="everybody's turn")
    finally:
        for process in waiting:
            finish(process)
    assert order.read_text() == "012345"


def test_a_lock_that_nobody_waits_for_any_more_is_free_and_costs_few_threads(tmp_path: Path):
    path = str(tmp_path / "lock")
    with Lock(path):
        for _ in range(files.MOST_WAITING + 3):
            with pytest.raises(LockTimeout), Lock(path, timeout_s=0.001):
                pass
        assert in_line(path) == files.MOST_WAITING
    eventually(lambda: not files._waiting, what="the end of the line")
    assert is_held(path) is False


def test_where_no_thread_can_be_started_a_lock_is_waited_for_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refused)
    path = str(tmp_path / "lock")
    with Lock(path), pytest.raises(LockTimeout), Lock(path, timeout_s=0.01):
        pass
    with Lock(path):
        assert is_held(path) is True


def test_a_released_lock_leaves_its_file_and_no_descriptor(tmp_path: Path):
    path = tmp_path / "lock"
    with Lock(str(path)) as lock:
        assert lock.fd >= 0
    assert lock.fd == -1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_lock_is_never_taken_through_a_link(tmp_path: Path):
    (tmp_path / "elsewhere").touch()
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError), Lock(str(tmp_path / "lock")):
        pass
    assert is_held(str(tmp_path / "lock")) is None


def test_whether_a_lock_is_held_has_three_answers(tmp_path: Path):
    path = str(tmp_path / "lock")
    assert is_held(path) is False
    with Lock(path):
        assert is_held(path) is True
    assert is_held(path) is False
    assert is_held(str(tmp_path / "lock" / "below-a-file")) is None


def test_two_probes_at_once_do_not_take_each_other_for_life(tmp_path: Path):
    path = str(tmp_path / "lock")
    Path(path).touch()
    probe = started(PROBE, path)
    try:
        assert is_held(path) is False
    finally:
        finish(probe)


def test_a_lock_is_still_had_while_a_probe_looks(tmp_path: Path):
    path = str(tmp_path / "lock")
    Path(path).touch()
    probe = started(PROBE, path)
    try:
        with pytest.raises(LockTimeout), Lock(path, timeout_s=0.01):
            pass
        assert probe.stdin
        probe.stdin.close()
        with Lock(path, timeout_s=5):
            pass
    finally:
        probe.wait()
        assert probe.stdout
        probe.stdout.close()


def test_the_lock_of_a_session_that_is_gone_is_refused_and_makes_nothing(tmp_path: Path):
    with pytest.raises(Removed), SessionLock(str(tmp_path / "gone")):
        pass
    assert list(tmp_path.iterdir()) == []


def test_who_waits_for_the_lock_of_a_session_learns_that_it_was_removed_meanwhile(home: Path):
    folder = session(home)
    waiter = """
import sys
from hitchpost.store.files import Removed, SessionLock
print("waiting", flush=True)
try:
    with SessionLock(sys.argv[1]):
        print("got it")
except Removed:
    print("removed")
"""
    with SessionLock(str(folder)):
        process = started(waiter, folder)
        try:
            _wait_until_it_has_open(process.pid, folder / "lock")
            folder.rename(folder.with_name(".removed-x"))
        except BaseException:
            finish(process)
            raise
    assert process.communicate()[0] == "removed\n"


def _wait_until_it_has_open(pid: int, path: Path) -> None:
    def has() -> bool:
        try:
            return any(os.readlink(f"/proc/{pid}/fd/{name}") == str(path) for name in os.listdir(f"/proc/{pid}/fd"))
        except FileNotFoundError:
            return False

    eventually(has, what="the waiter to have the lock's file open")


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
    except (Unreadable, NewerSchema):
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
