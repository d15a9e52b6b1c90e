"""Much work of the same kind, shared among the processors."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Texts = tuple[str, ...]

WORTH_SHARING = 500
"""Less than this is done sooner than processes are started for it."""


def done(todo: list[str], work: Callable[[str], Texts]) -> list[Texts]:
    """What ``work`` gives for each item: texts in ASCII, of one line each. Only a process without threads may fork."""
    count = (
        len(os.sched_getaffinity(0)) if len(todo) >= WORTH_SHARING and len(os.listdir("/proc/self/task")) == 1 else 1
    )
    helpers = [_helper(todo[number::count], work) for number in range(1, count)]
    found = [work(item) for item in todo[::count]]
    for pid, told, share in helpers:
        _, status = os.waitpid(pid, 0)
        found += _read(told) if status == 0 else map(work, share)
        os.close(told)
    return found


def _helper(share: list[str], work: Callable[[str], Texts]) -> tuple[int, int, list[str]]:
    """A process that does its share and leaves the results in a file without a name."""
    told = os.memfd_create("hitchpost-share")
    pid = os.fork()
    if pid:
        return pid, told, share
    code = 1
    try:
        text = "\n".join("\n".join((str(len(texts)), *texts)) for texts in map(work, share))
        with open(told, "wb") as file:
            file.write(text.encode("ascii"))
        code = 0
    finally:
        os._exit(code)


def _read(told: int) -> list[Texts]:
    lines = os.pread(told, os.fstat(told).st_size, 0).decode("ascii").split("\n")
    found, at = [], 0
    while at < len(lines) and lines[at]:
        count = int(lines[at])
        found.append(tuple(lines[at + 1 : at + 1 + count]))
        at += 1 + count
    return found
