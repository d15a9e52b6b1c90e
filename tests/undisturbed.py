"""Programs that clean up after themselves, however often somebody asks them to end meanwhile."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ASKING = (signal.SIGINT, signal.SIGTERM)


def leave_when_asked() -> None:
    """From now on, the first signal ends this program, with all that its ``finally`` does. Others change nothing: who
    is in a hurry has SIGKILL, and leaves everything behind."""

    def leave(number: int, _: FrameType | None) -> None:
        for each in ASKING:
            signal.signal(each, lambda *_: None)  # no SIG_IGN: what is started now would have that, too
        print("cleaning up", file=sys.stderr, flush=True)
        sys.exit(128 + number)

    for each in ASKING:
        signal.signal(each, leave)


@contextmanager
def undisturbed() -> Iterator[None]:
    """What is begun in here is done to its end; a signal that comes meanwhile counts then. In the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {each: signal.signal(each, lambda number, _: came.append(number)) for each in ASKING}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        if came:
            signal.raise_signal(came[0])


@contextmanager
def ended_by(end: Callable[[], object]) -> Iterator[None]:
    """``end`` is called in the end, also where a signal comes just before it has begun."""
    is_ended = False
    try:
        try:
            yield
        finally:
            with undisturbed():
                end()
                is_ended = True
    finally:
        if not is_ended:
            with undisturbed():
                end()
