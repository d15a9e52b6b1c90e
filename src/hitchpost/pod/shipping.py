"""What one hub gets: the files that have changed, the output from the offset that it has, and the keeper's frames.

Nothing is kept for a hub that reads slowly but how far it is: files and output are read when there is room for them.
The same holds for a hub at which nobody looks, which gets a flood slowly.
The frames of its clients wait in a queue; the server reads no more of them from the keeper while that is long.
"""

from __future__ import annotations

import asyncio
from binascii import crc32
from collections import deque
from collections.abc import Callable

from hitchpost.fleet import frames, shipped
from hitchpost.fleet.frames import OUTPUT_PART_BYTES, PART_BYTES, SLOW_BYTES_S
from hitchpost.fleet.pipe import Pipe
from hitchpost.pod.folder import Folder, read, read_from, written_at_us
from hitchpost.terminal import output
from hitchpost.wire import AT_OFFSET, MAX_PAYLOAD_BYTES, TIME_RECORD_BYTES

LONGEST_LINE_BYTES = MAX_PAYLOAD_BYTES - 1024
MOST_QUEUED_BYTES = 256 * 1024
NO_TIME = frames.offset(0)


class Cursor:
    """How far a hub has the output of one run. ``reached`` counts bytes that were lost at the end, too."""

    def __init__(self, folder: str, offset: int) -> None:
        self.reader = output.Reader(folder, offset)
        self.reached, self.first, self.segment = offset, -1, -1


