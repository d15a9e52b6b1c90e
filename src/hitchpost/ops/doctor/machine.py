"""What this machine offers: Python, the kernel, control groups, git, tmux. Looks only; a probe's traces are removed."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator

from hitchpost.errors import RuntimeMissing
from hitchpost.ops.doctor.finding import Finding, note, ok, problem
from hitchpost.runtimes import tmux
from hitchpost.settings import Settings
from hitchpost.store import files
from hitchpost.store.home import is_id, session_folder
from hitchpost.system import cgroup, process

OLDEST_PYTHON = (3, 11)
PR_GET_CHILD_SUBREAPER = 37
TOOL_TIMEOUT_S = 5.0
PROBE = "doctor"
YOUNG_S = 60.0
UNPROTECTED = "unprotected: a fork bomb or runaway memory use in one session can starve the others"


def machine(settings: Settings) -> Iterator[Finding]:
    version = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        yield ok("python", version)
    else:
        yield problem("python", f"{version} is too old", f"use Python {'.'.join(map(str, OLDEST_PYTHON))} or newer")
    yield from _kernel()
    yield _protection(settings)
    yield _git()
    yield _tmux()


def _kernel() -> Iterator[Finding]:
    upgrade = "use a newer kernel, or ask whoever runs this container what it forbids"
    try:
        os.close(os.pidfd_open(os.getpid()))
        yield ok("pidfd", f"the kernel offers it ({platform.release()})")
    except (OSError, AttributeError) as error:
        yield problem("pidfd", f"not available ({error}); a process cannot be signalled safely", upgrade)
    answer = ctypes.c_int()
    if ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0) == 0:
        yield ok("sub-reaper", "the kernel offers it")
    else:
        yield problem("sub-reaper", "not available; what an agent leaves behind cannot be found", upgrade)
    if process.start_time(os.getpid()) is None:
        yield problem("/proc", "not readable; processes cannot be told apart", "mount /proc")
    elif process.stat(os.getppid()) is None and os.getppid() != 0:
        yield note("/proc", "shows only some processes (hidepid?)", "mount /proc without hidepid for this user")
    else:
        yield ok("/proc", "readable")


def _protection(settings: Settings) -> Finding:
    """Build a group as a keeper would, see what it can limit, and give it back."""
    name = f"{cgroup.PREFIX}{PROBE}.{os.getpid()}"
    group = cgroup.build(name, settings.pids_max or 1, settings.memory_max_mib << 20)
    try:
        counted = _limited(group, ("pids.max",), settings.pids_max or 1)
        weighed = _limited(group, ("memory.max", "memory.limit_in_bytes"), settings.memory_max_mib << 20)
    finally:
        group.remove()
    how = "run hitch where it may make control groups (systemd-run --user --scope -p Delegate=yes)"
    if not group.folders:
        return note("protection", f"{UNPROTECTED} (no control group is allowed here)", how)
    if settings.pids_max and not counted:
        return note("protection", f"{UNPROTECTED} ({group.tier}, which cannot count processes here)", how)
    if settings.memory_max_mib and not weighed:
        return note("protection", f"memory_max_mib has no effect here ({group.tier})", how)
    processes = (
        f"at most {settings.pids_max} processes" if settings.pids_max else "processes not limited (pids_max = 0)"
    )
    memory = f"{settings.memory_max_mib} MiB" if settings.memory_max_mib else "memory not limited (memory_max_mib = 0)"
    return ok("protection", f"{group.tier}; each session: {processes}, {memory}")


def _limited(group: cgroup.ControlGroups, names: tuple[str, ...], wanted: int) -> bool:
    for folder in group.folders:
        for name in names:
            try:
                if files.read_bytes(os.path.join(folder, name)).strip() == str(wanted).encode():
                    return True
            except OSError:
                continue
    return False


def _git() -> Finding:
    text = _answer("git", "--version")
    if text is None:
        return note("git", "not found; sessions run, worktrees cannot be made", "install git")
    return ok("git", text.removeprefix("git version "))


def _tmux() -> Finding:
    try:
        path = tmux.program()
    except RuntimeMissing as error:
        return note("tmux", f"{error.message}; the local runtime works without it", error.hint)
    text = _answer(path, "-V") or "of an unknown version"
    return ok("tmux", text.removeprefix("tmux "))


def _answer(*argv: str) -> str | None:
    try:
        done = subprocess.run(
            argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=TOOL_TIMEOUT_S, check=True, text=True
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


# Control groups that nobody needs any more ----------------------------------------------------------------------


def left_over_groups(home: str, kept: set[str]) -> list[str]:
    """This home's empty groups that no keeper uses. ``kept`` are the names of the groups of its live runs.

    Other homes use the same tree; what is theirs is left to them.
    """
    own = files.folder_id(home)
    found = []
    for _, base in cgroup.bases():
        try:
            names = os.listdir(base)
        except OSError:
            continue
        for name in names:
            folder = os.path.join(base, name)
            if name.startswith(cgroup.PREFIX) and name not in kept and _is_left_over(folder, name, home, own):
                found.append(folder)
    return sorted(found)


def _is_left_over(folder: str, name: str, home: str, own: str) -> bool:
    rest, _, number = name.removeprefix(cgroup.PREFIX).rpartition(".")
    whose, _, session = rest.rpartition(".")
    known = whose == own or session == PROBE or (not whose and os.path.isdir(session_folder(home, session)))
    if not number.isdigit() or not known or not (session == PROBE or is_id(session)):
        return False
    try:
        place = os.stat(folder)
    except OSError:
        return False
    if place.st_uid != os.geteuid() or cgroup.ControlGroups([folder]).pids():
        return False
    if session == PROBE:
        return process.start_time(int(number)) is None
    return time.time() - place.st_mtime > YOUNG_S
