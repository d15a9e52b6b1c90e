"""Waiting until something can be read. ``select.select`` refuses descriptors from 1024 on, which a large hub has."""

from __future__ import annotations

import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol, TypeVar

    class HasFileno(Protocol):
        def fileno(self) -> int: ...

    T = TypeVar("T", bound=int | HasFileno)


def readable(files: Sequence[T], timeout_s: float | None) -> list[T]:
    """Those that can be read, or are closed at their other end, once there are any; none when the time is over.

    None waits for ever.
    """
    by_fd: dict[int, T] = {file if isinstance(file, int) else file.fileno(): file for file in files}
    poll = select.poll()
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    found = poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000)
    return [by_fd[fd] for fd, _ in found]
