"""What is on disk, hurt: newer and older files, broken ones, left-overs, full and read-only disks, another boot."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from hitchpost.model import run as runs
from hitchpost.model.record import ALL
from hitchpost.ops.sessions.recover import RECOVERY, recover
from hitchpost.ops.views.listing import listing
from hitchpost.ops.views.session_types import Session as SessionJson
from hitchpost.store import story
from hitchpost.store.files import Unreadable
from hitchpost.store.index import INDEX
from hitchpost.store.session import Session
from tests.store.made import in_memory, session, tree
from tests.support import Answer, Hitch, Process, eventually

VERBS = (
    ("stop",),
    ("restart",),
    ("archive",),
    ("rm",),
    ("rm", "--force"),
    ("send",),
    ("logs",),
    ("wait",),
    ("explain",),
    ("replay",),
)
WORDS = {"send": ("hello",), "wait": ("--until", "exit")}
JUNK = random.Random("F36")


@pytest.fixture
def memory(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with in_memory(home, monkeypatch) as folder:
        yield folder


def row(home: Path) -> SessionJson:
    (only,) = listing(str(home), records=ALL, shapes=True)
    return only.shape


# Schemas --------------------------------------------------------------------------------------------------------


def make_newer(folder: Path, *names: str) -> None:
    for name in names:
        value = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(value | {"schema": 2, "mood": "sunny"}))


@pytest.mark.ids("F34")
@pytest.mark.parametrize("names", [("state.json",), ("session.json",), ("state.json", "session.json")])
def test_every_verb_refuses_a_session_of_a_newer_version_and_writes_nothing(
    home: Path, hitch: Hitch, names: tuple[str, ...]
):
    folder = session(home, runs.COMPLETED)
    make_newer(folder, *names)
    before = tree(home, INDEX)
    for verb, *flags in VERBS:
        answer = hitch(verb, *flags, folder.name, *WORDS.get(verb, ()), check=4)
        assert "was written by a newer hitchpost (schema 2; this one knows 1); upgrade hitchpost" in answer.err, answer
        assert "Traceback" not in answer.err
        assert tree(home, INDEX) == before, verb


@pytest.mark.ids("F34")
@pytest.mark.parametrize("name", ["state.json", "session.json"])
def test_a_session_of_a_newer_version_is_listed_with_what_is_known(home: Path, hitch: Hitch, name: str):
    folder = session(home, runs.COMPLETED, index=3, name="future")
    make_newer(folder, name)
    before = tree(home, INDEX)
    (listed,) = hitch("ps", "--json").json()
    assert (listed["id"], listed["index"], listed["name"]) == (folder.name, 3, "future")
    assert (listed["status"], listed["label"]) == ("unknown", "unknown (written by a newer hitchpost)")
    hitch("doctor", check=False)
    hitch("doctor", "--fix", check=False)
    assert tree(home, INDEX) == before


@pytest.mark.ids("F34", "A31-15")
def test_the_seed_s_own_files_are_taken_up_and_run_on(home: Path, hitch: Hitch, tmp_path: Path):
    """ADR 31's state file without schema and run, by the merged document's names, beside a five-state record."""
    folder = session(home, runs.RUNNING, folder=str(tmp_path))
    state = json.loads((folder / "state.json").read_text())
    old = {"status": state.pop("state"), "status_changed_at": state.pop("state_changed_at"), **state}
    del old["schema"], old["run"]
    (folder / "state.json").write_text(json.dumps(old))
    record = json.loads((folder / "session.json").read_text())
    del record["schema"], record["record"]
    (folder / "session.json").write_text(json.dumps(record | {"status": "completed"}))

    assert (row(home)["record"], row(home)["run"], row(home)["label"]) == ("active", 1, "failed: keeper lost")
    hitch("restart", "dev")
    (listed,) = hitch("ps", "--json").json()
    assert (listed["run"], listed["state"], listed["record"]) == (2, "running", "active")
    for path, expected in ((folder / "runs" / "1" / "state.json", "failed"), (folder / "state.json", "running")):
        value = json.loads(path.read_text())
        assert (value["schema"], value["state"]) == (1, expected)
        assert "status" not in value
    hitch("rm", "--force", "dev")


# Broken files ---------------------------------------------------------------------------------------------------


def wrong_types(value: dict[str, Any]) -> Iterator[bytes]:
    for key, item in value.items():
        candidates: tuple[object, ...] = (None, {}, [], -1 if isinstance(item, str) else "x")
        for wrong in candidates:
            if not isinstance(wrong, type(item)):
                yield json.dumps(value | {key: wrong}).encode()


def damages(data: bytes) -> Iterator[bytes]:
    """Cut at every length, empty, wrong types, random bytes."""
    yield from (data[:length] for length in range(len(data) - 1))
    yield from wrong_types(json.loads(data))
    yield from (JUNK.randbytes(length) for length in (1, 10, 100, len(data), 10_000))
    yield from (b"[]", b"null", b"{}", b"\0" * len(data), b'{"schema": -1}', b"[" * 100_000)


@pytest.mark.ids("F36")
def test_a_state_file_broken_in_any_way_is_listed_truly_then_put_away_and_rebuilt(memory: Path):
    folder = session(memory, runs.STOPPED)
    path = folder / "state.json"
    whole = path.read_bytes()
    as_it_was = row(memory)
    put_away: list[bytes] = []
    for damage in damages(whole):
        path.write_bytes(damage)
        listed = row(memory)
        if listed != as_it_was:
            assert listed == as_it_was | {"label": "stopped (unreadable file, see hitch doctor)"}, damage
            put_away.append(damage)
            recover(str(memory), folder.name, actor=RECOVERY)
            assert row(memory) == as_it_was
            assert json.loads(path.read_text()) == json.loads(whole) | {"updated_by": os.getpid()}
        else:
            # what was damaged is a fact that nothing is told of, or was never there
            assert json.loads(damage)["state"] == "stopped"
        path.write_bytes(whole)
    kept = sorted(file.read_bytes() for file in (memory / "quarantine").iterdir())
    assert kept == sorted(put_away)
    assert len(kept) > len(whole)


@pytest.mark.ids("F36")
def test_a_record_broken_in_any_way_is_listed_truly_then_put_away_and_rebuilt(memory: Path):
    folder = session(memory, runs.STOPPED, index=7, name="käse\n")
    path = folder / "session.json"
    whole = path.read_bytes()
    as_it_was = row(memory)
    put_away: list[bytes] = []
    for number, damage in enumerate(damages(whole)):
        path.write_bytes(damage)
        listed = row(memory)
        if listed["label"] != as_it_was["label"]:
            assert listed == as_it_was | {"label": "stopped (unreadable file, see hitch doctor)"}, damage
            if number % 8 == 0 or number > len(whole):
                put_away.append(damage)
                recover(str(memory), folder.name, actor=RECOVERY)
                assert json.loads(path.read_text()) == json.loads(whole)
        path.write_bytes(whole)
    kept = sorted(file.read_bytes() for file in (memory / "quarantine").iterdir())
    assert kept == sorted(put_away)
    assert len(kept) > len(whole) / 8


@pytest.mark.ids("F36")
@pytest.mark.parametrize("state", list(runs.TRANSITIONS))
def test_a_lost_state_is_rebuilt_whatever_it_was(home: Path, state: str):
    folder = session(home, state)
    (folder / "state.json").write_bytes(b"")
    settled = "failed" if state in runs.LIVE else state
    assert row(home)["state"] == settled
    recover(str(home), folder.name, actor=RECOVERY)
    assert Session(str(folder), actor="test").read().state == settled
    told = [line for line in story.read(str(folder)) if line["event"] == "repaired"]
    assert len(told) == 1
    assert "state.json is not readable" in str(told[0]["reason"])


@pytest.mark.ids("F36")
@pytest.mark.parametrize("name", ["state.json", "session.json"])
@pytest.mark.parametrize(("verb", "code"), [("stop", 0), ("restart", 0), ("archive", 0), ("rm", 0)])
def test_the_next_writing_command_repairs_what_is_broken_and_does_its_work(
    home: Path, hitch: Hitch, tmp_path: Path, name: str, verb: str, code: int
):
    folder = session(home, runs.COMPLETED, folder=str(tmp_path))
    (folder / name).write_bytes(b"{\0")
    (listed,) = hitch("ps", "--json").json()
    assert (listed["name"], listed["state"]) == ("dev", "completed")
    hitch(verb, "dev", check=code)
    assert [path.read_bytes() for path in (home / "quarantine").iterdir()] == [b"{\0"]
    expected = {"stop": "completed", "restart": "running", "archive": "archived", "rm": None}[verb]
    rows = hitch("ps", "--all", "--json").json()
    assert [item["status"] for item in rows] == ([expected] if expected else [])
    if verb == "restart":
        hitch("rm", "--force", "dev")


@pytest.mark.ids("F36", "F17")
@pytest.mark.parametrize("name", ["state.json", "session.json"])
def test_a_file_broken_under_a_live_session_does_not_disturb_it(home: Path, hitch: Hitch, tmp_path: Path, name: str):
    hitch("run", "--name", "dev", "--workspace", tmp_path, "--", "sh", "-c", "read line")
    (folder,) = (home / "sessions").glob("????????????")
    (folder / name).write_bytes(b"")
    (listed,) = hitch("ps", "--json").json()
    assert (listed["name"], listed["state"]) == ("dev", "running")
    hitch("stop", "dev")
    (listed,) = hitch("ps", "--json").json()
    assert (listed["name"], listed["label"]) == ("dev", "stopped")


@pytest.mark.ids("F36")
def test_a_session_that_neither_files_nor_story_can_tell_of_is_listed_as_unknown_and_left_alone(
    home: Path, hitch: Hitch
):
    folder = session(home, runs.RUNNING)
    for name in ("state.json", "session.json", "story.jsonl"):
        (folder / name).write_bytes(b"\0" * 50)
    before = tree(home, INDEX)
    (listed,) = hitch("ps", "--json").json()
    assert (listed["id"], listed["status"]) == (folder.name, "unknown")
    for verb in ("stop", "restart", "archive"):
        answer = hitch(verb, folder.name, check=1)
        assert "session.json" in answer.err
        assert "its story does not have it" in answer.err
        assert tree(home, INDEX) == before
    with pytest.raises(Unreadable):
        recover(str(home), folder.name, actor=RECOVERY)


@pytest.mark.ids("F36")
def test_a_new_session_takes_neither_name_nor_number_of_one_whose_record_is_broken(
    home: Path, hitch: Hitch, tmp_path: Path
):
    folder = session(home, runs.COMPLETED)
    (folder / "session.json").write_bytes(b"")
    answer = hitch("run", "--name", "dev", "--workspace", tmp_path, "--", "true", check=5)
    assert folder.name in answer.err
    made = hitch("run", "--name", "other", "--workspace", tmp_path, "--json", "--", "true").json()
    assert made["index"] == 2
    hitch("stop", "other")


# Left-overs -----------------------------------------------------------------------------------------------------


@pytest.mark.ids("F38")
@pytest.mark.parametrize("verb", ["stop", "restart", "archive", "rm", "run"])
def test_what_killed_processes_left_half_made_is_swept_by_the_next_writing_command(
    home: Path, hitch: Hitch, tmp_path: Path, verb: str
):
    folder = session(home, runs.COMPLETED, folder=str(tmp_path))
    (folder / "runs" / "1").mkdir(parents=True, mode=0o700)
    left = [
        home / ".index.tsv.4194400.0a1b2c3d.tmp",
        home / "sessions" / ".new-aaaaaaaaaaaa" / "state.json",
        home / "sessions" / ".removed-bbbbbbbbbbbb" / "runs" / "1" / "exit.json",
    ]
    if verb != "run":
        left += [folder / ".state.json.4194400.0a1b2c3d.tmp", folder / "runs" / "1" / ".exit.json.4194400.00000000.tmp"]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half")
    hitch("ps")
    if verb == "run":
        hitch("run", "--name", "new", "--workspace", tmp_path, "--", "true")
    else:
        hitch(verb, "dev")
    assert [path for path in left if path.exists()] == []
    assert [path.name for path in (home / "sessions").iterdir() if path.name.startswith((".new-", ".removed-"))] == []
    for name in ("dev", "new"):
        hitch("rm", "--force", name, check=False)


@pytest.mark.ids("F38")
def test_the_half_written_file_of_a_live_process_is_left_to_it(home: Path, hitch: Hitch):
    folder = session(home, runs.COMPLETED)
    (home / f".index.tsv.{os.getpid()}.0a1b2c3d.tmp").write_text("half")
    hitch("rm", folder.name)
    assert (home / f".index.tsv.{os.getpid()}.0a1b2c3d.tmp").exists()


# Full and read-only disks ---------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(home: Path) -> Iterator[Path]:
    """The state folder on a disk of its own, of half a megabyte."""
    command = ["mount", "-t", "tmpfs", "-o", "size=512k,mode=700", "hitchpost-test", str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs a mount, which is not permitted here: {done.stderr.strip()}")
    yield home
    for process in Process.all():
        if process.is_keeper and any(str(home) in word for word in process.argv):
            os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: subprocess.run(["umount", str(home)], capture_output=True, check=False).returncode == 0)


def fill(disk: Path) -> Path:
    """Leave not one free byte."""
    path = disk / "filler"
    with path.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            while has_room(file, size):
                pass
    return path


def has_room(file: FileIO, size: int) -> bool:
    try:
        return file.write(bytes(size)) == size
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False


def free_bytes(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_bsize


TALKER = 'while [ ! -e "$1" ]; do echo "$$ goes on"; date +%s.%N >"$2"; sleep 0.02; done; exit 3'


@pytest.fixture
def talker(small_disk: Path, hitch: Hitch, tmp_path: Path) -> Path:
    """A session whose agent talks all the time until a file appears; its trace is the time when it last did."""
    hitch("run", "--name", "dev", "--workspace", tmp_path, "--", *talk(tmp_path))
    eventually((tmp_path / "trace").exists)
    return small_disk


def talk(tmp_path: Path) -> tuple[str, ...]:
    return ("sh", "-c", TALKER, "talker", str(tmp_path / "leave"), str(tmp_path / "trace"))


def broken_files(home: Path) -> list[Path]:
    def whole(path: Path) -> bool:
        try:
            return isinstance(json.loads(path.read_bytes()), dict)
        except ValueError:
            return False

    return [path for path in home.rglob("*.json") if not path.name.startswith(".") and not whole(path)]


def goes_on(tmp_path: Path) -> bool:
    eventually((tmp_path / "trace").exists)
    before = (tmp_path / "trace").read_text()
    return bool(eventually(lambda: (tmp_path / "trace").read_text() not in ("", before)))


@pytest.mark.ids("F37")
def test_on_a_full_disk_the_agent_goes_on_and_its_end_is_still_written(talker: Path, hitch: Hitch, tmp_path: Path):
    filler = fill(talker)
    eventually(lambda: free_bytes(talker) == 0)
    assert goes_on(tmp_path)
    (listed,) = hitch("ps", "--json").json()
    assert listed["state"] == "running"

    (tmp_path / "leave").touch()
    (folder,) = (talker / "sessions").glob("????????????")
    eventually(lambda: json.loads((folder / "state.json").read_text())["state"] == "failed")
    (listed,) = hitch("ps", "--json").json()
    assert (listed["label"], listed["exit"]["code"]) == ("failed: command exited with code 3", 3)
    assert (folder / "runs" / "1" / "exit_status").read_text() == "3\n"
    assert broken_files(talker) == []
    assert free_bytes(talker) < 65536

    refused(hitch("restart", "dev", check=1), "No space left on device")
    filler.unlink()
    (tmp_path / "leave").unlink()
    hitch("restart", "dev")
    assert broken_files(talker) == []
    hitch("rm", "--force", "dev")


@pytest.mark.ids("F37")
def test_on_a_full_disk_a_stop_is_carried_out_and_written_down(talker: Path, hitch: Hitch, tmp_path: Path):
    fill(talker)
    eventually(lambda: free_bytes(talker) == 0)
    hitch("stop", "dev")
    (listed,) = hitch("ps", "--json").json()
    assert (listed["state"], listed["exit"]["intent"], listed["exit"]["signal"]) == ("stopped", "user", "SIGTERM")
    (folder,) = (talker / "sessions").glob("????????????")
    assert json.loads((folder / "runs" / "1" / "intent.json").read_text())["by"] == "user"
    assert json.loads((folder / "runs" / "1" / "exit.json").read_text())["signal"] == "SIGTERM"
    assert (folder / "runs" / "1" / "exit_status").read_text() == "143\n"
    assert broken_files(talker) == []


@pytest.mark.ids("F37")
def test_on_a_full_disk_a_new_session_is_refused_and_leaves_nothing(talker: Path, hitch: Hitch, tmp_path: Path):
    fill(talker)
    eventually(lambda: free_bytes(talker) == 0)
    answer = hitch("run", "--name", "new", "--workspace", tmp_path, "--", "true", check=1)
    refused(answer, "No space left on device")
    assert [item["name"] for item in hitch("ps", "--all", "--json").json()] == ["dev"]
    assert [path.name for path in (talker / "sessions").iterdir() if path.name.startswith(".new-")] == []


def refused(answer: Answer, why: str) -> None:
    assert why in answer.err, answer
    assert "Traceback" not in answer.err


@pytest.mark.ids("F37")
def test_on_a_read_only_disk_reading_works_and_writing_says_what_is_wrong(
    small_disk: Path, hitch: Hitch, tmp_path: Path
):
    hitch("run", "--name", "dev", "--workspace", tmp_path, "--", "echo", "words")
    eventually(lambda: hitch("ps", "--json").json()[0]["state"] == "completed")
    hitch("stop", "dev")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    before = tree(small_disk)
    assert [item["label"] for item in hitch("ps", "--json").json()] == ["completed"]
    assert "dev" in hitch("ps").out
    assert "words" in hitch("logs", "dev").out
    assert "completed" in hitch("explain", "dev").out
    for words in (
        ("restart", "dev"),
        ("archive", "dev"),
        ("rm", "dev"),
        ("run", "--workspace", str(tmp_path), "--", "true"),
    ):
        refused(hitch(*words, check=1), "Read-only file system")
    assert tree(small_disk) == before
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    hitch("rm", "dev")


@pytest.mark.ids("F37")
def test_a_disk_that_refuses_for_good_does_not_end_the_agent_and_its_end_is_no_false_running(
    home: Path, hitch: Hitch, tmp_path: Path
):
    hitch("run", "--name", "dev", "--workspace", tmp_path, "--", *talk(tmp_path))
    (run_file,) = home.glob("sessions/*/runs/1/run.json")
    keeper = json.loads(run_file.read_text())["keeper"]["pid"]
    refuse = ["-e", "inject=rename,link,fsync,fdatasync:error=EROFS"]
    calls = "trace=rename,link,fsync,fdatasync"
    tracer = subprocess.Popen(["strace", "-qq", "-p", str(keeper), "-o", tmp_path / "log", "-e", calls, *refuse])
    try:
        eventually(lambda: f"TracerPid:\t{tracer.pid}\n" in Path(f"/proc/{keeper}/status").read_text())
        assert goes_on(tmp_path)
        assert hitch("ps", "--json").json()[0]["state"] == "running"
        (tmp_path / "leave").touch()
        tracer.wait(timeout=60)
    finally:
        tracer.kill()
        tracer.wait()
    (listed,) = hitch("ps", "--json").json()
    assert (listed["state"], listed["session_alive"]) == ("failed", False)
    (tmp_path / "leave").unlink()
    hitch("restart", "dev")
    assert hitch("ps", "--json").json()[0]["state"] == "running"
    assert broken_files(home) == []
    hitch("rm", "--force", "dev")


# Another boot ---------------------------------------------------------------------------------------------------


def is_gone(pid: int) -> bool:
    process = Process.read(pid)
    return process is None or process.is_zombie


@pytest.mark.ids("F40", "F12")
def test_after_a_reboot_a_run_was_interrupted_and_nobody_signals_the_pids_it_had(
    home: Path, hitch: Hitch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HITCHPOST_BOOT_ID", "first")
    made = hitch("run", "--name", "dev", "--workspace", tmp_path, "--json", "--", "sleep", "1000").json()
    folder = home / "sessions" / made["id"]
    run = json.loads((folder / "runs" / "1" / "run.json").read_text())
    assert run["boot_id"] == "first"
    os.kill(run["keeper"]["pid"], signal.SIGKILL)
    for who in ("keeper", "agent"):
        eventually(lambda who=who: is_gone(run[who]["pid"]), what=f"the end of the {who}")  # type: ignore[misc]

    decoy = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        started = Process.read(decoy.pid)
        assert started
        both = {"pid": decoy.pid, "start": started.start_ticks}
        (folder / "runs" / "1" / "run.json").write_text(json.dumps(run | {"agent": both, "keeper": both}))
        (folder / "runs" / "1" / "keeper.lock").write_text(f"{decoy.pid} {started.start_ticks} first\n")
        monkeypatch.setenv("HITCHPOST_BOOT_ID", "second")

        before = tree(home, INDEX)
        (listed,) = hitch("ps", "--json").json()
        assert (listed["status"], listed["label"]) == ("suspended", "suspended: interrupted by reboot")
        assert (listed["state"], listed["record"], listed["session_alive"]) == ("failed", "suspended", False)
        assert tree(home, INDEX) == before

        hitch("stop", "dev")
        assert json.loads((folder / "session.json").read_text())["record"] == "suspended"
        assert json.loads((folder / "state.json").read_text())["state"] == "failed"
        assert json.loads((folder / "runs" / "1" / "exit.json").read_text())["error"] == "interrupted by reboot"

        hitch("restart", "dev")
        (listed,) = hitch("ps", "--json").json()
        assert (listed["run"], listed["state"], listed["record"]) == (2, "running", "active")
        hitch("rm", "--force", "dev")
        now = Process.read(decoy.pid)
        assert now == started
        assert now.state == "S"
    finally:
        decoy.kill()
        decoy.wait()
