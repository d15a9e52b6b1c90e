from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from hitchpost.system.readable import readable

FAR = 1500
"""A number that ``select.select`` does not take."""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """One whose reading end has a high number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft <= FAR:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, FAR + 100), hard))
    low, write = os.pipe()
    os.dup2(low, FAR)
    os.close(low)
    with ExitStack() as stack:
        stack.callback(os.close, FAR)
        stack.callback(os.close, write)
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        yield FAR, write


def test_what_has_a_high_number_is_waited_for_as_well(pipe: tuple[int, int]) -> None:
    read, write = pipe
    assert readable([read], 0) == []
    os.write(write, b"x")
    assert readable([read], None) == [read]


def test_what_is_closed_at_its_other_end_can_be_read() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        assert readable([ours], 10) == [ours]


def test_nobody_waits_longer_than_was_said() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert readable([ours], 0.01) == []
        assert readable([ours], -1) == []
