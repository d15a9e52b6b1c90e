"""Turns: what clients send is taken apart a little at a time, so that many tiny pieces hold up nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter

PIECE_BYTES = 2048
TURN_S = 0.002
"""How long one connection may keep the event loop before others have their turn."""
SHORTEST_WAIT_S = 0.01


class Share:
    """A part of the event loop's time. Who has used more waits until that is made up for; ``burst_s`` are free.

    Time is measured as it passes, also while the hub itself has to wait for a core.
    """

    __slots__ = ("_at", "_used_s", "above", "burst_s", "part")

    def __init__(self, part: float, burst_s: float, above: Share | None = None) -> None:
        self.part, self.burst_s, self.above = part, burst_s, above
        self._used_s = self._at = 0.0

    def wait_s(self, now: float) -> float:
        """How long to wait before more of it is used; 0.0 when there is some left."""
        self._used_s = max(0.0, self._used_s - (now - self._at) * self.part)
        self._at = now
        wait_s = max(0.0, (self._used_s - self.burst_s) / self.part)
        return wait_s if self.above is None else max(wait_s, self.above.wait_s(now))

    def use(self, seconds: float) -> None:
        self._used_s += seconds
        if self.above is not None:
            self.above.use(seconds)

    def is_idle(self, now: float) -> bool:
        """Whether nothing is lost when it is forgotten."""
        self.wait_s(now)
        return self._used_s == 0.0


class Intake:
    """What has come on a connection and is not taken apart yet. No more of it is read until that has been done.

    ``take`` takes a piece apart, ``may_take`` tells whether it can now, ``piece_bytes`` how large a piece may be.
    Without a ``share`` a connection has its turns, and as many as it likes.
    """

    def __init__(self, take: Callable[[bytes], None], may_take: Callable[[], bool]) -> None:
        self.take, self.may_take = take, may_take
        self.share: Share | None = None
        self.transport: asyncio.Transport | None = None
        self.held = bytearray()
        self.piece_bytes: Callable[[], int] = lambda: PIECE_BYTES
        self._turn: asyncio.Handle | None = None
        self._is_taking = self._is_paused = False

    def put(self, data: bytes) -> None:
        self.held += data
        if self._turn is None:
            self.go_on()
        else:
            self._read_or_pause()

    def soon(self) -> None:
        """It may be that more can be taken now."""
        if self._turn is None:
            self._turn = asyncio.get_running_loop().call_soon(self.go_on)
        self._is_paused = True
        self._read_or_pause()

    def go_on(self) -> None:
        """Take what one turn has time for."""
        if self._is_taking:
            return
        self._wait_no_longer()
        self._is_taking = True
        began = now = perf_counter()
        try:
            while self.held and self.may_take():
                share = self.share
                if share is not None and (wait_s := share.wait_s(now)):
                    self._turn = asyncio.get_running_loop().call_later(max(wait_s, SHORTEST_WAIT_S), self.go_on)
                    break
                if now - began > TURN_S:
                    self._turn = asyncio.get_running_loop().call_soon(self.go_on)
                    break
                size = self.piece_bytes()
                piece = bytes(self.held[:size])
                del self.held[:size]
                self.take(piece)
                before, now = now, perf_counter()
                if share is not None:
                    share.use(now - before)
        finally:
            self._is_taking = False
        self._read_or_pause()

    def rest(self) -> bytes:
        """Hand over what was not taken; nothing is taken from here on."""
        rest = bytes(self.held)
        self.close()
        return rest

    def close(self) -> None:
        self._wait_no_longer()
        self.held.clear()

    def _wait_no_longer(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def _read_or_pause(self) -> None:
        """Others resume reading as well: whoever puts more is paused again."""
        if self.transport is None or self.transport.is_closing():
            return
        if self.held:
            self._is_paused = True
            self.transport.pause_reading()
        elif self._is_paused and self.may_take():
            self._is_paused = False
            self.transport.resume_reading()
