"""The registry in this process, on real sessions."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hitchpost.hub import adoption
from hitchpost.hub.observer import is_late
from hitchpost.hub.registry import Registry
from hitchpost.model import run as runs
from hitchpost.model.record import ALL
from hitchpost.ops.views.listing import listing
from hitchpost.ops.views.observe import observe
from hitchpost.ops.views.session_types import Session as SessionJson
from hitchpost.store.index import INDEX, TICK_NS, Index
from hitchpost.values import replace
from tests.ground import Ground
from tests.hubs import hub_of
from tests.store.made import session
from tests.support import eventually


@pytest.mark.ids("F30", "F41")
def test_adoption_that_takes_too_long_goes_on_and_tells_nobody_of_old_ends(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        ground.begin_sh(f"exit {number}", name=f"s{number}").ended()
    monkeypatch.setattr(adoption, "BUDGET_S", 0.0)
    told: list[dict[str, Any]] = []

    async def scene() -> list[str]:
        registry = Registry(str(ground.home))
        registry.events.subscribe(told.append)
        await registry.open()
        await asyncio.to_thread(eventually, lambda: len(registry.listed()) == 3, what="the rest of the adoption")
        labels = [session.shape["label"] for session in registry.listed()]
        await registry.close()
        return labels

    assert asyncio.run(scene()) == [
        "completed",
        "failed: command exited with code 1",
        "failed: command exited with code 2",
    ]
    assert told == []


def in_the_index(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[SessionJson]:
    """Sessions that have ended, listed and remembered, as long after they were written as the index wants it."""
    for number, state in enumerate((runs.COMPLETED, runs.FAILED, runs.STOPPED, runs.COMPLETED)):
        session(home, state, index=number + 1, name=f"s{number}")
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 2 * TICK_NS)
    return [row.shape for row in listing(str(home), records=ALL, shapes=True)]


@pytest.mark.ids("F41")
def test_sessions_that_have_ended_are_known_from_the_index_and_not_opened(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = in_the_index(ground.home, monkeypatch)
    ids = [row["id"] for row in listed]
    trace = tmp_path / "trace"
    calls = "trace=open,openat,openat2"

    def opened() -> set[str]:
        folder = re.escape(f"{ground.home}/sessions/")
        return set(re.findall(rf'{folder}([a-z0-9]+)/[^"]+", O_', trace.read_text())) & set(ids)

    with hub_of(ground, "strace", "-D", "-f", "-qq", "-o", str(trace), "-e", calls) as hub:
        assert hub.ask("GET", "/api/sessions?all=true") == listed
        words = [row["state"] for row in hub.ask("GET", "/api/agents")]
        assert words == ["stopped", "error", "stopped", "stopped"]
        assert "s1" in ground.hitch("ps").out
        assert opened() == set()
        assert hub.ask("GET", "/api/sessions/s2/story")[-1]["to"] == "stopped"
        assert opened() == {ids[2]}
        hub.ask("POST", f"/api/sessions/{ids[3]}/archive")
        assert [row["record"] for row in hub.ask("GET", "/api/sessions?all=true")] == [*["active"] * 3, "archived"]


@pytest.mark.ids("F41")
def test_what_the_index_does_not_have_is_looked_at_once_and_stored(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = in_the_index(ground.home, monkeypatch)
    (ground.home / INDEX).unlink()
    with hub_of(ground) as hub:
        assert hub.ask("GET", "/api/sessions?all=true") == listed
        eventually(lambda: len(Index(str(ground.home))._load()) == len(listed), what="the index that the hub stores")


@pytest.mark.ids("F30")
def test_what_happens_to_a_session_of_the_index_is_told(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = in_the_index(ground.home, monkeypatch)
    with hub_of(ground) as hub:

        async def scene() -> list[tuple[str, str]]:
            async with hub.ws() as client:
                await asyncio.to_thread(ground.hitch, "restart", "s0")
                await client.until("session.status", rows[0]["id"], status="active")
                await asyncio.to_thread(ground.hitch, "archive", "s1")
                await client.until("session.status", rows[1]["id"], status="stopped")
                await asyncio.to_thread(ground.hitch, "rm", "s2")
                await client.until("session.removed", rows[2]["id"])
                return [(event["type"], event["sessionId"]) for event in client.events]

        told = asyncio.run(scene())
        assert ("session.created", rows[0]["id"]) not in told
        assert not [kind for kind, _ in told if kind == "terminal.exit"]
        assert [row["name"] for row in hub.ask("GET", "/api/sessions")] == ["s0", "s3"]


def test_an_end_is_told_by_its_keepers_word_and_a_look_finds_the_same(ground: Ground) -> None:
    """No look is made meanwhile: whatever holds the files up, the word of who has written them is enough."""
    told: list[dict[str, Any]] = []
    dev = ground.begin_sh("echo hello; read code; exit $code", name="dev")

    def is_told() -> bool:
        return [event["type"] for event in ends()] == ["terminal.exit", "session.status"]

    def ends() -> list[dict[str, Any]]:
        return [event for event in told if event["type"] != "session.updated"]  # it has just printed something

    async def scene() -> None:
        registry, held_up = Registry(str(ground.home)), threading.Event()
        await registry.open()
        session = registry.get(dev.id)
        alive = observe(str(ground.home), dev.id)
        try:
            await asyncio.to_thread(
                eventually, lambda: session.watch is not None and session.watch.end > 0, what="the watch"
            )
            await registry.look_at(dev.id)
            registry.events.subscribe(told.append)
            for _ in range(8):
                registry.observer.threads.submit(held_up.wait)
            await asyncio.to_thread(ground.hitch, "send", "dev", "3")
            await asyncio.to_thread(eventually, is_told, what="the end to be told")
            reported = session.latest
        finally:
            held_up.set()
        await asyncio.to_thread(dev.ended)
        assert is_late(session, alive)
        await registry.look_at(dev.id)
        assert reported is not None
        assert replace(reported.facts, last_alive_at=None) == replace(session.observation.facts, last_alive_at=None)
        await registry.close()

    asyncio.run(scene())
    assert is_told()
    assert ends()[0]["exitCode"] == 3
    assert ends()[1]["session"]["label"] == "failed: command exited with code 3"
