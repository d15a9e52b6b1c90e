"""Streams: every byte reaches every client, or what is missing is announced; nobody waits for somebody else."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import random
import signal
import struct
import subprocess
import termios
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from statistics import median

import pytest

from hitchpost import wire
from hitchpost.settings import Settings
from hitchpost.terminal import output
from tests.ground import Ground, Truth
from tests.hubs import GAP, OUTPUT, SNAPSHOT, Frame, HubProcess, Socket
from tests.support import eventually

ECHO = 'stty -echo; while read line; do echo "<$line>"; done'
BURSTS = 'stty raw -echo; echo ready; while read line; do cat "$1"; done'
"""Each line that it reads gives the whole file: a flood that is never further ahead than its viewers allow."""
READY = b"ready\n"
MIB = 1 << 20


@dataclass(slots=True)
class Tape:
    """What came on one channel. A byte that is missing without having been announced fails at once."""

    channel: int
    at: int = -1
    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    jumps: int = 0

    def take(self, frame: Frame) -> None:
        if frame.channel != self.channel:
            return
        if frame.kind == SNAPSHOT:
            assert frame.offset >= self.at
            self.jumps += self.at >= 0
            self.at = frame.offset
            return
        assert frame.offset == self.at or self.at < 0, f"expected offset {self.at}, but got {frame.offset}"
        if frame.kind == GAP:
            self.jumps += 1
            self.at = frame.offset + int.from_bytes(frame.data, "big")
            return
        assert frame.kind == OUTPUT
        self.pieces.append((frame.offset, frame.data))
        self.at = frame.offset + len(frame.data)

    @property
    def whole(self) -> bytes:
        return b"".join(data for _, data in self.pieces)

    def agrees_with(self, truth: bytes) -> bool:
        return all(truth[offset : offset + len(data)] == data for offset, data in self.pieces)


async def play(client: Socket, tape: Tape, until: int, timeout_s: float = 60) -> None:
    """Read into the tape until it has reached an offset."""
    while tape.at < until:
        message = await client.read(timeout_s)
        if isinstance(message, Frame):
            client.frames.clear()
            tape.take(message)


async def attached(client: Socket, session: Truth, **fields: object) -> Tape:
    return Tape((await client.attach(session.id, **fields))["channel"])


async def go(client: Socket, session: Truth) -> None:
    await client.say("terminal.input", sessionId=session.id, data="\n")


@asynccontextmanager
async def stalled(hub: HubProcess, session: Truth) -> AsyncIterator[Socket]:
    """A client that is connected, looks at the session, and reads nothing more."""
    async with hub.ws() as client:
        await client.attach(session.id, readOnly=True)
        yield client


def memory_peak(hub: HubProcess) -> int:
    assert hub.process is not None
    with open(f"/proc/{hub.process.pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def write(ground: Ground, name: str, data: bytes) -> str:
    path = ground.place / name
    path.write_bytes(data)
    return str(path)


def size_of(session: Truth) -> tuple[int, int]:
    """Columns and rows of the agent's terminal, as the kernel has them."""
    fd = os.open(f"/proc/{session.agent_pid()}/fd/0", os.O_RDONLY | os.O_NOCTTY)
    try:
        rows, cols, _, _ = struct.unpack("HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, bytes(8)))
        return cols, rows
    finally:
        os.close(fd)


@pytest.mark.ids("F70")
def test_a_stalled_client_costs_no_memory_and_the_others_get_everything(ground: Ground, hub: HubProcess) -> None:
    block = os.urandom(800_000)
    rounds, joins = 125, 100
    flood = ground.begin_sh(BURSTS, write(ground, "block", block))
    eventually(lambda: flood.output() == READY)
    end = len(READY) + rounds * len(block)

    async def drive(client: Socket, tape: Tape, numbers: range) -> str:
        seen = hashlib.sha256()
        for number in numbers:
            await go(client, flood)
            await play(client, tape, len(READY) + (number + 1) * len(block))
            seen.update(tape.whole)
            tape.pieces.clear()
        return seen.hexdigest()

    def digest(count: int) -> str:
        wanted = hashlib.sha256()
        for _ in range(count):
            wanted.update(block)
        return wanted.hexdigest()

    async def scene() -> int:
        async with stalled(hub, flood) as stuck, hub.ws() as driver, hub.ws() as other:
            first = await attached(driver, flood, **{"from": len(READY)})
            before = memory_peak(hub)
            assert await drive(driver, first, range(joins)) == digest(joins)
            second = await attached(other, flood, **{"from": first.at}, readOnly=True)
            follows = asyncio.create_task(play(other, second, end))
            assert await drive(driver, first, range(joins, rounds)) == digest(rounds - joins)
            await follows
            assert hashlib.sha256(second.whole).hexdigest() == digest(rounds - joins)
            assert (first.jumps, second.jumps) == (0, 0)
            grown = memory_peak(hub) - before
            tape = Tape(1)
            for frame in stuck.frames:
                tape.take(frame)
            await play(stuck, tape, end)
            assert tape.jumps > 0
            assert tape.at == end
            return grown

    assert asyncio.run(scene()) < 48 * MIB
    ground.end(flood)


@pytest.mark.ids("F71", "F73")
def test_hundreds_of_clients_that_reconnect_at_once_each_get_their_bytes(ground: Ground, hub: HubProcess) -> None:
    data = random.Random(71).randbytes(600_000)
    dev = ground.begin_sh("stty raw -echo; cat $1; exec cat", write(ground, "data", data))
    eventually(lambda: dev.output() == data)
    hub.kill()
    hub.start()
    offsets = [random.Random(number).randrange(len(data)) for number in range(500)]

    async def reconnect(offset: int) -> bool:
        async with hub.ws() as client:
            tape = await attached(client, dev, **{"from": offset}, readOnly=True)
            await play(client, tape, len(data))
            return tape.jumps == 0 and tape.whole == data[offset:]

    async def scene() -> list[bool]:
        return await asyncio.gather(*map(reconnect, offsets))

    assert asyncio.run(scene()) == [True] * len(offsets)
    ground.end(dev)


def osc() -> bytes:
    return b"before\r\n\x1b]0;" + b"x" * (5 * MIB) + b"\x07after\r\n"


def invalid() -> bytes:
    return (b"\xff\xfe\xc3\x28\xed\xa0\x80" + "ß".encode()[:1]) * 100_000


AWKWARD: dict[str, Callable[[], bytes]] = {
    "garbage": lambda: random.Random(72).randbytes(3 * MIB),
    "long-osc": osc,
    "invalid-utf-8": invalid,
    "long-line": lambda: b"x" * (20 * MIB),
    "flood": lambda: b"".join(b"line %d of the flood\r\n" % number for number in range(1_000_000)),
}


@pytest.mark.ids("F72")
def test_awkward_output_arrives_or_what_is_missing_is_announced(ground: Ground, hub: HubProcess) -> None:
    async def scene(dev: Truth, data: bytes) -> None:
        async with hub.ws() as client:
            tape = await attached(client, dev, **{"from": 0})
            await go(client, dev)
            await play(client, tape, len(data))
            assert tape.at == len(data)
            assert tape.agrees_with(data)
            if tape.jumps == 0:
                assert hashlib.sha256(tape.whole).digest() == hashlib.sha256(data).digest()
        async with hub.ws() as late:
            tape = await attached(late, dev)
            await play(late, tape, len(data))
            assert (tape.at, tape.pieces) == (len(data), [])

    for kind, make in AWKWARD.items():
        data = make()
        dev = ground.begin_sh("stty raw -echo; read line; cat $1; exec cat", write(ground, "data", data), name=kind)
        asyncio.run(scene(dev, data))
        assert dev.output() == data
        ground.end(dev)


@pytest.mark.ids("F73", "F30")
def test_a_client_goes_on_where_it_was_when_the_hub_was_killed_in_a_flood(ground: Ground, hub: HubProcess) -> None:
    block = random.Random(73).randbytes(900_000)
    dev = ground.begin_sh(BURSTS, write(ground, "block", block))
    whole = READY + block * 2
    got = b""

    async def look(stop_at: int, *, ask: bool) -> bytes:
        async with hub.ws() as client:
            tape = await attached(client, dev, **{"from": len(got)})
            if ask:
                await go(client, dev)
            await play(client, tape, stop_at)
            assert tape.jumps == 0
            client.connection.transport.abort()
            return tape.whole

    eventually(lambda: dev.output() == READY)
    for number in range(1, 3):
        got += asyncio.run(look(len(READY) + number * len(block) - 500_000, ask=True))
        hub.kill()
        hub.start()
        got += asyncio.run(look(len(READY) + number * len(block), ask=False))
    assert got == whole == dev.output()
    ground.end(dev)


@pytest.mark.ids("F73")
def test_an_offset_that_the_log_does_not_have_gives_the_screen(ground: Ground, hub: HubProcess) -> None:
    lines = b"".join(b"line %d\r\n" % number for number in range(300_000))
    script = "stty raw -echo; cat $1; exec cat"
    dev = ground.begin_sh(script, write(ground, "lines", lines), settings=Settings(log_cap_mib=1))
    eventually(lambda: dev.output().endswith(lines[-1000:]))
    assert len(dev.output()) < len(lines)

    async def scene() -> None:
        for offset in (0, len(lines) + 1, len(lines) * 1000):
            async with hub.ws() as client:
                await attached(client, dev, **{"from": offset})
                while not client.frames:
                    await client.read()
                frame = client.frames[0]
                assert (frame.kind, frame.offset) == (SNAPSHOT, len(lines))
                assert b"line 299999" in frame.data

    asyncio.run(scene())
    ground.end(dev)


@asynccontextmanager
async def pipes_to_cat() -> AsyncIterator[Callable[[], Awaitable[bytes]]]:
    cat = await asyncio.create_subprocess_exec("cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert cat.stdin is not None
    assert cat.stdout is not None
    to_cat, from_cat = cat.stdin, cat.stdout

    async def bounce() -> bytes:
        to_cat.write(b"x\n")
        return await from_cat.readline()

    try:
        yield bounce
    finally:
        to_cat.close()
        await cat.wait()


@pytest.mark.ids("F75", "E-9", "E-1")
def test_one_of_four_floods_is_killed_and_nobody_else_notices(ground: Ground, hub: HubProcess) -> None:
    blocks = [random.Random(number).randbytes(600_000) for number in range(4)]
    rounds = 20
    floods = [ground.begin_sh(BURSTS, write(ground, f"block{n}", block)) for n, block in enumerate(blocks)]
    quiet = ground.begin_sh(ECHO)
    for flood in floods:
        eventually(lambda one=flood: one.output() == READY)  # type: ignore[misc]
    victim = floods[3]

    async def watch(session: Truth, block: bytes, begun: asyncio.Event) -> Tape:
        await begun.wait()
        async with hub.ws() as client:
            tape = await attached(client, session, **{"from": 0})
            for number in range(1, rounds + 1):
                if session is victim and number == rounds // 2:
                    os.kill(victim.agent_pid(), signal.SIGKILL)
                    told = await client.until("terminal.exit", victim.id)
                    assert (told["exitCode"], told["signal"]) == (137, "SIGKILL")
                    return tape
                await go(client, session)
                await play(client, tape, len(READY) + number * len(block))
            assert not any(
                event["type"] == "terminal.exit" and event["sessionId"] == session.id for event in client.events
            )
            return tape

    async def echo(begun: asyncio.Event, over: asyncio.Event) -> tuple[list[float], list[float]]:
        """How long a line takes through the hub, and as an anchor through two pipes to ``cat`` at the same time."""
        took: list[float] = []
        anchor: list[float] = []
        async with hub.ws() as client, pipes_to_cat() as bounce:
            channel = (await client.attach(quiet.id))["channel"]
            while not client.frames:  # the first screen of a hub's life is slower than an echo
                await client.read()
            begun.set()
            while not over.is_set():
                began = time.perf_counter()
                await client.say("terminal.input", sessionId=quiet.id, data=f"{len(took)}\r")
                await client.until_shown(channel, f"<{len(took)}>".encode())
                took.append(time.perf_counter() - began)
                client.frames.clear()
                began = time.perf_counter()
                await bounce()
                anchor.append(time.perf_counter() - began)
        return took, anchor

    async def scene() -> tuple[list[Tape], tuple[list[float], list[float]]]:
        begun, over = asyncio.Event(), asyncio.Event()
        typing = asyncio.create_task(echo(begun, over))
        tapes = await asyncio.gather(*(watch(flood, block, begun) for flood, block in zip(floods, blocks, strict=True)))
        over.set()
        return tapes, await typing

    tapes, (took, anchor) = asyncio.run(scene())
    for tape, flood, block in zip(tapes[:3], floods, blocks, strict=False):
        assert tape.jumps == 0
        digests = {hashlib.sha256(each).hexdigest() for each in (tape.whole, flood.output(), READY + block * rounds)}
        assert len(digests) == 1
    assert tapes[3].agrees_with(victim.output())
    assert victim.ended() == "failed"
    assert len(took) > 20
    # Six processes take their turns for one echo, two for the anchor. The slowest of them tells of the machine, which
    # runs other tests; a queue behind a flood would hold up every one. The slowest are measured in bench/hub.py.
    assert median(took) < 0.1 + 3 * median(anchor)
    for session in (*floods[:3], quiet):
        ground.end(session)


def test_the_size_belongs_to_who_typed_last(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh(ECHO)

    async def types(client: Socket, channel: int, text: str) -> None:
        await client.say("terminal.input", sessionId=dev.id, data=f"{text}\r")
        await client.until_shown(channel, f"<{text}>".encode())

    async def sized(cols: int, rows: int) -> None:
        await asyncio.to_thread(eventually, lambda: size_of(dev) == (cols, rows), 10, "the size")

    async def scene() -> None:
        async with hub.ws() as second:
            async with hub.ws() as first:
                one = (await first.attach(dev.id, cols=100, rows=30))["channel"]
                await sized(100, 30)
                two = (await second.attach(dev.id, cols=60, rows=20))["channel"]
                await types(first, one, "a")
                assert size_of(dev) == (100, 30)
                await types(second, two, "b")
                assert size_of(dev) == (60, 20)
                await first.say("terminal.resize", sessionId=dev.id, cols=110, rows=33)
                await second.say("terminal.resize", sessionId=dev.id, cols=66, rows=22)
                await sized(66, 22)
                await types(first, one, "c")
                assert size_of(dev) == (110, 33)
            await sized(66, 22)

    asyncio.run(scene())
    ground.end(dev)


def test_who_joins_takes_the_size_from_nobody(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh(ECHO)

    async def scene() -> None:
        async with hub.ws() as desktop, hub.ws() as phone:
            channel = (await desktop.attach(dev.id, cols=100, rows=30))["channel"]
            await desktop.say("terminal.input", sessionId=dev.id, data="a\r")
            await desktop.until_shown(channel, b"<a>")
            await phone.attach(dev.id, cols=40, rows=30)
            await phone.say("terminal.resize", sessionId=dev.id, cols=40, rows=12)
            await desktop.say("terminal.resize", sessionId=dev.id, cols=101, rows=31)
            await asyncio.to_thread(eventually, lambda: size_of(dev) == (101, 31), 10, "the desktop's size")
            await phone.say("terminal.resize", sessionId=dev.id, cols=40, rows=13)
            await desktop.say("terminal.input", sessionId=dev.id, data="b\r")
            await desktop.until_shown(channel, b"<b>")
            assert size_of(dev) == (101, 31)

    asyncio.run(scene())
    sizes = [entry.value for entry in output.moments(str(dev.run() / "output")) if entry.kind == wire.AT_SIZE]
    assert sizes == [80 << 32 | 24, 100 << 32 | 30, 101 << 32 | 31]
    ground.end(dev)


def test_a_read_only_client_changes_nothing(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("stty -echo; exec cat")

    async def scene() -> None:
        async with AsyncExitStack() as stack:
            typist = await stack.enter_async_context(hub.ws())
            channel = (await typist.attach(dev.id, cols=90, rows=25))["channel"]
            told = {
                "owner": ("wrong_state", "this client is read-only"),
                "viewer": ("forbidden", "only the owner may do that"),
            }
            for role, words in told.items():
                client = await stack.enter_async_context(hub.ws(role))
                await client.attach(dev.id, cols=40, rows=10, readOnly=True)
                await client.say("terminal.resize", sessionId=dev.id, cols=41, rows=11)
                await client.say("terminal.input", sessionId=dev.id, data="x\r")
                refused = await client.until("error", dev.id)
                assert (refused["code"], refused["message"]) == words
            await typist.say("terminal.input", sessionId=dev.id, data="y\r")
            await typist.until_shown(channel, b"y\r\n")
            assert size_of(dev) == (90, 25)

    asyncio.run(scene())
    assert dev.output() == b"y\r\n"
    ground.end(dev)


@pytest.mark.ids("F14")
def test_who_attaches_as_it_ends_sees_the_last_line_and_then_the_status(ground: Ground, hub: HubProcess) -> None:
    async def watch(dev: Truth) -> list[str]:
        """What the client was told, in order, until it has all of it."""
        told: list[str] = []
        shown = b""
        async with hub.ws() as typist, hub.ws() as client:
            await typist.attach(dev.id)
            await go(typist, dev)
            await client.say("session.attach", sessionId=dev.id, readOnly=True)
            while len(told) < 4:
                message = await client.read()
                if isinstance(message, Frame):
                    shown += message.data
                    if b"the last line" in shown and "line" not in told:
                        told.append("line")
                elif message["type"] in ("session.attached", "terminal.exit"):
                    told.append(message["type"])
                elif message["type"] == "session.status":
                    assert message["reason"] == "Exit code 3"
                    told.append("status")
        return told

    for number in range(10):
        dev = ground.begin_sh(f"read line; sleep 0.0{number}; echo the last line; exit 3")
        told = asyncio.run(watch(dev))
        if told[0] == "session.attached":
            assert told == ["session.attached", "line", "terminal.exit", "status"]
        else:
            assert told == ["terminal.exit", "status", "session.attached", "line"]
