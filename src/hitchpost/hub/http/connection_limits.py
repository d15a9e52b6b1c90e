"""ConnectionLimits for connections over TCP: few for those who are not known, and for each sign-in its own.

When there are too many, somebody has to go: of those who are not known the oldest that had its chance to speak, of the
others one of whoever has most. An owner of everything never goes for somebody else, and a request that is being
answered goes last.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from time import perf_counter
from typing import Protocol

from hitchpost.hub.http.tokenfile import Credential
from hitchpost.hub.time_shares import Share

OF_UNKNOWN, OF_LIMITED, OF_ONE = 0.3, 0.4, 0.15
"""Parts of the event loop's time: of all who are not known, of all who do not own everything, of one such sign-in."""
BURST_S = 0.1
MOST_SHARES = 1000


def part_of_descriptors(parts: int) -> int:
    """One of so many equal parts of the descriptors that this process may have."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] // parts


class Guest(Protocol):
    """A connection that has a place."""

    since: float

    @property
    def key(self) -> str:
        """Of its sign-in."""

    @property
    def is_owner(self) -> bool:
        """Whether it is an owner of everything."""

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""

    def hang_up(self) -> None:
        """End it at once."""


class ConnectionLimits:
    """Who is connected, the oldest first. WebSockets have places of their own as soon as they are known."""

    most_unknown = 64
    most_arriving = 1024
    """How many may be there that are not known, while they have not had their chance yet."""
    chance_s = 0.1
    most_known = 256
    most_of_one = 48
    """Of one sign-in that is not an owner's of everything."""
    unknown_s = 30.0
    """How long a connection may last without becoming known."""
    unknown_bytes = 64 << 10
    """How much of what such a connection sends is looked at."""
    request_s = 60.0
    """How long a known client may take to send one request."""

    def __init__(self, **limits: float) -> None:
        part = part_of_descriptors(8)
        self.most_known, self.most_arriving = min(self.most_known, part), min(self.most_arriving, part)
        self.most_unknown = min(self.most_unknown, part)
        for name, limit in limits.items():
            setattr(self, name, limit)
        self.unknown: dict[Guest, None] = {}
        self.known: dict[Guest, None] = {}
        self.share_of_unknown = Share(OF_UNKNOWN, BURST_S)
        self._share_of_limited = Share(OF_LIMITED, BURST_S)
        self._shares: dict[str, Share] = {}
        self._thinning: asyncio.TimerHandle | None = None

    def arrive(self, guest: Guest) -> None:
        self.unknown[guest] = None
        if len(self.unknown) > self.most_arriving:
            next(iter(self.unknown)).hang_up()
        elif len(self.unknown) > self.most_unknown and self._thinning is None:
            self._thinning = asyncio.get_running_loop().call_later(self.chance_s, self._thin_out)

    def settle(self, guest: Guest) -> None:
        """It is known who this is."""
        self.known[guest] = None
        if not guest.is_owner:
            mine = [other for other in self.known if other.key == guest.key]
            if len(mine) > self.most_of_one:
                _dispensable(mine).hang_up()
        if len(self.known) > self.most_known:
            others = [other for other in self.known if not other.is_owner] or list(self.known)
            (most, _), *_ = Counter(other.key for other in others).most_common(1)
            _dispensable([other for other in others if other.key == most]).hang_up()

    def leave(self, guest: Guest) -> None:
        self.unknown.pop(guest, None)
        self.known.pop(guest, None)

    def share_of(self, credential: Credential | None) -> Share | None:
        """None for an owner of everything, who need not be kept from anything."""
        if credential is None or credential.grant.is_whole:
            return None
        if credential.key not in self._shares:
            if len(self._shares) >= MOST_SHARES:
                now = perf_counter()
                self._shares = {key: share for key, share in self._shares.items() if not share.is_idle(now)}
            self._shares[credential.key] = Share(OF_ONE, BURST_S, self._share_of_limited)
        return self._shares[credential.key]

    def _thin_out(self) -> None:
        self._thinning = None
        loop = asyncio.get_running_loop()
        spare = len(self.unknown) - self.most_unknown
        for guest in list(self.unknown)[: max(0, spare)]:
            if (left_s := guest.since + self.chance_s - loop.time()) > 0:
                self._thinning = loop.call_later(left_s, self._thin_out)
                return
            guest.hang_up()


def _dispensable(guests: list[Guest]) -> Guest:
    """The oldest one, of those that wait for nothing if there are any."""
    return next((guest for guest in guests if not guest.is_busy), guests[0])
