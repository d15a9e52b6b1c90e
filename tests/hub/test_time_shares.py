"""Shares of the hub's time: what is done for somebody is paid, and who has used too much waits."""

from __future__ import annotations

import asyncio
from time import perf_counter, thread_time
from typing import Any

import pytest

from hitchpost.hub.pools import LOOKS, Pools
from hitchpost.hub.time_shares import PAYER, Share


def compute(seconds: float) -> str:
    ends = thread_time() + seconds
    while thread_time() < ends:
        pass
    return "done"


def begun(part: float, above: Share | None = None) -> Share:
    """A share of which nothing is left over from before."""
    share = Share(part, 0.0, above)
    share.wait_s(perf_counter())
    return share


def used_s(share: Share) -> float:
    """What is still to be made up for."""
    return share.wait_s(perf_counter()) * share.part


async def work() -> str:
    compute(0.02)
    await asyncio.sleep(0.05)
    return compute(0.02)


def test_each_step_of_the_work_is_paid_and_the_time_between_them_is_not() -> None:
    async def scene() -> None:
        above = begun(0.001)
        share = begun(0.001, above)
        assert await share.pay(work()) == "done"
        assert used_s(share) > 0.039
        assert used_s(above) > 0.039
        assert PAYER.get() is None

    asyncio.run(scene())


def test_what_waits_for_nothing_but_time_costs_little() -> None:
    async def scene() -> float:
        share = begun(0.001)
        began = thread_time()
        await share.pay(asyncio.sleep(0.3))
        assert thread_time() - began < 0.2
        return used_s(share)

    assert asyncio.run(scene()) < 0.2


def test_what_a_thread_computes_for_the_work_is_paid_too() -> None:
    async def scene() -> None:
        pools, share = Pools(), begun(0.001)
        try:
            assert await pools.do(LOOKS, compute, 0.05) == "done"
            assert used_s(share) == 0.0
            assert await share.pay(pools.do(LOOKS, compute, 0.05)) == "done"
            await asyncio.sleep(0)
            assert used_s(share) > 0.049
        finally:
            pools.close()

    asyncio.run(scene())


def test_errors_and_cancellations_go_both_ways() -> None:
    seen: list[str] = []

    async def fails() -> None:
        await asyncio.sleep(0)
        raise KeyError("why")

    async def is_cancelled() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("told")
            raise

    async def scene() -> None:
        share = Share(0.5, 1.0)
        with pytest.raises(KeyError, match="why"):
            await share.pay(fails())
        task: asyncio.Task[Any] = asyncio.create_task(share.pay(is_cancelled()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert seen == ["told"]


def test_who_has_used_too_much_waits_and_is_served_in_the_order_of_coming() -> None:
    order: list[int] = []

    async def comes(share: Share, number: int) -> None:
        await share.turn()
        order.append(number)
        share.use(0.01)

    async def scene() -> float:
        share = begun(0.1)
        share.use(0.01)
        began = perf_counter()
        await asyncio.gather(*(comes(share, number) for number in range(3)))
        return perf_counter() - began

    assert asyncio.run(scene()) > 0.29
    assert order == [0, 1, 2]
