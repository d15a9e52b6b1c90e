"""The wall clock of a machine can be turned, and is. What is ended, started or deleted does not go by it.

The hub's own clock is turned by libfaketime: it reads the time from a file of the test.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import structlog

from hitchpost.hub.core import Hub
from hitchpost.hub.janitor import Clocks, Janitor
from hitchpost.model.policy import Retention
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.retention import prune_when_sure
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.settings import Settings
from hitchpost.store.home import open_home
from hitchpost.system import process
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import LeakWatch, eventually

WATCHED = "retention.json"


class TurnedHub(HubProcess):
    """A hub whose wall clock can be turned."""

    __slots__ = ("clock",)
    clock: Path

    def turn(self, text: str) -> None:
        new = self.clock.with_suffix(".new")
        new.write_text(f"{text}\n")
        new.rename(self.clock)

    def begin(self) -> None:
        library = subprocess.run(
            ["faketime", "-f", "+0", "sh", "-c", "echo $LD_PRELOAD"], capture_output=True, text=True, check=True
        )
        self.start(
            LD_PRELOAD=library.stdout.strip(),
            FAKETIME_TIMESTAMP_FILE=str(self.clock),
            FAKETIME_NO_CACHE="1",
            FAKETIME_DONT_FAKE_MONOTONIC="1",
            DONT_FAKE_MONOTONIC="1",
            NO_FAKE_STAT="1",
        )

    def now(self) -> datetime:
        return datetime.fromisoformat(self.ask("GET", "/api/sessions/export")["exported_at"])


@pytest.fixture
def turned(ground: Ground, leak_watch: LeakWatch) -> Iterator[TurnedHub]:
    made = TurnedHub(ground)
    made.clock = leak_watch.scratch / "clock"
    made.turn("+0")
    yield made
    if made.process is not None:
        made.stop()


def watched(ground: Ground) -> dict[str, Any]:
    path = ground.home / WATCHED
    return json.loads(path.read_bytes()) if path.exists() else {}


def decided(told: Sequence[Mapping[str, Any]]) -> list[str]:
    return [line["why"] for line in told if line["event"] == "restart decided"]


def looked_since(ground: Ground, at_s: float) -> dict[str, Any]:
    return watched(ground) if watched(ground).get("at_s", 0) > at_s else {}


def old_record(ground: Ground, name: str, **fields: Any) -> Truth:
    """A session that was never started, whose record is as ``fields`` say."""
    argv = ("true",)
    made = create(str(ground.home), SessionSpec(str(ground.place), command=argv, name=name), Settings(), actor="test")
    session = Truth(ground.home, made.id)
    path = session.folder / "session.json"
    new = ground.home / "changed.json"
    new.write_text(json.dumps({**json.loads(path.read_bytes()), **fields}))
    new.rename(path)
    return session


def days_ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


@pytest.mark.ids("D-9")
def test_a_clock_that_jumps_two_hours_reaps_nothing(ground: Ground, turned: TurnedHub) -> None:
    idle_for_s = 8.0
    ground.configure(f"reap_idle_minutes = {idle_for_s / 60}\nreap_every_minutes = 0.002")
    turned.begin()
    turned.turn("+2h")
    assert turned.now() - datetime.now(UTC) > timedelta(hours=1)
    began = time.monotonic()
    dev = ground.begin_sh("echo ready; exec sleep 1000", name="dev")
    assert dev.ended(timeout_s=60) == "stopped"
    assert time.monotonic() - began >= idle_for_s
    assert dev.exit()["intent"] == "reaper"


@pytest.mark.ids("F16")
def test_restarts_are_counted_by_a_clock_that_nobody_turns(ground: Ground) -> None:
    """It stands still here: a slow machine would take more time for five restarts than the ten seconds they need."""
    open_home()
    turned = datetime.now(UTC)

    def wall() -> datetime:
        nonlocal turned
        turned += timedelta(hours=2)
        return turned

    async def scene() -> list[str]:
        hub = Hub(str(ground.home))
        await hub.open()
        janitor = Janitor(hub, Settings(restart="on-failure"), Clocks(wall, awake_s=lambda: 0.0))
        with structlog.testing.capture_logs() as told:
            janitor.start()
            dev = await asyncio.to_thread(ground.begin_sh, "exit 1")
            try:
                await asyncio.to_thread(eventually, lambda: len(decided(told)) == 6, 60, "six decisions")
                await asyncio.to_thread(dev.ended, 6)
            finally:
                await janitor.shut_down()
                await hub.close()
        return decided(told)

    first = [f"restart {number} of 5 in 10 s" for number in range(1, 6)]
    assert asyncio.run(scene()) == [*first, "5 restarts and failed again, so the next waits 10 s"]


@pytest.mark.ids("D-10")
def test_a_clock_that_jumps_to_2038_deletes_nothing(ground: Ground, turned: TurnedHub) -> None:
    kept = [old_record(ground, word, record=word) for word in ("suspended", "error")]
    turned.turn("@2038-01-19 03:14:00")
    for _ in range(2):
        before = time.clock_gettime(time.CLOCK_BOOTTIME)
        turned.begin()
        assert turned.now().year == 2038
        seen = eventually(partial(looked_since, ground, before), what="a look")
        assert set(seen["due_s"]) == {session.id for session in kept}
        turned.stop()
        assert all(session.folder.exists() for session in kept)


@pytest.mark.ids("D-10")
def test_a_hub_deletes_what_an_earlier_one_saw_due_a_day_ago(ground: Ground, hub: HubProcess) -> None:
    hub.stop()
    old, new = (old_record(ground, name, record="error", last_active_at=days_ago(2)) for name in ("old", "new"))
    young = old_record(ground, "young", record="error", last_active_at=days_ago(0.9))
    at_s = time.clock_gettime(time.CLOCK_BOOTTIME) - 24 * 3600
    look = {"boot_id": process.boot_id(), "at_s": at_s, "due_s": {old.id: 0.0, young.id: 0.0}, "deleted_s": []}
    (ground.home / WATCHED).write_text(json.dumps({"schema": 1, **look}))
    hub.start()
    rows = eventually(lambda: [row for row in [hub.ask("GET", "/api/sessions?all=true")] if len(row) == 2])
    assert {row["name"] for row in rows[0]} == {"new", "young"}
    assert not old.folder.exists()
    seen = watched(ground)
    assert (set(seen["due_s"]), len(seen["deleted_s"])) == ({old.id, new.id}, 1)


@pytest.mark.ids("D-10")
@pytest.mark.parametrize("text", ["{", "[]", '{"due_s": 1, "deleted_s": 2}', '{"boot_id": "x", "at_s": "soon"}'])
def test_what_earlier_looks_saw_is_believed_only_when_it_makes_sense(ground: Ground, text: str) -> None:
    session = old_record(ground, "old", record="error", last_active_at=days_ago(2))
    (ground.home / WATCHED).write_text(text)
    rules = Retention(sure_after_s=10, most_per_day=2)

    def look(at_s: float) -> list[str]:
        now = datetime.now(UTC)
        done = prune_when_sure(str(ground.home), now, at_s, actor="test", among=[session.id], retention=rules)
        return [one.session for one in done if one.delete]

    assert [look(at_s) for at_s in (0, 9, 10)] == [[], [], [session.id]]


@pytest.mark.ids("D-10")
def test_only_so_many_records_go_in_a_day(ground: Ground) -> None:
    made = [old_record(ground, f"old{number}", record="error", last_active_at=days_ago(2)) for number in range(3)]
    rules = Retention(sure_after_s=10, most_per_day=2)
    for at_s, left in ((0, 3), (10, 1), (86409, 1), (86410, 0)):
        there = [session.id for session in made if session.folder.exists()]
        prune_when_sure(str(ground.home), datetime.now(UTC), at_s, actor="test", among=there, retention=rules)
        assert sum(session.folder.exists() for session in made) == left


@pytest.mark.ids("D-10")
def test_a_disk_that_refuses_once_does_not_end_retention(ground: Ground) -> None:
    session = old_record(ground, "old", record="error", last_active_at=days_ago(2))
    (ground.home / WATCHED).mkdir()

    async def scene() -> None:
        hub = Hub(str(ground.home))
        await hub.open()
        janitor = Janitor(hub, Settings(), prune_every_s=0.01)
        janitor.start()
        try:
            (problem,) = await asyncio.to_thread(eventually, lambda: hub.problems)
            assert problem.startswith("deleting old records failed and will be tried again: IsADirectoryError")
            (ground.home / WATCHED).rmdir()
            await asyncio.to_thread(eventually, lambda: session.id in watched(ground).get("due_s", {}))
            await asyncio.to_thread(eventually, lambda: not hub.problems)
        finally:
            await janitor.shut_down()
            await hub.close()

    asyncio.run(scene())
