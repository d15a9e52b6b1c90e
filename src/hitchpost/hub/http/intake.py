"""Turns: what clients send is taken apart a little at a time, so that many tiny pieces hold up nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter

from hitchpost.hub.time_shares import SHORTEST_WAIT_S, Share

PIECE_BYTES = 2048
TURN_S = 0.002
"""How long one connection may keep the event loop before others have their turn."""


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
