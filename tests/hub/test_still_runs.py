"""What a listing costs where nothing has happened, and that it is true all the same: on pods' folders, without pods."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.hub.events import Event
from hitchpost.hub.registry import Registry
from hitchpost.model import pods
from hitchpost.model import run as runs
from hitchpost.model.facts import Pod
from hitchpost.model.status import status
from hitchpost.ops.views.observe import Observation, as_it_was
from hitchpost.runtimes.pod_file import write_pod
from hitchpost.store import records
from hitchpost.store.locks import SessionLock
from hitchpost.store.session import Session
from hitchpost.values import replace
from tests.store.made import session

HERE = Pod("hitch-pod", "uid", run=1, phase=pods.RUNNING, node="n1")
SEGMENT = "00000000000000000000.log"
LONG_AGO_S = 1000.0


class Counted:
    """A function of ours, and how often it was called."""

    def __init__(self, call: Callable[..., object]) -> None:
        self.call, self.calls = call, 0

    def __call__(self, *args: object, **named: object) -> object:
        self.calls += 1
        return self.call(*args, **named)

    def taken(self) -> int:
        """How often, since this was last asked."""
        calls, self.calls = self.calls, 0
        return calls


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted(status)
    monkeypatch.setattr("hitchpost.hub.session.status", counted)
    return counted


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted(as_it_was)
    monkeypatch.setattr("hitchpost.hub.observer.as_it_was", counted)
    return counted


def in_pod(home: Path, number: int) -> Path:
    """A session that runs in a pod and was silent for a while, as a hub has it."""
    place = session(home, runs.RUNNING, index=number, name=f"s{number}")
    with SessionLock(str(place)):
        stored = records.read(str(place))
        Session(str(place), actor="test").save(replace(stored, runtime="pod"))
    write_pod(str(place), HERE)
    output = place / "runs" / "1" / "output"
    output.mkdir(parents=True)
    prints(place, "ready", LONG_AGO_S)
    return place


def prints(place: Path, text: str, ago_s: float = 0.0) -> None:
    path = place / "runs" / "1" / "output" / SEGMENT
    with path.open("a") as file:
        file.write(text)
    os.utime(path, (time.time() - ago_s,) * 2)


def with_registry(home: Path, scene: Callable[[Registry], Awaitable[None]]) -> None:
    async def all_of_it() -> None:
        registry = Registry(str(home))
        registry.observer.follows = lambda seen: False
        await registry.open()
        try:
            await scene(registry)
        finally:
            await registry.close()

    asyncio.run(all_of_it())


def label(registry: Registry, place: Path) -> str:
    return registry.get(place.name).shape["label"]


def last_output(registry: Registry, place: Path) -> datetime:
    told = registry.get(place.name).shape["last_activity_at"]
    assert told is not None
    return datetime.fromisoformat(told)


def test_where_nothing_happens_nothing_is_looked_at_and_no_words_are_made(
    home: Path, derived: Counted, looked: Counted
) -> None:
    places = [in_pod(home, number) for number in range(1, 6)]

    async def scene(registry: Registry) -> None:
        await registry.refresh()
        labels = [label(registry, place) for place in places]
        assert all(text.startswith("running (idle 16m ") for text in labels), labels
        derived.taken(), looked.taken()
        for _ in range(10):
            await registry.refresh()
        assert (derived.taken(), looked.taken()) == (0, 0)
        prints(places[0], "more")
        await registry.refresh()
        assert (derived.taken(), looked.taken()) == (1, 1)

    with_registry(home, scene)


def test_the_time_that_labels_count_goes_on_without_new_words(home: Path, derived: Counted) -> None:
    place = in_pod(home, 1)

    async def scene(registry: Registry) -> None:
        await registry.refresh()
        derived.taken()
        before = label(registry, place)
        async with asyncio.timeout(60):
            while label(registry, place) == before:
                await registry.refresh()
        assert label(registry, place).startswith("running (idle 16m ")
        assert registry.get(place.name).line.endswith(label(registry, place))
        assert f'"label": "{label(registry, place)}"' in registry.get(place.name).text
        assert derived.taken() == 0

    with_registry(home, scene)


def test_the_end_of_a_limit_is_told_with_its_day_once_that_is_over(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    report = {"state": "error", "kind": "limit", "source": "hooks", "at": noon.isoformat(), "ends_at": noon.isoformat()}
    place = in_pod(home, 1)
    (place / "runs" / "1" / wire.ATTENTION).write_text(json.dumps(report))

    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return noon + timedelta(days=2)

    async def scene(registry: Registry) -> None:
        told: list[str] = []
        await registry.refresh()
        monkeypatch.setattr(registry.announcements, "reworded", lambda session: told.append(session.shape["detail"]))
        assert registry.get(place.name).shape["detail"] == "until 12:00"
        monkeypatch.setattr("hitchpost.hub.observer.datetime", Later)
        await registry.refresh()
        assert told == [f"until {noon:%b %d, %H:%M}"]

    with_registry(home, scene)


def test_output_is_told_by_the_next_listing(home: Path) -> None:
    place = in_pod(home, 1)

    async def scene(registry: Registry) -> None:
        for number in range(20):
            await registry.refresh()
            prints(place, f"line {number}", LONG_AGO_S - number)
            await registry.refresh()
            silent_s = (datetime.now(UTC) - last_output(registry, place)).total_seconds()
            assert silent_s == pytest.approx(LONG_AGO_S - number, abs=0.5)
        later = place / "runs" / "1" / "output" / "00000000000000001000.log"
        later.write_text("the next segment")
        await registry.refresh()
        assert (datetime.now(UTC) - last_output(registry, place)).total_seconds() < 5
        assert label(registry, place) == "running"

    with_registry(home, scene)


def test_an_agent_that_falls_silent_is_not_said_to_be_busy(home: Path) -> None:
    place, now_s = in_pod(home, 1), time.time()
    prints(place, "more", 2.0)
    moments_us = (int((now_s - ago_s) * 1_000_000) for ago_s in (LONG_AGO_S, 2.0))
    times = b"".join(wire.time_record(b"o", at_us, offset) for offset, at_us in enumerate(moments_us, 1))
    (place / "runs" / "1" / "output" / wire.TIMES).write_bytes(times)

    async def scene(registry: Registry) -> None:
        await registry.refresh()
        await registry.refresh()
        known = registry.get(place.name)
        assert (known.shape["headline"], known.observation.facts.busy_since is None) == ("Working", False)
        async with asyncio.timeout(60):
            while known.observation.facts.busy_since is not None:
                await registry.refresh()
        assert known.shape["headline"] == "Quiet"
        assert 3.0 <= (datetime.now(UTC) - last_output(registry, place)).total_seconds() < 5.0

    with_registry(home, scene)


def test_what_was_quiet_and_is_quiet_again_is_told_with_its_new_age(home: Path) -> None:
    place = in_pod(home, 1)

    async def scene(registry: Registry) -> None:
        prints(place, "one line", 20.0)
        await registry.refresh()
        before = registry.get(place.name).shape
        told: list[Event] = []
        registry.events.subscribe(told.append)
        prints(place, "one more", 10.0)
        await registry.refresh()
        assert [event["type"] for event in told] == ["session.updated"]
        after = told[0]["session"]
        assert (before["headline"], after["headline"], after["since"] > before["since"]) == ("Quiet", "Quiet", True)

    with_registry(home, scene)


def test_what_is_told_of_a_pod_is_in_the_next_listing(home: Path, looked: Counted) -> None:
    place = in_pod(home, 1)

    async def scene(registry: Registry) -> None:
        await registry.refresh()
        await registry.refresh()
        looked.taken()
        write_pod(str(place), replace(HERE, unreachable_since=datetime.now(UTC)))
        await registry.refresh()
        assert label(registry, place).startswith("unknown (")
        write_pod(str(place), HERE)
        await registry.refresh()
        assert label(registry, place).startswith("running (idle 16m ")

    with_registry(home, scene)


def test_a_folder_of_output_that_comes_back_is_looked_at_again(home: Path) -> None:
    place = in_pod(home, 1)

    async def scene(registry: Registry) -> None:
        await registry.refresh()
        shutil.rmtree(place / "runs" / "1" / "output")
        await registry.refresh()
        (place / "runs" / "1" / "output").mkdir()
        await registry.refresh()
        for ago_s in (500.0, 400.0):
            prints(place, "again", ago_s)
            await registry.refresh()
            silent_s = (datetime.now(UTC) - last_output(registry, place)).total_seconds()
            assert silent_s == pytest.approx(ago_s, abs=2)

    with_registry(home, scene)


@pytest.mark.parametrize("refused", ["sessions", "outputs"])
def test_what_the_kernel_does_not_watch_is_looked_at_each_time(home: Path, looked: Counted, refused: str) -> None:
    place = in_pod(home, 1)

    async def scene(registry: Registry) -> None:
        await registry.refresh()
        changes = registry._changes if refused == "sessions" else registry.observer._still._outputs
        changes.unwatched[str(place)] = "fs.inotify.max_user_watches"
        if refused == "outputs":
            changes.close()
            registry.observer._still.forget(registry.get(place.name).observation)
        looked.taken()
        for _ in range(3):
            await registry.refresh()
        assert looked.taken() == 3

    with_registry(home, scene)


def test_lost_reports_count_as_changes(home: Path, looked: Counted) -> None:
    place = in_pod(home, 1)

    async def scene(registry: Registry) -> None:
        await registry.refresh()
        looked.taken()
        registry.observer._still._outputs.on_change("", "")
        await registry.refresh()
        assert (looked.taken(), label(registry, place)[:13]) == (1, "running (idle")

    with_registry(home, scene)


def test_a_run_that_is_over_is_watched_no_more(home: Path) -> None:
    place = in_pod(home, 1)

    async def scene(registry: Registry) -> None:
        await registry.refresh()
        outputs = registry.observer._still._outputs
        assert outputs.watches(f"{place}/runs/1/output")
        Session(str(place), actor="test").transition(runs.COMPLETED, run=1, reason="made")
        write_pod(str(place), replace(HERE, phase=pods.SUCCEEDED, ended=True))
        await registry.refresh()
        assert registry.get(place.name).shape["state"] == "completed"
        assert not outputs.watches(f"{place}/runs/1/output")

    with_registry(home, scene)


def test_a_run_that_ends_while_it_is_looked_at_is_watched_no_more(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = in_pod(home, 1)

    async def scene(registry: Registry) -> None:
        still, loop = registry.observer._still, asyncio.get_running_loop()
        watch = still.watch

        def watch_late(seen: Observation) -> None:
            Session(str(place), actor="test").transition(runs.COMPLETED, run=1, reason="made")
            asyncio.run_coroutine_threadsafe(registry.look_at(place.name), loop).result(60)
            watch(seen)

        monkeypatch.setattr(still, "watch", watch_late)
        await registry.refresh()
        assert registry.get(place.name).shape["state"] == "completed"
        assert (still._outputs._watches, still._seen) == ({}, {})

    with_registry(home, scene)


def test_of_a_session_that_is_removed_nothing_is_kept(home: Path) -> None:
    place = in_pod(home, 1)

    async def scene(registry: Registry) -> None:
        await registry.refresh()
        shutil.rmtree(place)
        await registry.look_at(place.name)
        still = registry.observer._still
        assert (still._outputs._watches, still._outputs._folders, still._seen) == ({}, {}, {})

    with_registry(home, scene)
