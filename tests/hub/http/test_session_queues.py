"""Work for a session is done in its order; no session waits for another."""

from __future__ import annotations

import asyncio
from functools import partial

from structlog.testing import capture_logs

from hitchpost.hub.http.session_queues import SessionQueues
from hitchpost.hub.tasks import Tasks


def test_a_lane_that_hangs_holds_up_no_other_and_keeps_its_order() -> None:
    done: list[str] = []

    async def scene() -> None:
        tasks, go_on = Tasks("test"), asyncio.Event()
        queues = SessionQueues(tasks, most=10)

        async def work(name: str, wait: bool = False) -> None:
            if wait:
                await go_on.wait()
            done.append(name)

        queues.put("a", partial(work, "a1", wait=True))
        queues.put("a", partial(work, "a2"))
        queues.put("b", partial(work, "b1"))
        await asyncio.sleep(0.01)
        assert (done, queues.is_busy("a"), queues.is_busy("b")) == (["b1"], True, False)
        go_on.set()
        await asyncio.sleep(0.01)
        assert (done, queues.is_busy("a")) == (["b1", "a1", "a2"], False)
        await tasks.close()

    asyncio.run(scene())


def test_a_full_lane_takes_no_more() -> None:
    async def scene() -> list[bool]:
        tasks = Tasks("test")
        queues = SessionQueues(tasks, most=2)
        taken = [queues.put("a", partial(asyncio.sleep, 1000)) for _ in range(4)]
        await tasks.close()
        return taken

    assert asyncio.run(scene()) == [True, True, False, False]


def test_work_that_fails_is_logged_and_the_next_is_done() -> None:
    done: list[str] = []

    async def fail() -> None:
        raise KeyError("a mistake")

    async def work() -> None:
        done.append("work")

    async def scene() -> None:
        tasks = Tasks("test")
        queues = SessionQueues(tasks, most=2)
        queues.put("a", fail)
        queues.put("a", work)
        await asyncio.sleep(0.01)
        await tasks.close()

    with capture_logs() as lines:
        asyncio.run(scene())
    assert done == ["work"]
    assert [line["event"] for line in lines] == ["a message failed"]
