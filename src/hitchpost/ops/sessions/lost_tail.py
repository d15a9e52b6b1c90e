"""The end of a run that nobody saw: what a pod has written last may be lost with it, and readers are told so."""

from __future__ import annotations

import os
import time

from hitchpost import wire
from hitchpost.store import files, runfiles
from hitchpost.terminal import output


def note_lost_tail(run_folder: str) -> bool:
    """A gap at the end of the log, of which nobody knows the size; True when there was none yet.

    It goes when the pod's volume comes back with the rest: the index of the pod takes the place of this one.
    """
    folder = os.path.join(run_folder, wire.OUTPUT)
    if runfiles.has_exit(run_folder) or not os.path.isdir(folder):
        return False
    end = output.bounds(folder)[1]
    if output.told_end(folder) > end:
        return False
    lost = wire.time_record(wire.AT_OFFSET, time.time_ns() // 1000, end + wire.UNCOUNTED)
    _append(os.path.join(folder, wire.TIMES), lost)
    return True


def _append(path: str, record: bytes) -> None:
    """Behind the last whole record: a part of one may have come before its pod went."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        whole = os.fstat(fd).st_size // wire.TIME_RECORD_BYTES * wire.TIME_RECORD_BYTES
        os.ftruncate(fd, whole)
        os.lseek(fd, whole, os.SEEK_SET)
        files.write_all(fd, record)
    finally:
        os.close(fd)
