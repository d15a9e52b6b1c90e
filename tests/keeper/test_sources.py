"""A keeper with a source that is thirty lines: what it writes down and tells, without a process or a terminal."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from hitchpost import runspec, wire
from hitchpost.keeper import keeper as keepers
from hitchpost.keeper import sources
from hitchpost.keeper.effects import EFFECTS
from hitchpost.keeper.journal import MOST_TELLINGS
from hitchpost.keeper.keeper import Keeper
from hitchpost.keeper.tree import Tree
from hitchpost.model import machine
from hitchpost.runspec import RunSpec
from hitchpost.store import story
from hitchpost.store.session import Session
from hitchpost.system.cgroup import ControlGroups
from tests.support import eventually


class Nobody(Tree):
    """No process at all."""

    def pids(self) -> list[int]:
        return []


class Scripted:
    """An agent that says and does what a test wants."""

    tier, usage, answers_queries, pid = "scripted", None, False, 0

    def __init__(self, keeper: Keeper) -> None:
        self.keeper, self.tree = keeper, Nobody(ControlGroups([]))
        self.wait_status: int | None = None
        self.typed, self.input_fd = os.pipe()
        self.sizes: list[tuple[int, int]] = []

    def start(self) -> dict[str, object]:
        return {"place": "nowhere"}

    def listen(self) -> None: ...
    def want_room(self, wanted: bool) -> None: ...
    def reap(self) -> None: ...
    def release(self) -> None: ...
    def reads_lines(self) -> bool:
        return False

    def unread_bytes(self) -> int:
        return 0

    def set_size(self, cols: int, rows: int) -> bool:
        self.sizes.append((cols, rows))
        return True

    def why_lost(self) -> str | None:
        return None

    def oom_kills(self) -> int:
        return 0

    def end(self, wait_status: int) -> None:
        self.wait_status = wait_status
        self.keeper.agent_exited()
        self.keeper.output_closed()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    session = tmp_path / "home" / "sessions" / "abcdefghijkl"
    (session / "runs" / "1").mkdir(parents=True)
    stored = Session(str(session), actor="test")
    stored.create("abcdefghijkl", "")
    stored.transition("starting", run=1)
    return session


@pytest.fixture
def source(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    monkeypatch.setattr(keepers, "open_source", Scripted)
    lock = os.open(folder / "runs" / "1" / "keeper.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    where = os.stat(folder)
    spec = RunSpec("abcdefghijkl", str(folder), 1, (b"x",), {}, str(folder), where.st_dev, where.st_ino, lock)
    keeper = Keeper(spec, str(folder / "runs" / "1"))
    keeper.prepare()
    keeper.begin(keeper.source.start())
    made = cast(Scripted, keeper.source)
    yield made
    if not keeper.done:
        made.end(0)
    keeper.poll.close()
    for fd in (lock, made.typed, made.input_fd):
        os.close(fd)


def state(folder: Path) -> str:
    return str(json.loads((folder / "state.json").read_text())["state"])


def test_output_goes_to_the_log_and_the_end_to_the_disk(folder: Path, source: Scripted) -> None:
    assert state(folder) == "running"
    source.keeper.on_output(b"hello\n")
    source.end(3 << 8)
    run = folder / "runs" / "1"
    assert state(folder) == "failed"
    assert json.loads((run / wire.EXIT).read_text())["code"] == 3
    assert json.loads((run / wire.RUN).read_text())["place"] == "nowhere"
    assert (run / wire.OUTPUT / wire.segment_name(0)).read_bytes() == b"hello\n"
    assert source.keeper.done


def test_a_stop_is_written_down_and_the_end_is_one(folder: Path, source: Scripted) -> None:
    source.keeper.stop("user", "enough", 5.0)
    assert state(folder) == "stopping"
    assert json.loads((folder / "runs" / "1" / wire.INTENT).read_text())["reason"] == "enough"
    source.end(0)
    assert state(folder) == "stopped"


def test_what_is_typed_and_every_new_size_reach_the_source(source: Scripted) -> None:
    assert source.keeper.type(b"ls\r")
    assert os.read(source.typed, 100) == b"ls\r"
    source.keeper.resize(100, 30)
    source.keeper.resize(100, 30)
    assert source.sizes == [(100, 30)]


def test_a_deadline_is_kept_by_a_timer(source: Scripted) -> None:
    source.keeper.stop("user", "", 5.0)
    assert 0 < source.keeper.timers.next_in_s(time.monotonic()) <= 5.0
    assert "deadline" in source.keeper.timers


def test_every_effect_is_carried_out() -> None:
    kinds = {kind for kind in vars(machine).values() if isinstance(kind, type) and issubclass(kind, machine.Effect)}
    assert set(EFFECTS) == kinds - {machine.Effect}


def test_every_kind_of_source_has_its_module() -> None:
    assert set(sources.MODULES) == set(runspec.SOURCES.values())
    folder = Path(sources.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} >= set(sources.MODULES.values())


def test_what_an_agent_came_to_is_in_the_story_even_if_it_changed_its_mind_too_often(
    folder: Path, source: Scripted
) -> None:
    keeper = source.keeper
    for number in range(MOST_TELLINGS + 2):
        keeper.on_output(b"\x1b]7501;state=%s\a" % (b"working" if number % 2 else b"idle"))
        keeper.report.hurry()

    def told() -> list[object]:
        now = time.monotonic()
        for call in keeper.timers.due(now):
            call(now)
        return [line["state"] for line in story.read(str(folder)) if line["event"] == "attention"]

    before = told()
    keeper.on_output(b"\x1b]7501;state=done\a")
    assert len(before) == MOST_TELLINGS
    eventually(lambda: told()[-1] == "done", what="the last state in the story")
    assert len(told()) == MOST_TELLINGS + 1
