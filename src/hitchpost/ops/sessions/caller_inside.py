"""Whether this process is one of those that a session's end takes along."""

from __future__ import annotations

import os

from hitchpost import wire
from hitchpost.errors import Refused
from hitchpost.model import run as runs
from hitchpost.ops.views.observe import Observation
from hitchpost.store import files, process_marks
from hitchpost.store.runfiles import Process, read_run
from hitchpost.system import cgroup, process


def refuse_inside(seen: Observation, deed: str) -> None:
    """Raise ``Refused`` where we would be ended by the first half of what we were asked to do. Nothing is done then.

    ``deed`` is the command that does it from outside.
    """
    if seen.facts.state in runs.LIVE and is_inside(seen):
        raise Refused(
            f"this command runs inside {seen.record.name} and would be ended with it, halfway through",
            f"in a terminal outside it: hitch {deed} {seen.record.word}",
        )


def is_inside(seen: Observation) -> bool:
    run = seen.facts.run
    ours = {wire.SESSION_MARK: seen.record.id, wire.RUN_MARK: str(run), wire.HOME_MARK: files.home_id(seen.folder)}
    if all(os.environ.get(name) == text for name, text in ours.items()):
        return True
    if os.getpid() in cgroup.find(process_marks.group_name(seen.folder, run)).pids():
        return True
    written = read_run(seen.run_folder)
    return written is not None and written.agent in _ancestors()


def _ancestors() -> list[Process]:
    """As far up as can be seen."""
    found = []
    pid = os.getppid()
    while pid > 1 and (stat := process.stat(pid)) is not None:
        found.append(Process(pid, int(stat[19])))
        pid = int(stat[1])
    return found
