"""Whether this process is one of those that a session's end takes along."""

from __future__ import annotations

import os

from hitchpost import wire
from hitchpost.errors import Refused
from hitchpost.keeper import cage
from hitchpost.model import run as runs
from hitchpost.ops.look import Seen
from hitchpost.state import files


def refuse_inside(seen: Seen, deed: str) -> None:
    """Raise ``Refused`` where we would be ended by the first half of what we were asked to do. Nothing is done then.

    ``deed`` is the command that does it from outside.
    """
    if seen.facts.state in runs.LIVE and is_inside(seen):
        raise Refused(
            f"this command runs inside {seen.record.name}, whose end would end it halfway",
            f"in a terminal outside of it: hitch {deed} {seen.record.word}",
        )


def is_inside(seen: Seen) -> bool:
    run = seen.facts.run
    marks = {wire.SESSION_MARK: seen.record.id, wire.RUN_MARK: str(run), wire.HOME_MARK: files.home_id(seen.folder)}
    if all(os.environ.get(name) == text for name, text in marks.items()):
        return True
    return os.getpid() in cage.find(cage.name_of(seen.folder, run)).pids() or _agent(seen) in _ancestors()


def _agent(seen: Seen) -> tuple[object, object]:
    try:
        agent = files.read_object(os.path.join(seen.run_folder, wire.RUN)).get("agent")
    except (OSError, files.Unreadable, files.NewerSchema):
        agent = None
    return (agent.get("pid"), agent.get("start")) if isinstance(agent, dict) else (None, None)


def _ancestors() -> list[tuple[object, object]]:
    """Pid and start time of each, as far up as can be seen."""
    found: list[tuple[object, object]] = []
    pid = os.getppid()
    while pid > 1 and (stat := files.process_stat(pid)) is not None:
        found.append((pid, int(stat[19])))
        pid = int(stat[1])
    return found
