"""Sessions made for the tests of the state package, without starting anything; and whole folders as values."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hitchpost.model import run as runs
from hitchpost.store.home import new_id
from hitchpost.store.locks import SessionLock
from hitchpost.store.records import Record
from hitchpost.store.session import Session
from hitchpost.values import asdict
from tests.support import TEMP_PREFIX, end_home

WAY = {
    runs.CREATED: (),
    runs.STARTING: (runs.STARTING,),
    runs.RUNNING: (runs.STARTING, runs.RUNNING),
    runs.STOPPING: (runs.STARTING, runs.RUNNING, runs.STOPPING),
    runs.STOPPED: (runs.STARTING, runs.RUNNING, runs.STOPPING, runs.STOPPED),
    runs.FAILED: (runs.STARTING, runs.FAILED),
    runs.COMPLETED: (runs.STARTING, runs.RUNNING, runs.COMPLETED),
    runs.ORPHANED: (runs.STARTING, runs.ORPHANED),
}
"""How a new run gets into each state."""


def record(session: str, index: int = 1, name: str = "dev", folder: str = "/") -> Record:
    at = "2026-01-02T03:04:05.000000Z"
    place = Path(folder).stat()
    return Record(
        id=session,
        index=index,
        name=name,
        agent="sh",
        argv=("sh", "-c", "read line"),
        folder=folder,
        folder_dev=place.st_dev,
        folder_ino=place.st_ino,
        created_at=at,
        record_changed_at=at,
        last_active_at=at,
    )


def session(home: Path, state: str = runs.CREATED, *, index: int = 1, name: str = "dev", folder: str = "/") -> Path:
    """A session folder, made as ``hitch run`` makes it, with run 1 brought to ``state``."""
    made = record(new_id(), index, name, folder)
    place = home / "sessions" / made.id
    place.mkdir(parents=True, mode=0o700)
    stored = Session(str(place), actor="test")
    with SessionLock(str(place)):
        stored.create(made.id, "", record=asdict(made))
        Session(str(place), actor="test").save(made)
    for step in WAY[state]:
        stored.transition(step, run=1, reason="made")
    return place


@contextmanager
def in_memory(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder in memory instead of ``home``, where there is such a place: a disk takes long for many files."""
    place = Path("/dev/shm")
    if not os.access(place, os.W_OK):
        yield home
        return
    folder = Path(tempfile.mkdtemp(prefix=TEMP_PREFIX, dir=place))
    monkeypatch.setenv("HITCHPOST_HOME", str(folder))
    try:
        yield folder
    finally:
        end_home(folder)
        shutil.rmtree(folder)


def tree(folder: Path, *left_out: str) -> dict[str, bytes]:
    """Every file and folder below ``folder`` with its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        for path in sorted(folder.rglob("*"))
        if path.name not in left_out
    }


def python(program: str, *arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program in another Python process, to its end."""
    argv = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, check=check, timeout=60)


def started(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a program in another Python process; it has said its first line when this returns."""
    argv = [sys.executable, "-c", program, *map(str, arguments)]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    process.stdout.readline()
    return process


def finish(process: subprocess.Popen[str]) -> None:
    """Kill, wait, and close the pipes."""
    process.kill()
    process.communicate()
