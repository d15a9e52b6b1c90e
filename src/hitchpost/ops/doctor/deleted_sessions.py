"""Keepers whose session's folder was deleted under them: their agents work on, and nothing else tells of them.

Such a keeper does not end its agent, because nobody has asked for that, and it cannot write anything down any more. It
is found among the processes by the lock that it still holds.
"""

from __future__ import annotations

import os
import signal
import time

from hitchpost import wire
from hitchpost.ops.doctor.finding import Finding, problem
from hitchpost.store import files, process_marks
from hitchpost.store.home import SESSIONS
from hitchpost.system import process
from hitchpost.values import value

ENDS_S = 30.0
DELETED = " (deleted)"


@value
class Unseen:
    """A keeper without a folder: its process, and the session and run that it keeps."""

    pid: int
    session: str
    run: str


def unseen(home: str) -> list[Unseen]:
    """The keepers of this home whose folder is gone. One whose home was moved has its folder."""
    top = os.path.join(os.path.realpath(home), SESSIONS)
    found = []
    for name in os.listdir("/proc"):
        path = _deleted_lock(int(name)) if name.isdigit() else ""
        words = path.removeprefix(f"{top}/").split("/")
        if path.startswith(f"{top}/") and len(words) == 4:
            found.append(Unseen(int(name), session=words[0], run=words[2]))
    return sorted(found, key=lambda keeper: keeper.pid)


def findings(home: str) -> list[Finding]:
    return [
        problem(
            "keeper",
            f"the folder of {keeper.session} was deleted; its keeper (pid {keeper.pid}) "
            f"and the agent of run {keeper.run} are still running",
            "run: hitch doctor --fix (ends both)",
        )
        for keeper in unseen(home)
    ]


def end_unseen(home: str) -> tuple[list[str], list[str]]:
    """End those keepers, and with each its agent; what was done and what could not be, in words."""
    done, failed = [], []
    for keeper in unseen(home):
        if _end(keeper.pid):
            done.append(f"ended the keeper and the agent of {keeper.session}, whose folder was deleted")
        else:
            failed.append(f"the keeper of {keeper.session} (pid {keeper.pid}) did not end within {ENDS_S:g} s")
    return done, failed


def _deleted_lock(pid: int) -> str:
    """Where the lock was that a keeper holds and that has no name any more; empty for every other process."""
    mark = f"{wire.KEEPER_MARK}=".encode()
    try:
        if mark not in files.read_bytes(f"/proc/{pid}/environ"):
            return ""
        for fd in os.listdir(f"/proc/{pid}/fd"):
            path = os.readlink(f"/proc/{pid}/fd/{fd}")
            if path.endswith(f"/{wire.KEEPER_LOCK}{DELETED}") and os.stat(f"/proc/{pid}/fd/{fd}").st_nlink == 0:
                return path.removesuffix(DELETED)
    except OSError:
        return ""
    return ""


def _end(pid: int) -> bool:
    """Ask the keeper to end its agent and to leave. A tmux server around it, whose socket is gone too, goes as well."""
    stat = process.stat(pid)
    server = int(stat[1]) if stat is not None else 0
    has_server = _is_tmux_server(server)
    process.send(pid, signal.SIGTERM)
    deadline = time.monotonic() + ENDS_S
    while _deleted_lock(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    if has_server:
        process.send(server, signal.SIGTERM)
    return True


def _is_tmux_server(pid: int) -> bool:
    try:
        return process_marks.is_tmux_server(pid, files.read_bytes(f"/proc/{pid}/environ"))
    except OSError:
        return False
