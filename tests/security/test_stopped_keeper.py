"""Typing to a session whose keeper does not read costs the hub no memory, and the others nothing."""

from __future__ import annotations

import asyncio
import os
import signal

from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import halt

MOST_GROWTH_KB = 20_000
TEXT = "x" * 500_000


def memory_kb(hub: HubProcess) -> int:
    assert hub.process is not None
    with open(f"/proc/{hub.process.pid}/status") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1])


def test_what_a_stopped_keeper_does_not_read_is_refused_and_not_kept(ground: Ground, hub: HubProcess) -> None:
    stuck, other = ground.begin("cat"), ground.begin("cat")
    keeper = stuck.keeper_pid()

    async def scene() -> None:
        async with hub.ws() as socket:
            await socket.attach(stuck.id)
            shown = (await socket.attach(other.id))["channel"]
            halt(keeper)
            before = memory_kb(hub)
            for _ in range(80):
                await socket.say("terminal.input", sessionId=stuck.id, data=TEXT)
            refused = await socket.until("error")
            assert (refused["code"], refused["sessionId"]) == ("busy", stuck.id)
            assert "does not take input now" in refused["message"]
            await socket.say("terminal.input", sessionId=other.id, data="still here\r")
            await socket.until_shown(shown, b"still here")
            assert memory_kb(hub) - before < MOST_GROWTH_KB

    try:
        asyncio.run(scene())
    finally:
        os.kill(keeper, signal.SIGCONT)


def test_a_session_whose_keeper_does_not_answer_keeps_no_other_waiting(ground: Ground, hub: HubProcess) -> None:
    stuck, other = ground.begin("cat"), ground.begin("cat")
    keeper = stuck.keeper_pid()

    async def scene() -> None:
        async with hub.ws() as socket:
            halt(keeper)
            await socket.say("session.attach", sessionId=stuck.id, cols=80, rows=24)
            shown = (await socket.attach(other.id))["channel"]
            await socket.say("terminal.input", sessionId=other.id, data="at once\r")
            await socket.until_shown(shown, b"at once")
            assert ("session.attached", stuck.id) not in [(e["type"], e.get("sessionId")) for e in socket.events]
            await socket.until("session.attached", stuck.id)

    try:
        asyncio.run(scene())
    finally:
        os.kill(keeper, signal.SIGCONT)
