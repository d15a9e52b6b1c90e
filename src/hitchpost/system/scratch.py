"""A folder for a moment, where no container can write.

It is not in ``TMPDIR``: a person may mount that, or work around it. ``runtimes/mounts.py`` keeps ``MEMORY`` and the
state folder out of containers. And it is not on a disk: for minutes after files were deleted, ext4 passes over each of
their inodes before it finds a free one, which takes a millisecond for each new file where thousands were.
"""

from __future__ import annotations

import os
import tempfile

MEMORY = "/dev/shm"  # noqa: S108 (folders in it have random names and mode 0700)


def scratch_folder(otherwise: str, room_bytes: int) -> str:
    """Make one in memory, if there is so much room; else in the folder ``otherwise``."""
    return tempfile.mkdtemp(prefix="hitchpost-git-", dir=MEMORY if _has_room(room_bytes) else otherwise)


def _has_room(size_bytes: int) -> bool:
    try:
        found = os.statvfs(MEMORY)
    except OSError:
        return False
    return os.access(MEMORY, os.W_OK | os.X_OK) and found.f_bavail * found.f_frsize >= size_bytes
