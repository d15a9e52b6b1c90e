"""Output that no emulator survives, in a hub: it costs one screen, twice, and nothing else."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from hitchpost.terminal.screen import WITHOUT_EMULATOR
from tests.ground import Ground, Truth, descendants
from tests.hubs import SNAPSHOT, HubProcess
from tests.support import eventually
from tests.terminal.test_emulators import HOG

PATIENCE_S = 120
"""On a busy machine, twice the processor time that an emulator is allowed, and more."""
KILLER = b"\x1b]8;a=b:id=;https://" + b"y" * 2000 + b"\x1b\\a"


def printing(ground: Ground, name: str, data: bytes, script: str = "cat {}; read x") -> Truth:
    """A session that has printed ``data`` as it is, and waits."""
    path = ground.place / f"{name}.bytes"
    path.write_bytes(data)
    session = ground.begin_sh(f"stty raw -echo; {script.format(path)}", name=name)
    eventually(lambda: len(session.output()) >= len(data), 60)
    return session


def screen(hub: HubProcess, session: Truth) -> str:
    return str(hub.ask("GET", f"/api/sessions/{session.id}/screen", timeout_s=PATIENCE_S)["text"])


def lost(hub: HubProcess) -> int:
    with hub.http() as client:
        text = client.get("/metrics").text
    return int(float(text.partition("\nhitchpost_screens_lost_total ")[2].split()[0]))


async def snapshot(hub: HubProcess, session: Truth) -> bytes:
    async with hub.ws() as client:
        await client.attach(session.id, readOnly=True)
        while True:
            message = next((frame for frame in client.frames if frame.kind == SNAPSHOT), None)
            if message is not None:
                return message.data
            await client.read(PATIENCE_S)


@pytest.mark.timeout(240)
def test_output_that_no_emulator_survives_costs_one_screen(ground: Ground, hub: HubProcess) -> None:
    assert hub.process is not None
    calm = printing(ground, "calm", b"all is calm")
    bad = printing(ground, "bad", b"words\r\n" + HOG + b"\r\nthe end")
    assert screen(hub, calm) == "all is calm"
    with ThreadPoolExecutor(4) as pool:
        asked = pool.submit(screen, hub, bad)
        others = [pool.submit(screen, hub, calm) for _ in range(3)]
        assert wait(others, PATIENCE_S).not_done == set()
        assert {other.result() for other in others} == {"all is calm"}
        shown = asked.result()
    assert shown.splitlines()[0] == WITHOUT_EMULATOR
    assert shown.splitlines()[-1] == "the end"
    assert lost(hub) == 2
    # looking again, in every way, starts no emulator for this run
    assert screen(hub, bad) == shown
    assert WITHOUT_EMULATOR.encode() in asyncio.run(snapshot(hub, bad))
    part = hub.ask("GET", f"/api/sessions/{bad.id}/replay/part?at=1000")
    assert b"the end" in b64decode(part["screen"]["data"])
    assert lost(hub) == 2
    assert screen(hub, calm) == "all is calm"
    assert hub.process.poll() is None
    told = [json.loads(line) for line in hub.log().splitlines() if "screen lost" in line]
    assert [(line["session_id"], line["run"], line["losses"]) for line in told] == [(bad.id, 1, 1), (bad.id, 1, 2)]


@pytest.mark.parametrize("alternate", [b"", b"\x1b[?1049h"])
def test_a_very_long_string_that_does_not_end_can_be_looked_at(
    ground: Ground, hub: HubProcess, alternate: bytes
) -> None:
    dev = printing(ground, "dev", alternate + b"\x1b[Hseen\x1b]4;" + b"1;rgb:11/22/33;" * 5000)
    assert screen(hub, dev) == "seen"
    assert b"seen" in asyncio.run(snapshot(hub, dev))
    part = hub.ask("GET", f"/api/sessions/{dev.id}/replay/part?at=1000")
    assert b"seen" in b64decode(part["screen"]["data"])
    assert lost(hub) == 0


@pytest.mark.timeout(240)
def test_a_long_link_a_terminal_of_one_row_and_a_flood(ground: Ground, hub: HubProcess) -> None:
    """An emulator of one row dies of this."""
    assert hub.process is not None
    dev = printing(ground, "dev", KILLER, "cat {}; read x; yes 0123456789 | head -c 300000 | tr -d '\\n'; read x")

    async def look() -> None:
        async with hub.ws() as client:
            await client.attach(dev.id, cols=200, rows=24)
            await client.say("terminal.resize", sessionId=dev.id, cols=1, rows=1)
            await client.until("terminal.size", dev.id, cols=1, rows=1)
            await client.say("terminal.input", sessionId=dev.id, data="\n")
            while len(dev.output()) < len(KILLER) + 250_000:
                await client.read(30)

    asyncio.run(look())
    assert screen(hub, dev)
    assert asyncio.run(snapshot(hub, dev))
    assert hub.process.poll() is None


def test_an_idle_hub_forks_nothing(ground: Ground, hub: HubProcess) -> None:
    assert hub.process is not None
    pid = hub.process.pid
    dev = printing(ground, "dev", b"words")
    screen(hub, dev)
    # the one that forks, this screen's, and one for the next
    eventually(lambda: len(list(descendants(pid))) == 3)
    before = list(descendants(pid))
    screen(hub, dev)
    assert list(descendants(pid)) == before
