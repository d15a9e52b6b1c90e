"""Looks at an agent's screen while others have finished with it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.terminal import output
from hitchpost.watcher.screen import LogScreen


@pytest.fixture
def screen(tmp_path: Path) -> LogScreen:
    folder = tmp_path / wire.OUTPUT
    folder.mkdir()
    (folder / wire.segment_name(0)).write_bytes(b"hello")
    return LogScreen(str(tmp_path))


@pytest.mark.parametrize("leaves", [False, True], ids=["waited for", "nobody waits for it"])
def test_a_look_that_goes_on_while_the_screen_is_given_back_sees_it_all_the_same(
    screen: LogScreen, leaves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, closed, bounds = threading.Event(), threading.Event(), output.bounds

    def slow(folder: str) -> tuple[int, int]:
        looking.set()
        assert closed.wait(60)
        return bounds(folder)

    async def look() -> None:
        first = asyncio.create_task(screen.text())
        await asyncio.to_thread(looking.wait, 60)
        screen.close()
        if leaves:
            first.cancel()
        second = asyncio.create_task(screen.text())
        closed.set()
        if not leaves:
            assert await first == "hello"
        assert await second == "hello"
        assert first.cancelled() == leaves
        screen.close()
        assert (screen._screen, screen._emulators) == (None, None)

    monkeypatch.setattr(output, "bounds", slow)
    asyncio.run(look())
