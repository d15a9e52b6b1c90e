"""What a hub is sent of the output while nobody looks at it there, by a pod's own files and with no network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from hitchpost import wire
from hitchpost.fleet import frames, shipped
from hitchpost.pod.folder import Folder
from hitchpost.pod.shipping import Shipment

SOON_S = 5.0
RUN = 1


class Sent:
    """The pipe to the hub, which takes everything at once."""

    over = False

    def __init__(self) -> None:
        self.frames: list[tuple[bytes, bytes]] = []
        self.more = asyncio.Event()

    def send(self, frame: bytes) -> None:
        self.frames += wire.take_frames(bytearray(frame))
        self.more.set()

    async def drain(self) -> None:
        pass

    def output_bytes(self) -> int:
        return sum(len(data) for name, data in self._parts() if name != shipped.TIMES)

    def times(self) -> bytes:
        return b"".join(data for name, data in self._parts() if name == shipped.TIMES)

    def is_told_ahead(self) -> bool:
        """Whether the hub ever knew of output that came to it later."""
        came = 0
        for name, data in self._parts():
            if name != shipped.TIMES:
                came += len(data)
            elif max(_offsets(data)) > came:
                return True
        return False

    def _parts(self) -> list[tuple[str, bytes]]:
        found = []
        for kind, payload in self.frames:
            if kind == frames.PART:
                _, _, name, start = frames.take_name(payload)
                found.append((name, payload[start + 16 :]))
        return found


class Log:
    """A run's log in a pod, and the shipment of it to one hub."""

    def __init__(self, folder: Path) -> None:
        self.sent, self.ends = Sent(), {RUN: 0}
        self.folder = Folder(str(folder))
        self.folder.run = RUN
        self.output = folder / "runs" / str(RUN) / wire.OUTPUT
        self.output.mkdir(parents=True)
        self.shipment = Shipment(self.sent, self.folder, self.ends, lambda: None, frames.OUTPUT)  # type: ignore[arg-type]
        self.shipment.begun(RUN)

    def write(self, data: bytes) -> None:
        with open(self.output / wire.segment_name(0), "ab") as file:
            file.write(data)
        self.ends[RUN] += len(data)
        self.shipment.wake()

    def note(self, *offsets: int) -> None:
        """In the time index."""
        with open(self.output / wire.TIMES, "ab") as file:
            file.writelines(wire.time_record(wire.AT_OFFSET, 1, offset) for offset in offsets)
        self.shipment.changed([(RUN, shipped.TIMES)])

    def times(self) -> bytes:
        return (self.output / wire.TIMES).read_bytes()

    async def came(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON_S):
            while not is_so():
                self.sent.more.clear()
                await self.sent.more.wait()


def _offsets(times: bytes) -> list[int]:
    step = wire.TIME_RECORD_BYTES
    return [int.from_bytes(times[at + 9 : at + step], "big") for at in range(0, len(times), step)]


def shipped_by(folder: Path, play: Callable[[Log], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        log = Log(folder)
        running = asyncio.create_task(log.shipment.run())
        await play(log)
        log.sent.over = True
        log.shipment.wake()
        await running
        log.folder.close()

    asyncio.run(whole())


def test_a_flood_that_somebody_looked_at_holds_nothing_back_when_nobody_looks_any_more(tmp_path: Path) -> None:
    async def play(log: Log) -> None:
        for is_slow, size in ((True, 10), (False, 60 * frames.SLOW_BYTES_S), (True, 10)):
            log.shipment.pace(is_slow=is_slow)
            log.write(bytes(size))
            await log.came(lambda: log.sent.output_bytes() == log.ends[RUN])

    shipped_by(tmp_path, play)


def test_the_time_index_comes_also_where_the_end_of_the_output_was_lost(tmp_path: Path) -> None:
    async def play(log: Log) -> None:
        log.shipment.pace(is_slow=True)
        log.write(b"here")
        await log.came(lambda: log.sent.output_bytes() == len(b"here"))
        log.ends[RUN] += 1000
        log.note(log.ends[RUN])
        await log.came(lambda: log.sent.times() == log.times())

    shipped_by(tmp_path, play)


def test_a_hub_that_is_behind_has_the_time_index_as_far_as_the_output(tmp_path: Path) -> None:
    async def play(log: Log) -> None:
        log.shipment.pace(is_slow=True)
        log.write(bytes(60 * frames.SLOW_BYTES_S))
        log.note(10, frames.SLOW_BYTES_S // 2, log.ends[RUN])
        await log.came(lambda: log.sent.times() == log.times()[: 2 * wire.TIME_RECORD_BYTES])
        assert log.sent.output_bytes() < log.ends[RUN]
        log.shipment.pace(is_slow=False)
        await log.came(lambda: log.sent.times() == log.times())

    shipped_by(tmp_path, play)


def test_the_time_index_is_never_ahead_of_the_output_of_a_hub_at_which_somebody_begins_to_look(tmp_path: Path) -> None:
    """Else a reader there would take what is still to come for lost."""

    async def play(log: Log) -> None:
        log.shipment.pace(is_slow=True)
        log.write(bytes(60 * frames.SLOW_BYTES_S))
        log.shipment.pace(is_slow=False)
        log.note(10, log.ends[RUN])
        await log.came(lambda: log.sent.times() == log.times())
        assert not log.sent.is_told_ahead()

    shipped_by(tmp_path, play)
