"""A limit for work that computes and cannot be asked to stop, such as a pattern on a screen that an agent has drawn."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from hitchpost.watcher.looks import NothingSeen


class TooLong(NothingSeen):
    """Raised when work has taken more time on a processor than it may."""


def _ring(number: int, frame: object) -> None:
    raise TooLong("the agent's screen cannot be read: the rules for it take too long")


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises ``TooLong`` inside. Only in the main thread; patterns look for signals while they search."""
    before = signal.signal(signal.SIGVTALRM, _ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
