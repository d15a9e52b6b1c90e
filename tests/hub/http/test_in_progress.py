"""What goes on with a credential ends when it holds no more, also where nobody reports that."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hitchpost.hub.http.grants import OWNER, Grant
from hitchpost.hub.http.in_progress import Held, Live
from hitchpost.hub.http.tokenfile import FILE, SCRIPT, Credential, TokenFile, digest
from hitchpost.hub.http.tokens import Tokens, create_bearer
from hitchpost.store import files

CREDENTIAL = Credential("key", SCRIPT, Grant(OWNER))


async def nothing() -> None:
    """There is no file to read again."""


async def is_ended(live: Live, credential: Credential, then: Callable[[], object]) -> bool:
    """Whether work that would never end was ended after ``then``."""
    task = asyncio.current_task()
    assert task is not None
    held = Held(credential, task.cancel)
    asyncio.get_running_loop().call_soon(then)
    async with asyncio.timeout(20):
        await live.serve(held, asyncio.sleep(1000))
    return held.gone


def test_a_file_that_cannot_be_read_is_looked_at_again() -> None:
    answers: list[Credential | OSError] = [OSError("too many open files"), OSError("still"), CREDENTIAL]

    def find(key: str) -> Credential | None:
        answer = answers.pop(0) if answers else None
        if isinstance(answer, OSError):
            raise answer
        return answer

    async def scene() -> bool:
        live = Live(find, nothing, lambda: True)

        def check() -> None:
            live.request_check()
            asyncio.get_running_loop().call_later(3, live.request_check)

        try:
            return await is_ended(live, CREDENTIAL, check)
        finally:
            await live.close()

    assert asyncio.run(scene())


def test_a_cancelled_request_of_a_credential_that_holds_is_cancelled() -> None:
    async def scene() -> None:
        live = Live(lambda key: CREDENTIAL, nothing, lambda: True)
        work = asyncio.create_task(live.serve(Held(CREDENTIAL, lambda: None), asyncio.sleep(1000)))
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(scene())


@pytest.mark.parametrize("watched", [True, False])
def test_a_token_that_is_taken_back_ends_what_goes_on_with_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    """Editors may have used up the watches that a user has: then the file is looked at."""
    if not watched:
        monkeypatch.setattr("hitchpost.hub.changes._libc.inotify_init1", lambda flags: -1)
    token = create_bearer(str(home), "", OWNER)

    async def scene() -> bool:
        tokens = Tokens(str(home))
        tokens.open()
        await tokens.refresh()
        credential = tokens.of_bearer(token)
        assert credential is not None
        try:
            return await is_ended(tokens.live, credential, lambda: TokenFile(str(home)).remove(digest(token)))
        finally:
            await tokens.close()

    assert asyncio.run(scene())


def test_tokens_are_read_once_for_each_change_and_never_in_the_event_loop(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = os.path.join(str(home), FILE)
    readers: list[int] = []

    def watched(call: Callable[..., object]) -> Callable[..., object]:
        def reads(where: object, *args: object, **named: object) -> object:
            if where == path:
                readers.append(threading.get_ident())
            return call(where, *args, **named)

        return reads

    first, second = (create_bearer(str(home), "", OWNER) for _ in range(2))

    async def scene() -> None:
        tokens = Tokens(str(home))
        tokens.open()
        monkeypatch.setattr(files, "read_object", watched(files.read_object))
        monkeypatch.setattr(os, "stat", watched(os.stat))
        try:
            for _ in range(3):
                await tokens.refresh()
                assert tokens.of_bearer(first) is not None
            assert len(readers) == 2, "a stat and a read"
            assert threading.get_ident() not in readers
            readers.clear()
            await asyncio.to_thread(TokenFile(str(home)).remove, digest(first))
            readers.clear()
            await tokens.refresh()
            assert (tokens.of_bearer(first), tokens.of_bearer(second) is not None) == (None, True)
            assert threading.get_ident() not in readers
        finally:
            await tokens.close()

    asyncio.run(scene())


def test_who_asks_while_the_tokens_are_read_waits_for_them(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token, read = create_bearer(str(home), "", OWNER), files.read_object
    may_read = threading.Event()

    def slowly(path: str) -> dict[str, object]:
        may_read.wait(20)
        return read(path)

    async def scene() -> None:
        tokens = Tokens(str(home))
        tokens.open()
        monkeypatch.setattr(files, "read_object", slowly)
        try:
            first, second = (asyncio.create_task(tokens.refresh()) for _ in range(2))
            await asyncio.sleep(0.05)
            assert not second.done()
            may_read.set()
            await second
            assert tokens.of_bearer(token) is not None
            await first
        finally:
            await tokens.close()

    asyncio.run(scene())


def test_a_home_that_is_moved_away_lets_nobody_in_until_it_is_back(home: Path) -> None:
    token, away = create_bearer(str(home), "", OWNER), home.with_name("away")

    async def scene() -> None:
        tokens = Tokens(str(home))
        tokens.open()

        async def is_let_in() -> bool:
            await tokens.refresh()
            return tokens.of_bearer(token) is not None

        try:
            assert await is_let_in()
            os.rename(home, away)
            assert not await is_let_in()
            os.rename(away, home)
            assert await is_let_in()
            assert tokens.cache.is_watched
            await asyncio.to_thread(TokenFile(str(home)).remove, digest(token))
            assert not await is_let_in()
        finally:
            await tokens.close()

    asyncio.run(scene())
