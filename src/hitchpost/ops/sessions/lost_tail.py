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
    files.append_bytes(os.path.join(folder, wire.TIMES), lost, durable=False)
    return True
