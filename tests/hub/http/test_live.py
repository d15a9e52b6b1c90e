"""What goes on for somebody ends when they are not known any more, also where nobody tells of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from hitchpost.hub.http.grants import OWNER, Grant
from hitchpost.hub.http.live import Held, Live
from hitchpost.hub.http.tokenfile import SCRIPT, Credential

KNOWN = Credential("key", SCRIPT, Grant(OWNER))


async def ended(live: Live, home: Path, then: Callable[[Live], None]) -> bool:
    """Whether work that would never end was ended after ``then``."""
    task = asyncio.current_task()
    assert task is not None
    held = Held(KNOWN, task.cancel)
    live.open(str(home))
    try:
        asyncio.get_running_loop().call_soon(then, live)
        async with asyncio.timeout(20):
            await live.serve(held, asyncio.sleep(1000))
    finally:
        live.close()
    return held.gone


def test_a_file_that_cannot_be_read_is_looked_at_again(home: Path) -> None:
    answers: list[Credential | OSError] = [OSError("too many open files"), OSError("still"), KNOWN]

    def find(key: str) -> Credential | None:
        answer = answers.pop(0) if answers else None
        if isinstance(answer, OSError):
            raise answer
        return answer

    def again(live: Live) -> None:
        live.check()
        asyncio.get_running_loop().call_later(3, live.check)

    assert asyncio.run(ended(Live(find), home, again))


def test_where_the_kernel_does_not_tell_of_changes_the_file_is_looked_at(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Editors may have used up the watches that a user has."""
    monkeypatch.setattr("hitchpost.hub.changes._libc.inotify_init1", lambda flags: -1)
    credential = [KNOWN]

    def forget(live: Live) -> None:
        credential.clear()

    assert asyncio.run(ended(Live(lambda key: credential[0] if credential else None), home, forget))


def test_a_cancelled_request_of_somebody_who_is_known_is_cancelled(home: Path) -> None:
    async def scene() -> None:
        work = asyncio.create_task(Live(lambda key: KNOWN).serve(Held(KNOWN, lambda: None), asyncio.sleep(1000)))
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(scene())
