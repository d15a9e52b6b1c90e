"""Whether a run is kept: what its keeper's lock and the processes that are named beside it prove."""

from __future__ import annotations

import os

from hitchpost import wire
from hitchpost.state import files
from hitchpost.values import value


def lock_path(run_folder: str) -> str:
    return os.path.join(run_folder, wire.KEEPER_LOCK)


@value
class Kept:
    """Whether a keeper has the run. ``stopped``: a signal has stopped it. ``doubt``: why nothing is certain."""

    alive: bool | None
    stopped: bool = False
    doubt: str = ""


def is_kept(run_folder: str) -> bool | None:
    return kept(run_folder).alive


def kept(run_folder: str) -> Kept:
    """The lock is proof of life only while the process that is named in it lives: another may have inherited it."""
    held = files.is_held(lock_path(run_folder))
    if held is not True:
        return Kept(held)
    named = _named(run_folder)
    if named is None:
        return Kept(True)  # it is being started, and will write its name
    pid, start, boot, namespace = named
    stat = files.process_stat(pid) if boot == files.boot_id() else None
    if stat is not None and int(stat[19]) == start and stat[0] not in (b"Z", b"X"):
        stopped = stat[0] in (b"T", b"t")
        unseen = stopped and agent_lives(run_folder) is False
        return Kept(True, stopped, "keeper stopped" if unseen else "")
    if namespace is not None and namespace != files.pid_namespace():
        return Kept(True)  # it is in another container, and its lock is all that can be seen of it from here
    if files.is_held(lock_path(run_folder)) is False or agent_lives(run_folder) is False:
        return Kept(False)
    return Kept(None, doubt="keeper dead, its lock held by another process")


def keeper_process(run_folder: str) -> int | None:
    """The pid that the keeper wrote into its lock, when that process is still the same one."""
    named = _named(run_folder)
    if named is None:
        return None
    pid, start, boot, _ = named
    return pid if boot == files.boot_id() and files.process_start(pid) == start else None


def agent_lives(run_folder: str) -> bool | None:
    """Whether the agent's first process lives; None when it is not written down which one that is."""
    try:
        agent = files.read_object(os.path.join(run_folder, wire.RUN)).get("agent")
    except (OSError, files.Unreadable, files.NewerSchema):
        return None
    if not isinstance(agent, dict) or not isinstance(agent.get("pid"), int):
        return None
    stat = files.process_stat(agent["pid"])
    return stat is not None and stat[0] not in (b"Z", b"X") and int(stat[19]) == agent.get("start")


def _named(run_folder: str) -> tuple[int, int, str, str | None] | None:
    """Pid, start time, boot and namespace, as the keeper wrote them into its lock. Older ones wrote no namespace."""
    try:
        pid, start, boot, *more = files.read_bytes(lock_path(run_folder)).decode().split()
        return int(pid), int(start), boot, more[0] if more else None
    except (OSError, ValueError):
        return None
