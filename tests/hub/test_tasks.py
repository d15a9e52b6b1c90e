"""Background work has an owner: no task is lost, and no error goes unseen."""

from __future__ import annotations

import asyncio
import gc

from structlog.testing import capture_logs

from hitchpost.hub.tasks import Tasks


def test_an_error_is_logged_with_its_owner_and_ends_no_other_task() -> None:
    async def fail() -> None:
        raise OSError("no space left on device")

    async def scene() -> None:
        tasks = Tasks("looks")
        other = tasks.start(asyncio.sleep(1000))
        failed = tasks.start(fail())
        await asyncio.wait([failed])
        await asyncio.sleep(0)
        assert (len(tasks), other.done()) == (1, False)
        await tasks.close()

    with capture_logs() as lines:
        asyncio.run(scene())
    (line,) = lines
    assert (line["event"], line["owner"], line["log_level"]) == ("background work failed", "looks", "error")
    assert "no space left on device" in line["error"]


def test_a_task_that_nobody_else_refers_to_is_not_collected() -> None:
    async def scene() -> bool:
        tasks, done = Tasks("test"), asyncio.Event()

        async def work() -> None:
            await asyncio.get_running_loop().create_task(asyncio.sleep(0.01))
            done.set()

        tasks.start(work())
        await asyncio.sleep(0)
        gc.collect()
        async with asyncio.timeout(20):
            await done.wait()
        return True

    assert asyncio.run(scene())


def test_closing_cancels_every_task_and_waits_for_what_it_still_does() -> None:
    ends: list[str] = []

    async def work(tasks: Tasks) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(0.01)
            ends.append("ended")

    async def scene() -> None:
        tasks = Tasks("test")
        for _ in range(3):
            tasks.start(work(tasks))
        await asyncio.sleep(0)
        await tasks.close()
        assert (ends, len(tasks)) == (["ended"] * 3, 0)

    asyncio.run(scene())


def test_a_task_may_close_its_owner() -> None:
    async def scene() -> int:
        tasks = Tasks("test")
        tasks.start(asyncio.sleep(1000))
        closing = tasks.start(tasks.close())
        async with asyncio.timeout(20):
            await asyncio.wait([closing])
        await asyncio.sleep(0)
        return len(tasks)

    assert asyncio.run(scene()) == 0
