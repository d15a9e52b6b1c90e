"""The agent's processes: who descends from the keeper, and ending all of them.

The keeper is a child sub-reaper, so an orphan of the agent becomes its child: whatever forked twice, changed its
session or emptied its environment is still below the keeper.
"""

from __future__ import annotations

import os
from _signal import SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGSTOP, SIGTERM, pidfd_send_signal

from hitchpost import wire
from hitchpost.keeper.cage import Cage
from hitchpost.state import files

CHILDREN_ARE_LISTED = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


class Tree:
    def __init__(self, cage: Cage) -> None:
        self.cage = cage

    def pids(self) -> list[int]:
        """Every live descendant but other keepers and what is theirs. Empty only when there is none.

        A process that forks and exits all the time is gone before it is looked at, and by then its child is ours: so
        an empty result counts only when no new child has come while we looked. Only this process reaps its children.
        """
        if _childless():
            return []
        while True:
            children = _children(os.getpid())
            found: list[int] = []
            todo = list(children)
            while todo:
                pid = todo.pop()
                if lives(pid) and not is_keeper(pid):
                    found.append(pid)
                    todo.extend(_children(pid))
            if found or set(_children(os.getpid())) <= set(children):
                return found

    def signal(self, number: int) -> int:
        """Send ``number`` to every descendant; the count of those reached."""
        return sum(send(pid, number) for pid in self.pids())

    def kill(self) -> int:
        """One round of SIGKILL. Stops them first, so that none can fork away; the count of those still there."""
        self.cage.kill()
        seen: set[int] = set()
        while new := set(self.pids()) - seen:
            for pid in new:
                send(pid, SIGSTOP)
            seen |= new
        for pid in seen:
            send(pid, SIGKILL)
        return len(seen)

    def resume(self) -> None:
        self.signal(SIGCONT)


def _childless() -> bool:
    """Whether this process has not even a dead child: then nothing is below it, and nothing has to be looked for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def send(pid: int, number: int) -> bool:
    """Signal one process through a descriptor, so a reused number is never hit between the look and the signal."""
    before = files.process_start(pid)
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if before is None or files.process_start(pid) != before:
            return False
        pidfd_send_signal(fd, number)
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def ignores(pid: int, number: int) -> bool:
    try:
        return bool(_signals(pid, b"SigIgn") & _bit(number))
    except OSError:
        return False


def is_dying(pid: int) -> bool:
    """Whether a process is just ending, or a signal waits for it that will end it: a terminal's end sends one."""
    fields = files.process_stat(pid)
    if fields is None or int(fields[6]) & files.PF_EXITING:
        return True
    try:
        waiting = _signals(pid, b"SigPnd") | _signals(pid, b"ShdPnd")
        kept_off = _signals(pid, b"SigIgn") | _signals(pid, b"SigCgt") | _signals(pid, b"SigBlk")
    except OSError:
        return True
    return bool(waiting & ~kept_off & FATAL)


def _signals(pid: int, kind: bytes) -> int:
    """The set of signals that ``/proc/PID/status`` has under this word. Raises ``OSError`` when the process is gone."""
    _, _, rest = files.read_bytes(f"/proc/{pid}/status").partition(kind + b":")
    mask = rest.split(b"\n", 1)[0].strip()
    return int(mask, 16) if mask else 0


def _bit(number: int) -> int:
    return 1 << (number - 1)


FATAL = _bit(SIGHUP) | _bit(SIGINT) | _bit(SIGKILL) | _bit(SIGTERM)


def is_keeper(pid: int) -> bool:
    """Whether ``pid`` is the keeper of some session, or a hub. What was started from inside another session is not
    its child: a mark names the lock that such a process holds, and the lock names the process."""
    try:
        environment = files.read_bytes(f"/proc/{pid}/environ")
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
        return files.read_bytes(lock).split()[:1] == [str(pid).encode()] and files.is_held(lock) is True
    except OSError:
        return False


def is_tmux_server(pid: int, environment: bytes) -> bool:
    """Whether ``pid`` is a tmux server of ours: it, and what is in its panes, belong to a session of their own."""
    return wire.TMUX_MARK.encode() in environment and files.read_bytes(f"/proc/{pid}/comm").startswith(b"tmux")


def _children(pid: int) -> list[int]:
    """The children of all threads of ``pid``, the dead among them. Where the kernel keeps no list, all are asked."""
    found: list[int] = []
    try:
        if CHILDREN_ARE_LISTED:
            for thread in os.listdir(f"/proc/{pid}/task"):
                found.extend(map(int, files.read_bytes(f"/proc/{pid}/task/{thread}/children").split()))
        else:
            for name in os.listdir("/proc"):
                fields = files.process_stat(int(name)) if name.isdigit() else None
                if fields is not None and int(fields[1]) == pid:
                    found.append(int(name))
    except OSError:
        return found
    return found


def below(pid: int) -> list[int]:
    """The live descendants of any process."""
    found: list[int] = []
    todo = _children(pid)
    while todo:
        one = todo.pop()
        if lives(one):
            found.append(one)
        todo.extend(_children(one))
    return found


def lives(pid: int) -> bool:
    """Whether any thread of ``pid`` is alive: the first one may have ended before the others."""
    fields = files.process_stat(pid)
    return fields is not None and (fields[0] not in (b"Z", b"X") or int(fields[17]) > 1)
