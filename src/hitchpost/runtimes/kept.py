"""Whether a run is kept: what its keeper's lock and the processes that are named beside it prove."""

from __future__ import annotations

import os

from hitchpost import wire
from hitchpost.errors import NOT_READ, Refused
from hitchpost.store import files, locks
from hitchpost.store.runfiles import read_run
from hitchpost.system import process
from hitchpost.values import value

LOCK_WAIT_S = 2.0


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
    """The lock is proof of life only while the process that is named in it lives: another may have inherited it. Where
    the lock was removed, that process is what is left to be looked at, until the keeper has made a new one."""
    path = lock_path(run_folder)
    held = locks.is_held(path)
    if held is False and os.path.lexists(path):
        held = locks.is_held(path)  # it may have been made again a moment ago
    elif held is False and (letter := _keeper_without_lock(run_folder)) is not None:
        stopped = letter in (b"T", b"t")
        return Kept(True, stopped, "keeper stopped" if stopped and agent_lives(run_folder) is False else "")
    if held is not True:
        return Kept(held)
    named = _named(run_folder)
    if named is None:
        return Kept(True)  # it is being started, and will write its name
    pid, start, boot, namespace = named
    stat = process.stat(pid) if boot == process.boot_id() else None
    if stat is not None and int(stat[19]) == start and stat[0] not in (b"Z", b"X"):
        stopped = stat[0] in (b"T", b"t")
        unseen = stopped and agent_lives(run_folder) is False
        return Kept(True, stopped, "keeper stopped" if unseen else "")
    if namespace is not None and namespace != process.pid_namespace():
        return Kept(True)  # it is in another container, and its lock is all that can be seen of it from here
    if locks.is_held(lock_path(run_folder)) is False or agent_lives(run_folder) is False:
        return Kept(False)
    return Kept(None, doubt="keeper dead, its lock held by another process")


def _keeper_without_lock(run_folder: str) -> bytes | None:
    """How the process is, by its letter in /proc, that ``run.json`` names as the keeper; None when it is gone."""
    run = read_run(run_folder)
    if run is None or run.keeper is None or not run.same_boot:
        return None
    if is_copied(run.home, os.path.dirname(os.path.dirname(run_folder))):
        return None
    stat = process.stat(run.keeper.pid)
    if stat is None or int(stat[19]) != run.keeper.start or stat[0] in (b"Z", b"X"):
        return None
    return stat[0]


def keeper_process(run_folder: str) -> int | None:
    """The pid that the keeper wrote into its lock, when that process is still the same one."""
    named = _named(run_folder)
    if named is None:
        return None
    pid, start, boot, _ = named
    return pid if boot == process.boot_id() and process.start_time(pid) == start else None


def agent_lives(run_folder: str) -> bool | None:
    """Whether the agent's first process lives; None when it is not written down which one that is.

    In a copy of a home it is not this home's agent, whatever is written down.
    """
    run = read_run(run_folder)
    if run is None:
        return None
    if is_copied(run.home, os.path.dirname(os.path.dirname(run_folder))):
        return False
    return run.same_boot and run.agent.is_alive


def is_copied(home: str, session_folder: str) -> bool:
    """Whether a file that names this home by its id came here with a copy of another one."""
    return home not in ("", files.home_id(session_folder))


def take_lock(run_folder: str, name: str) -> int:
    """The keeper's lock of a run as an open descriptor. A probe may hold it for an instant, so it is tried for a while.

    Raises ``Refused``.
    """
    path = lock_path(run_folder)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        locks.wait_for_flock(fd, path, LOCK_WAIT_S)
        os.ftruncate(fd, 0)  # nobody is named until the keeper names itself
    except locks.LockTimeout:
        os.close(fd)
        raise Refused(f"{name} is being started or kept by another process") from None
    except BaseException:
        os.close(fd)
        raise
    return fd


def _named(run_folder: str) -> tuple[int, int, str, str | None] | None:
    """Pid, start time, boot and namespace, as the keeper wrote them into its lock. Older ones wrote no namespace."""
    try:
        pid, start, boot, *more = files.read_bytes(lock_path(run_folder)).decode().split()
        return int(pid), int(start), boot, more[0] if more else None
    except NOT_READ:
        return None
