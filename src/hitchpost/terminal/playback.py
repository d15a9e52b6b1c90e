"""A recording in parts: how long it is, where it stands still, and what came after any byte of it.

A player that shows a moment needs the screen at that byte and what follows, not the tens of megabytes before.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from hitchpost import wire
from hitchpost.terminal import output
from hitchpost.terminal.recording import beginning

IDLE_S = 2.0
MOST_STRETCHES = 2000
PART_BYTES = 256 * 1024
MOST_EVENTS = 4000


@dataclass(frozen=True, slots=True)
class Outline:
    """``began`` is in seconds since 1970. In each of ``idle``, from and to in seconds since then, nothing came."""

    began: float | None
    length_s: float
    idle: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Size:
    at_s: float
    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class Written:
    """Bytes of the terminal. ``lost`` ones before them are not in the log any more."""

    at_s: float
    data: bytes
    lost: int


@dataclass(frozen=True, slots=True)
class Part:
    """What came from ``offset`` on, before ``next``; that is None at the end of what was recorded so far."""

    offset: int
    next: int | None
    events: tuple[Size | Written, ...]


def outline(output_folder: str) -> Outline:
    """Of many idle stretches the longest ones are told."""
    begin = beginning(output_folder)
    if begin is None:
        return Outline(None, 0.0, ())
    stretches: list[tuple[float, float]] = []
    last = 0.0
    for moment in _moments(output_folder, begin.at):
        if moment.at - last > IDLE_S:
            stretches.append((last, moment.at))
        last = moment.at
    longest = heapq.nlargest(MOST_STRETCHES, stretches, key=lambda stretch: stretch[1] - stretch[0])
    return Outline(begin.at, last, tuple(sorted(longest)))


def offset_at(output_folder: str, at_s: float) -> int:
    """How far the output had come ``at_s`` seconds after the beginning."""
    begin = beginning(output_folder)
    offset = output.bounds(output_folder)[0]
    for moment in _moments(output_folder, begin.at if begin else 0.0):
        if moment.at > at_s:
            break
        if moment.kind == wire.AT_OFFSET:
            offset = max(offset, moment.value)
    return offset


def part(output_folder: str, offset: int) -> Part:
    """Sizes that the terminal was given at ``offset`` itself belong to this part, not to the one before."""
    begin = beginning(output_folder)
    events: list[Size | Written] = []
    left = PART_BYTES
    reached = 0
    with output.Reader(output_folder, offset) as reader:
        for moment in _moments(output_folder, begin.at if begin else 0.0):
            if moment.kind == wire.AT_SIZE and reached >= offset:
                if left <= 0:
                    return Part(offset, reader.offset, tuple(events))
                events.append(Size(moment.at, moment.value >> 32, moment.value & 0xFFFFFFFF))
            if moment.kind != wire.AT_OFFSET:
                continue
            reached = moment.value
            while reader.offset < reached:
                if left <= 0 or len(events) >= MOST_EVENTS:
                    return Part(offset, reader.offset, tuple(events))
                chunk = reader.read(min(left, reached - reader.offset))
                if not chunk.data:
                    break
                left -= len(chunk.data)
                events.append(Written(moment.at, chunk.data, chunk.lost))
    return Part(offset, None, tuple(events))


def _moments(output_folder: str, began: float) -> Iterator[output.Moment]:
    """The time index, in seconds since the beginning; time never goes back. Bytes behind its end come with the last."""
    now, reached, ended = 0.0, 0, False
    for moment in output.moments(output_folder):
        now = max(now, moment.at - began)
        ended = ended or moment.kind == wire.AT_EXIT
        reached = moment.value if moment.kind == wire.AT_OFFSET else reached
        yield output.Moment(moment.kind, now, moment.value)
    end = output.bounds(output_folder)[1]
    if end > reached:
        late = (output.last_written(output_folder) or began) - began
        yield output.Moment(wire.AT_OFFSET, now if ended else max(now, late), end)
