"""When an agent's title and screen are read."""

from __future__ import annotations

import asyncio

from hitchpost.watcher.looks import Looks


class Agent:
    """Counts looks, and lets each one end when it is told to."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.reads: list[bool] = []
        self.rests = 0
        self.rested = asyncio.Event()
        self.go_on = asyncio.Semaphore(0)
        self.looks = Looks(tasks.create_task, self.read, self.rest)

    async def read(self, screen_too: bool) -> None:
        self.reads.append(screen_too)
        await self.go_on.acquire()

    def rest(self) -> None:
        self.rests += 1
        self.rested.set()


def test_looks_that_are_asked_for_during_a_look_become_one():
    async def look() -> Agent:
        async with asyncio.TaskGroup() as tasks:
            agent = Agent(tasks)
            agent.looks.ask(screen=False)
            await asyncio.sleep(0)
            for screen in (False, True, False):
                agent.looks.ask(screen=screen)
            agent.go_on.release()
            agent.go_on.release()
        return agent

    agent = asyncio.run(look())
    assert agent.reads == [False, True]
    assert agent.rests == 1


def test_after_the_last_look_the_next_one_begins_again():
    async def look() -> Agent:
        async with asyncio.TaskGroup() as tasks:
            agent = Agent(tasks)
            for _ in range(2):
                agent.rested.clear()
                agent.looks.ask(screen=True)
                agent.go_on.release()
                await agent.rested.wait()
        return agent

    agent = asyncio.run(look())
    assert (agent.reads, agent.rests) == ([True, True], 2)