class Shipment:
    """``ends`` is how far the log of each run reaches; ``look`` finds what has changed, and tells all shipments.

    While it ``is_slow``, output beyond ``SLOW_BYTES_S`` waits, until something is to be said behind it.
    """

    def __init__(
        self, pipe: Pipe, folder: Folder, ends: dict[int, int], look: Callable[[], None], wants: str = frames.ALL
    ) -> None:
        self.pipe, self.folder, self.ends, self.look, self.wants = pipe, folder, ends, look, wants
        self.is_slow = False
        self.queued_bytes = 0
        self._slow_until = 0.0
        """When so much may have been sent as was sent slowly."""
        self._timer: asyncio.TimerHandle | None = None
        self._dirty: dict[tuple[int, str], None] = {}
        self._grown: dict[tuple[int, str], tuple[int, int]] = {}
        self._lines: dict[str, int] = {}
        self._cursors: dict[int, Cursor] = {}
        self._queue: deque[bytes] = deque()
        self._held: list[tuple[int, int, int, bytes]] = []
        self._wake: asyncio.Future[None] | None = None
        self._is_awake = False
        self._idle = asyncio.Event()

    def has(self, run: int, end: int, grown: dict[str, tuple[int, int]]) -> None:
        """What the hub has of a run: its output up to ``end``; of files that grow, how much, and a checksum of that."""
        self._follow(run, end)
        for name, (size, checksum) in grown.items():
            if name in shipped.GROWN:
                self._grown[run, name] = self._same(run, name, size, checksum)

    def has_lines(self, name: str, offset: int) -> None:
        self._lines[name] = offset

    def forget_grown(self) -> None:
        """Nobody knows what the hub has of files that grow: they are sent whole, once."""
        for run, name in [(run, name) for run in self._cursors for name in shipped.GROWN]:
            self._grown[run, name] = -1, 0

    def _same(self, run: int, name: str, size: int, checksum: int) -> tuple[int, int]:
        """From where a file goes on; from its beginning when the hub's is another."""
        found = read_from(self.folder.file(run, name), 0, min(size, shipped.MOST_GROWN_BYTES))
        if found is None or found[1] < size or crc32(found[2]) != checksum:
            return -1, 0
        return found[0], size

    def _follow(self, run: int, offset: int) -> Cursor:
        if run not in self._cursors:
            self._cursors[run] = Cursor(self.folder.output(run), offset)
        return self._cursors[run]

    # what there is to be sent -------------------------------------------------------------------------------------

    def changed(self, named: list[tuple[int, str]]) -> None:
        for run, name in named:
            if self.wants == frames.ALL or name not in shipped.FOR_WATCHER:
                self._dirty[run, name] = None
        self.wake()

    def begun(self, run: int) -> None:
        self._follow(run, 0)
        self.wake()

    def say(self, frame: bytes) -> None:
        """After the files that have changed so far."""
        self._queue.append(frame)
        self.queued_bytes += len(frame)
        self.wake()

    def say_behind(self, channel: int, run: int, end: int, frame: bytes) -> None:
        """Also after the output of ``run`` up to ``end``. What is said in the same channel later waits, too."""
        self._held.append((channel, run, end, frame))
        self.queued_bytes += len(frame)
        self.wake()

    def holds(self, channel: int) -> tuple[int, int] | None:
        """The run and the offset that something in this channel waits for."""
        return next(((run, end) for held, run, end, _ in self._held if held == channel), None)

    def wake(self) -> None:
        self._is_awake = True
        self._idle.clear()
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def pace(self, *, is_slow: bool) -> None:
        self.is_slow = is_slow
        self.wake()

    async def idle(self) -> None:
        """Until the hub was sent everything, or is gone."""
        await self._idle.wait()

    # sending ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until the pipe is over."""
        try:
            while not self.pipe.over:
                self._is_awake = False
                if not await self._turn() and not self._is_awake:
                    if not self._held:
                        self._idle.set()
                    self._wake = asyncio.get_running_loop().create_future()
                    await self._wake
        finally:
            self._idle.set()
            if self._timer is not None:
                self._timer.cancel()
            for cursor in self._cursors.values():
                cursor.reader.close()

    async def _turn(self) -> bool:
        """Files first, then what was said, then a part of the output. Whether there was anything."""
        sent = bool(self._dirty)
        if sent:
            await self._send_files()
        while self._queue and not self.pipe.over:
            frame = self._queue.popleft()
            self.queued_bytes -= len(frame)
            self.pipe.send(frame)
            await self.pipe.drain()
            sent = True
        for run in list(self._cursors):
            sent = await self._send_output(run) or sent
        sent = self._release() or sent
        await self.pipe.drain()
        await asyncio.sleep(0)  # others have their turn
        return sent and not self.pipe.over

    def _release(self) -> bool:
        """Say what has waited for output that was sent by now."""
        due = [held for held in self._held if self._has_sent(held[1], held[2])] if not self._dirty else []
        for held in due:
            self._held.remove(held)
            self.queued_bytes -= len(held[3])
            self.pipe.send(held[3])
        return bool(due)

    def _has_sent(self, run: int, end: int) -> bool:
        return run not in self._cursors or self._cursors[run].reached >= end

    def _is_behind(self, run: int) -> bool:
        """Whether the hub lacks output, so that the whole time index would tell that it was lost."""
        return not self._has_sent(run, self.ends.get(run, 0))

    async def _send_files(self) -> None:
        """State and record last: what they speak of was written before them, and is sent before them."""
        states = {name: read(self.folder.file(0, name)) for name in shipped.STATES if (0, name) in self._dirty}
        for name in states:
            del self._dirty[0, name]
        if states:
            self.look()
        due = [named for named in self._dirty if named[1] not in shipped.STATES]
        for named in due:
            del self._dirty[named]
        for run, name in sorted(due, key=_place):
            if name in shipped.GROWN:
                await self._send_grown(run, name)
            elif name in shipped.LINES:
                await self._send_lines(name)
            elif (data := read(self.folder.file(run, name))) is not None:
                await self._send_whole(run, name, data)
        for name, content in states.items():
            if content is not None:
                await self._send_whole(self.folder.run, name, content)

    async def _send_whole(self, run: int, name: str, data: bytes) -> None:
        for start in range(0, max(1, len(data)), PART_BYTES):
            flag = frames.MORE if start + PART_BYTES < len(data) else frames.LAST
            part = data[start : start + PART_BYTES]
            self.pipe.send(frames.frame(frames.FILE, frames.name_bytes(run, name, flag), part))
            await self.pipe.drain()

    async def _send_grown(self, run: int, name: str) -> None:
        path = self.folder.file(run, name)
        number, at = self._grown.get((run, name), (0, 0))
        while (found := read_from(path, at, PART_BYTES)) is not None and not self.pipe.over:
            is_behind = name == shipped.TIMES and self._is_behind(run)
            if number not in (0, found[0]) or found[1] < at:
                if is_behind:
                    return  # it comes when all of the output was sent
                data = read(path, shipped.MOST_GROWN_BYTES) or b""
                await self._send_whole(run, name, data)
                self._grown[run, name] = found[0], len(data)
                return
            number = found[0]
            part = _told_of(found[2], at, self._cursors[run].reached) if is_behind else found[2]
            if not part:
                break
            head = frames.name_bytes(run, name)
            self.pipe.send(frames.frame(frames.PART, head, frames.offset(at), NO_TIME, part))
            at += len(part)
            await self.pipe.drain()
        if number:
            self._grown[run, name] = number, at

    async def _send_lines(self, name: str) -> None:
        """Whole ones. A file that has become shorter is another one."""
        path, at, most = self.folder.file(0, name), self._lines.get(name, 0), PART_BYTES
        while (found := read_from(path, at, most)) is not None and not self.pipe.over:
            if found[1] < at:
                at = 0
                continue
            end = found[2].rfind(b"\n") + 1
            if not end and len(found[2]) == most < LONGEST_LINE_BYTES:
                most = LONGEST_LINE_BYTES
                continue
            end = end or (len(found[2]) if len(found[2]) == most else 0)
            if not end:
                break
            head = frames.name_bytes(self.folder.run, name)
            self.pipe.send(frames.frame(frames.PART, head, frames.offset(at), NO_TIME, found[2][:end]))
            at, most = at + end, PART_BYTES
            self._lines[name] = at
            await self.pipe.drain()

    async def _send_output(self, run: int) -> bool:
        """A part of it; and the time index, where the hub has the rest. Whether there was any."""
        cursor, end = self._cursors[run], self.ends.get(run, 0)
        if end <= cursor.reached or self._waits(run):
            return False
        most = PART_BYTES if self.is_slow else OUTPUT_PART_BYTES
        chunk = cursor.reader.read_at_once(most)
        if chunk is None or not chunk.data:
            chunk = await asyncio.to_thread(cursor.reader.read, most)
        if not chunk.data:
            # nothing more is there up to the end: the rest was lost
            cursor.reached = end
            self.pipe.send(frames.frame(frames.REACHED, frames.number(run), frames.offset(end)))
            await self._send_grown(run, shipped.TIMES)
            return True
        self._tell_first(run, cursor)
        name = shipped.segment(cursor.reader.segment)
        at = frames.offset(self._written_at_us(run, name))
        head = frames.name_bytes(run, name)
        self.pipe.send(frames.frame(frames.PART, head, frames.offset(chunk.offset), at, chunk.data))
        cursor.reached = chunk.end
        if self._is_limited(run):
            self._slow_until += len(chunk.data) / SLOW_BYTES_S
        if cursor.reached >= end or self.is_slow:
            await self._send_grown(run, shipped.TIMES)
        return True

    def _written_at_us(self, run: int, name: str) -> int:
        """When this part was written. For a hub that is behind: when output came last, which is what it shows."""
        last = output.last_written(self.folder.output(run)) if self.is_slow else None
        return written_at_us(self.folder.file(run, name)) if last is None else int(last * 1_000_000)

    def _is_limited(self, run: int) -> bool:
        return self.is_slow and not self._held and run == self.folder.run

    def _waits(self, run: int) -> bool:
        """Whether a slow hub has had as much as it may by now; after a while without any output, a second's worth."""
        if not self._is_limited(run):
            return False
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._slow_until = max(self._slow_until, now - 1.0)
        if self._slow_until <= now:
            return False
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(self._slow_until, self.wake)
        return True

    def _tell_first(self, run: int, cursor: Cursor) -> None:
        """Where the log begins now, when that has changed: it does when another segment is begun."""
        if cursor.reader.segment == cursor.segment:
            return
        cursor.segment = cursor.reader.segment
        first = next(iter(output.segments(cursor.reader.folder)), 0)
        if first != cursor.first:
            cursor.first = first
            self.pipe.send(frames.frame(frames.FIRST, frames.number(run), frames.offset(first)))


def _told_of(times: bytes, at: int, reached: int) -> bytes:
    """Of a part of the time index, which begins ``at``, the records before the first one beyond ``reached``."""
    step = TIME_RECORD_BYTES
    for start in range(-at % step, len(times) - step + 1, step):
        if times[start : start + 1] == AT_OFFSET and int.from_bytes(times[start + 9 : start + step], "big") > reached:
            return times[:start]
    return times[: len(times) - (at + len(times)) % step]


def _place(named: tuple[int, str]) -> tuple[bool, int]:
    """Files of a run first, in the order in which they come about; then the session's."""
    order = shipped.OF_RUN if named[0] else shipped.OF_SESSION
    return named[0] == 0, order.index(named[1])
