"""Made-up terminal output through the real thing: keeper, hub, WebSocket, attach, logs, replay and recording.

``FUZZ_SECONDS`` says how long; ``FUZZ_SEED`` plays one stream again. Nothing may die, hang, print a traceback or
answer 500.
"""

from __future__ import annotations

import asyncio
import os
import pty
import random
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from websockets import ConnectionClosedOK

from hitchpost import wire
from hitchpost.terminal.emulators import Emulators
from hitchpost.terminal.screen import Losses, RunScreen
from tests.fuzz.streams import Maker, Piece, read_stream
from tests.ground import Ground, Truth
from tests.hubs import HubProcess, Socket
from tests.support import Hitch, eventually
from tests.warm import Process, spawn

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
STREAMS = 90
"""Without a time: 15 s of a processor. A ninth of them is played. Each run makes up others."""
PATIENCE_S = 120
"""On a busy machine, twice the processor time that an emulator is allowed, and more."""
CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.json"))
DRAWN_FOR_EACH_PLAYED = 8


def log_of(stream: list[Piece], folder: Path) -> int:
    """The log of a run that had this output. Returns its end."""
    folder.mkdir()
    times, data = wire.time_record(wire.AT_SIZE, 0, 80 << 32 | 24), b""
    for piece in stream:
        if isinstance(piece, tuple):
            times += wire.time_record(wire.AT_OFFSET, 0, len(data))
            times += wire.time_record(wire.AT_SIZE, 0, piece[0] << 32 | piece[1])
        else:
            data += piece
    (folder / wire.segment_name(0)).write_bytes(data)
    (folder / wire.TIMES).write_bytes(times)
    return len(data)


def drawn(stream: list[Piece], folder: Path, emulators: Emulators) -> list[str]:
    """Look at the screen of a run in every way. Returns why emulators were lost."""
    lost: list[str] = []
    end = log_of(stream, folder)
    with closing(RunScreen(str(folder), emulators, Losses(lambda _, __, why: lost.append(why)))) as screen:
        screen.advance(end)
        assert screen.offset == end
        screen.snapshot()
        screen.lines(0, 0, screen.cols, screen.rows)
        screen.text(), screen.cursor(), screen.alternate(), screen.input_modes()
    return lost


@contextmanager
def attached(session: Truth) -> Iterator[tuple[int, Process]]:
    """``hitch attach`` on a terminal that shows nothing. Gives the terminal's other side, and the process."""
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    try:
        process = spawn("hitchpost", ["attach", session.id], Hitch.environment(), (slave, slave, slave), session=True)
        try:
            yield master, process
        finally:
            process.kill()
            process.wait()
    finally:
        os.close(master)
        os.close(slave)


def take(master: int, into: bytearray) -> None:
    with suppress(BlockingIOError, OSError):
        while data := os.read(master, 1 << 16):
            into += data


async def drain(client: Socket) -> None:
    with suppress(ConnectionClosedOK):  # we have hung up
        while True:
            await client.read(3600)
            client.frames.clear()
            client.events.clear()


async def play(stream: list[Piece], session: Truth, pipe: str, hub: HubProcess, seen: bytearray) -> int:
    """Let the session print the stream, with a browser and a terminal at it. Returns attach's exit code."""
    feed = await asyncio.to_thread(os.open, pipe, os.O_WRONLY)
    loop = asyncio.get_running_loop()
    with attached(session) as (master, process):
        loop.add_reader(master, take, master, seen)
        try:
            async with hub.ws() as client:
                await client.attach(session.id, cols=80, rows=24)
                # the terminal is there, too: a short stream would be over before
                await asyncio.to_thread(eventually, lambda: bool(seen), PATIENCE_S, what="attach")
                draining = asyncio.create_task(drain(client))
                try:
                    for number, piece in enumerate(stream):
                        if isinstance(piece, tuple):
                            await client.say("terminal.resize", sessionId=session.id, cols=piece[0], rows=piece[1])
                        else:
                            await asyncio.to_thread(os.write, feed, piece)
                        if number % 20 == 19:
                            await asyncio.to_thread(hub.ask, "GET", f"/api/sessions/{session.id}/screen")
                finally:
                    os.close(feed)
                    draining.cancel()
            return await asyncio.to_thread(process.wait, PATIENCE_S)
        finally:
            loop.remove_reader(master)


def played(stream: list[Piece], name: str, ground: Ground, hub: HubProcess) -> None:
    """The stream through a real session, and every way to look at it afterwards."""
    assert hub.process is not None
    pipe = str(ground.place / name)
    os.mkfifo(pipe)
    session = ground.begin_sh(f"stty raw -echo; exec cat '{pipe}'", name=name)
    seen = bytearray()
    code = asyncio.run(play(stream, session, pipe, hub, seen))
    assert (code, b"Traceback" in seen) == (0, False), seen[-2000:]
    session.ended(timeout_s=PATIENCE_S)
    assert session.output() == b"".join(piece for piece in stream if isinstance(piece, bytes))
    for words in (("logs", name), ("logs", "--json", name), ("replay", "--speed", "1000", "--idle-limit", "0", name)):
        answer = ground.hitch(*words, timeout_s=PATIENCE_S)
        assert "Traceback" not in answer.err
    with hub.http() as client:
        client.timeout = PATIENCE_S
        for path in ("screen", "replay", "replay/part?at=0", "replay/part?at=100000", "recording"):
            got = client.get(f"/api/sessions/{session.id}/{path}")
            assert got.status_code == 200, (path, got.text[:500])
    ground.hitch("rm", "--force", name)


@pytest.mark.timeout(PATIENCE_S * 4 + SECONDS)
def test_no_output_kills_or_hangs_what_shows_it(ground: Ground, hub: HubProcess, tmp_path: Path) -> None:
    assert hub.process is not None
    first = int(os.environ.get("FUZZ_SEED") or random.SystemRandom().randrange(1 << 40))
    print(f"the first seed is {first}")
    calm = ground.begin_sh("echo all is calm; read x", name="calm")
    eventually(lambda: b"calm" in calm.output())
    ends = time.monotonic() + SECONDS
    seed = first
    with Emulators() as emulators:
        while True:
            stream = Maker(seed).stream()
            try:
                if (seed - first) % (DRAWN_FOR_EACH_PLAYED + 1):
                    lost = drawn(stream, tmp_path / str(seed), emulators)
                    if lost:
                        print(f"seed {seed}: emulators lost: {lost}")
                else:
                    played(stream, f"fuzz-{seed}", ground, hub)
            except BaseException:
                print(f"FUZZ_SEED={seed} plays it again")
                raise
            assert hub.process.poll() is None, f"the hub has died of seed {seed}"
            enough = time.monotonic() > ends if SECONDS else seed - first + 1 == STREAMS
            if enough or "FUZZ_SEED" in os.environ:
                break
            seed += 1
    print(f"{seed - first + 1} streams, seeds {first} to {seed}")
    assert hub.ask("GET", f"/api/sessions/{calm.id}/screen")["text"].strip() == "all is calm"


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_was_found_before_is_drawn(path: Path, tmp_path: Path) -> None:
    with Emulators() as emulators:
        drawn(read_stream(path), tmp_path / "output", emulators)
