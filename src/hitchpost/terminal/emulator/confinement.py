"""What an emulator's process gives up before it reads a byte that an agent wrote."""

from __future__ import annotations

import os
import resource
import signal
from typing import Any

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
MOST_MEMORY_BYTES = 512 << 20


def close_all_but(kept: int) -> None:
    """Close every descriptor but the standard ones and this: what is open, not a million that might be."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != kept:
            try:
                os.close(int(name))
            except OSError:
                continue  # the listing's own


def confine(libc: Any, socket_fd: int, parent: int) -> None:
    """Keep one socket, no other descriptor, so much memory, and end with the parent."""
    libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    close_all_but(socket_fd)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    for kind, most in (
        (resource.RLIMIT_AS, used + MOST_MEMORY_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


class Allowance:
    """Processor time: some for each request and each byte, saved up to a few seconds. The kernel ends who overdraws."""

    MOST_S = 3.0
    REQUEST_S = 1.0
    BYTES_PER_S = 1 << 20

    def __init__(self) -> None:
        self._left_s = self.MOST_S
        self._used_s = _used_s()

    def grant(self, size_bytes: int, *, answered: bool) -> None:
        """Before each frame."""
        used_s = _used_s()
        earned_s = size_bytes / self.BYTES_PER_S + (self.REQUEST_S if answered else 0)
        self._left_s = min(self.MOST_S, self._left_s - (used_s - self._used_s) + earned_s)
        self._used_s = used_s
        soft = int(used_s + max(self._left_s, 0)) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _used_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
