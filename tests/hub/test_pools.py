"""One session, or one kind of work, cannot keep the others waiting."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from hitchpost.hub.pools import AT_ONCE, ENDS, GIT, GITS_AT_ONCE, LONG_S, LOOKS, SIZES, STARTS, Pools

PATIENCE_S = 60


async def scene_of(pools: Pools, hold: threading.Event, pool: str, sessions: list[str]) -> list[asyncio.Task[bool]]:
    """One operation for each name, all of them held; once they have had time to begin."""
    tasks = [asyncio.create_task(pools.do_for(session, pool, hold.wait, PATIENCE_S)) for session in sessions]
    await asyncio.sleep(0)
    return tasks


@pytest.mark.parametrize("pool", [STARTS, ENDS, GIT])
def test_one_session_takes_few_threads_however_much_is_asked_of_it(pool: str) -> None:
    async def scene() -> None:
        pools, hold = Pools(), threading.Event()
        try:
            held = await scene_of(pools, hold, pool, ["slow"] * 10 * SIZES[pool])
            async with asyncio.timeout(PATIENCE_S):
                assert await pools.do_for("other", pool, lambda: "done") == "done"
            assert not any(task.done() for task in held)
            hold.set()
            assert all(await asyncio.gather(*held))
        finally:
            hold.set()
            pools.close()

    asyncio.run(scene())


@pytest.mark.parametrize(("full", "free"), [(STARTS, ENDS), (STARTS, LOOKS), (ENDS, STARTS), (LOOKS, ENDS)])
def test_one_kind_of_work_does_not_wait_for_another(full: str, free: str) -> None:
    async def scene() -> None:
        pools, hold = Pools(), threading.Event()
        try:
            held = await scene_of(pools, hold, full, [f"session {number}" for number in range(2 * SIZES[full])])
            async with asyncio.timeout(PATIENCE_S):
                assert await pools.do_for("other", free, lambda: "done") == "done"
            hold.set()
            assert all(await asyncio.gather(*held))
        finally:
            hold.set()
            pools.close()

    asyncio.run(scene())


def test_turns_are_forgotten_when_nobody_waits_for_one() -> None:
    async def scene() -> None:
        pools = Pools()
        await asyncio.gather(*(pools.do_for("one", STARTS, int) for _ in range(3 * AT_ONCE)))
        assert (pools._turns, pools._waiting) == ({}, {})
        pools.close()

    asyncio.run(scene())


@pytest.mark.ids("S12")
def test_sessions_that_fill_the_places_for_git_keep_another_waiting_for_a_moment_only() -> None:
    async def scene() -> None:
        pools, hold = Pools(), threading.Event()
        try:
            hostile = [f"hostile {number}" for number in range(GITS_AT_ONCE + 2)] * AT_ONCE
            held = await scene_of(pools, hold, GIT, hostile)
            async with asyncio.timeout(PATIENCE_S / 2):
                assert await pools.do_for("other", GIT, lambda: "done") == "done"
            assert not any(task.done() for task in held)
            hold.set()
            assert all(await asyncio.gather(*held))
        finally:
            hold.set()
            pools.close()

    asyncio.run(scene())


def test_only_so_many_gits_work_at_once_while_they_are_short() -> None:
    async def scene() -> int:
        pools, now, most = Pools(), 0, 0

        def work() -> None:
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(LONG_S / 20)
            with lock:
                now -= 1

        lock = threading.Lock()
        await asyncio.gather(*(pools.do_for(f"session {number}", GIT, work) for number in range(12)))
        pools.close()
        return most

    assert asyncio.run(scene()) == GITS_AT_ONCE


def test_an_error_of_a_git_is_raised_as_it_is() -> None:
    async def scene() -> None:
        pools = Pools()
        try:
            with pytest.raises(ZeroDivisionError):
                await pools.do_for("one", GIT, lambda: 1 // 0)
        finally:
            pools.close()

    asyncio.run(scene())
