"""How processes that are ours are found: by marks in their environment, and by the names of their control groups."""

from __future__ import annotations

import os

from hitchpost import wire
from hitchpost.store import files, locks
from hitchpost.system import process
from hitchpost.system.cgroup import PREFIX


def is_keeper(pid: int) -> bool:
    """Whether ``pid`` is the keeper of some session, or a hub. What was started from inside another session is not
    its child: a mark names the lock that such a process holds, and the lock names the process."""
    try:
        environment = process.read(f"/proc/{pid}/environ")
        texts = environment.split(b"\0")
        for mark, name in ((wire.KEEPER_MARK, f"/{wire.KEEPER_LOCK}"), (wire.HUB_MARK, "")):
            start = mark.encode() + b"="
            for text in texts:
                if text.startswith(start) and _holds(pid, os.fsdecode(text[len(start) :]) + name):
                    return True
        return is_tmux_server(pid, environment)
    except OSError:
        return False


def _holds(pid: int, lock: str) -> bool:
    try:
        return files.read_bytes(lock).split()[:1] == [str(pid).encode()] and locks.is_held(lock) is True
    except OSError:
        return False


def is_tmux_server(pid: int, environment: bytes) -> bool:
    """Whether ``pid`` is a tmux server of ours: it, and what is in its panes, belong to a session of their own."""
    return wire.TMUX_MARK.encode() in environment and process.read(f"/proc/{pid}/comm").startswith(b"tmux")


def group_name(session_folder: str, run: int) -> str:
    """The home is in the name: a copied home has the same sessions, and the groups are not its own."""
    return f"{PREFIX}{files.home_id(session_folder)}.{os.path.basename(session_folder)}.{run}"


def old_group_name(session_folder: str, run: int) -> str:
    """The name that keepers gave it when homes were not told apart."""
    return f"{PREFIX}{os.path.basename(session_folder)}.{run}"
