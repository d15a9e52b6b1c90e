"""The agent's processes: who descends from the keeper, and ending all of them.

The keeper is a child sub-reaper, so an orphan of the agent becomes its child: whatever forked twice, changed its
session or emptied its environment is still below the keeper.
"""

from __future__ import annotations

import os
from _signal import SIGKILL, SIGSTOP

from hitchpost.store.process_marks import is_keeper
from hitchpost.system import process
from hitchpost.system.cgroup import ControlGroups


class Tree:
    def __init__(self, groups: ControlGroups) -> None:
        self.groups = groups
        self.apart: set[int] = set()
        """Children of the keeper that are its own, and not the agent's."""

    def pids(self) -> list[int]:
        """Every live descendant but other keepers and what is theirs. Empty only when there is none.

        A process that forks and exits all the time is gone before it is looked at, and by then its child is ours: so
        an empty result counts only when no new child has come while we looked. Only this process reaps its children.
        """
        if _childless():
            return []
        while True:
            children = process.children(os.getpid())
            found: list[int] = []
            todo = list(children)
            while todo:
                pid = todo.pop()
                if pid not in self.apart and process.has_live_thread(pid) and not is_keeper(pid):
                    found.append(pid)
                    todo.extend(process.children(pid))
            if found or set(process.children(os.getpid())) <= set(children):
                return found

    def kill(self) -> int:
        """One round of SIGKILL. Stops them first, so that none can fork away; the count of those still there."""
        self.groups.kill()
        seen: set[int] = set()
        while new := set(self.pids()) - seen:
            for pid in new:
                process.send(pid, SIGSTOP)
            seen |= new
        for pid in seen:
            process.send(pid, SIGKILL)
        return len(seen)


def _childless() -> bool:
    """Whether this process has not even a dead child: then nothing is below it, and nothing has to be looked for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False
