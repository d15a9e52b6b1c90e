"""Standard descriptors that the caller has closed are opened on nothing, before any file of ours can take their place.

The keeper imports this module.
"""

from __future__ import annotations

import os
import sys

STANDARD = (0, 1, 2)


def open_standard() -> None:
    """Nothing that is opened afterwards has a number below 3, so nobody's messages are written into it."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (fd := os.open(os.devnull, os.O_RDWR)) in STANDARD:
        os.set_inheritable(fd, True)
    os.close(fd)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
