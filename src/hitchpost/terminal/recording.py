"""A run as a recording: what its terminal showed, with the times. Written as asciicast v3, one JSON line per event."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass

from hitchpost import wire
from hitchpost.terminal import output

OUTPUT, RESIZE, MARK, EXIT = "o", "r", "m", "x"
TERMINAL = "xterm-256color"
USUAL_SIZE = (80, 24)
EXIT_UNKNOWN = 1 << 32
LARGEST_EVENT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Event:
    """``at`` is in seconds since 1970; ``code`` and ``data`` are asciicast's."""

    at: float
    code: str
    data: str


@dataclass(frozen=True, slots=True)
class Beginning:
    """When the recording begins, and how large the terminal was."""

    at: float
    cols: int
    rows: int


def beginning(output_folder: str) -> Beginning | None:
    """None when nothing was recorded."""
    at: float | None = None
    for moment in output.moments(output_folder):
        at = moment.at if at is None else at
        if moment.kind == wire.AT_SIZE:
            return Beginning(at, *_size(moment.value))
        if moment.kind == wire.AT_OFFSET:
            break
    if at is None:
        at = output.last_written(output_folder)
    return None if at is None else Beginning(at, *USUAL_SIZE)


def events(output_folder: str) -> Iterator[Event]:
    """Everything in order. A clock that was set back stands still until it is where it was."""
    with output.Reader(output_folder) as reader:
        tape = _Tape(reader)
        now, end = 0.0, 0
        size: int | None = None
        code: int | None = None
        for moment in output.moments(output_folder):
            now = max(now, moment.at)
            if moment.kind == wire.AT_OFFSET:
                yield from tape.until(moment.value, now)
                end = moment.value
            elif moment.kind == wire.AT_SIZE:
                if size not in (None, moment.value):
                    cols, rows = _size(moment.value)
                    yield Event(now, RESIZE, f"{cols}x{rows}")
                size = moment.value
            elif moment.kind == wire.AT_EXIT:
                code = moment.value
        # behind the last record: a run that lives, or whose keeper was killed
        now = max(now, output.last_written(output_folder) or now) if code is None else now
        yield from tape.until(None, now)
        yield from tape.finish(now)
        if reader.offset < end:
            yield _gap(now, end - reader.offset)
        if code is not None and code != EXIT_UNKNOWN:
            yield Event(now, EXIT, str(code))


def asciicast(output_folder: str, title: str) -> Iterator[str]:
    """The lines of an asciicast v3 file. Times between events are rounded without adding up."""
    begin = beginning(output_folder) or Beginning(0.0, *USUAL_SIZE)
    term = {"cols": begin.cols, "rows": begin.rows, "type": TERMINAL}
    yield json.dumps({"version": 3, "term": term, "timestamp": int(begin.at), "title": title}) + "\n"
    passed_us = 0
    for event in events(output_folder):
        at_us = max(passed_us, round((event.at - begin.at) * 1_000_000))
        yield json.dumps([(at_us - passed_us) / 1_000_000, event.code, event.data]) + "\n"
        passed_us = at_us


class _Tape:
    """The log's bytes as text, cut where the time index says. No character is split; a gap becomes a mark."""

    def __init__(self, reader: output.Reader) -> None:
        self._reader = reader
        self._chunk = output.Chunk(reader.offset, b"")
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def until(self, end: int | None, at: float) -> Iterator[Event]:
        """What the log holds before the offset ``end``; all that it holds when that is None."""
        while True:
            if not self._chunk.data:
                if end is not None and self._reader.offset >= end:
                    return
                self._chunk = self._reader.read(LARGEST_EVENT_BYTES)
                if not self._chunk.data:
                    return
            if end is not None and self._chunk.offset >= end:
                return
            if self._chunk.lost:
                yield from self.finish(at)
                yield _gap(at, self._chunk.lost)
            size = len(self._chunk.data) if end is None else min(len(self._chunk.data), end - self._chunk.offset)
            text = self._decoder.decode(self._chunk.data[:size])
            self._chunk = output.Chunk(self._chunk.offset + size, self._chunk.data[size:])
            if text:
                yield Event(at, OUTPUT, text)

    def finish(self, at: float) -> Iterator[Event]:
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        if text:
            yield Event(at, OUTPUT, text)


def _gap(at: float, lost: int) -> Event:
    return Event(at, MARK, output.gap_text(lost))


def _size(value: int) -> tuple[int, int]:
    return value >> 32, value & 0xFFFFFFFF
