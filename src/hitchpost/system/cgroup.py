"""A control group around the agent's processes, where the system allows one.

It finds every descendant whatever it did to its session, parent or environment, ends them all at once, and limits
what one agent can take from the others. Where none is allowed, the sub-reaper loop in ``tree`` does the finding.
"""

from __future__ import annotations

import os

from hitchpost.system import process

PREFIX = "hitchpost."
TIER = "HITCHPOST_TIER"
"""The environment variable that, set to ``subreaper``, does without control groups: for tests and for debugging."""


class ControlGroups:
    """The control groups of one run. ``tier`` says what protects it: cgroup2, cgroup1 or subreaper.

    ``around`` is the group of the container that all of it is in, where that alone limits its memory.
    """

    def __init__(self, folders: list[str], around: str = "") -> None:
        self.folders, self.around = folders, around
        self._killed_before = oom_kills(around) if around else 0
        can_kill = any(os.path.exists(os.path.join(folder, "cgroup.kill")) for folder in folders)
        self.tier = "cgroup2" if can_kill else "cgroup1" if folders else "subreaper"

    def enter(self) -> None:
        """Move the calling process in; its children stay in."""
        for folder in self.folders:
            _write(os.path.join(folder, "cgroup.procs"), "0")

    def pids(self) -> list[int]:
        found: set[int] = set()
        for folder in self.folders:
            try:
                found.update(int(pid) for pid in process.read(os.path.join(folder, "cgroup.procs")).split())
            except OSError:
                continue
        return sorted(found)

    def kill(self) -> bool:
        """End every process inside at once. False when the kernel offers no such thing here."""
        return any(_write(os.path.join(folder, "cgroup.kill"), "1") for folder in self.folders)

    def oom_kills(self) -> int:
        """How many processes inside the kernel has ended because the group's memory was used up."""
        if self.around:
            return oom_kills(self.around) - self._killed_before
        return next((count for count in map(oom_kills, self.folders) if count), 0)

    def remove(self) -> None:
        """Give the empty groups back. One that is not empty stays, and is found again by its name."""
        for folder in self.folders:
            try:
                os.rmdir(folder)
            except OSError:
                continue


def oom_kills(folder: str) -> int:
    """As the kernel counts them in a group."""
    for file in ("memory.events", "memory.oom_control"):
        try:
            words = process.read(os.path.join(folder, file)).split()
        except OSError:
            continue
        if b"oom_kill" in words[:-1]:
            return int(words[words.index(b"oom_kill") + 1])
    return 0


def of_container() -> str:
    """The memory group of the container that we are in, as it is seen in there; empty outside of one."""
    try:
        mounts = process.read("/proc/self/mountinfo").decode().splitlines()
        own = process.read("/proc/self/cgroup").decode().splitlines()
    except OSError:
        return ""
    for line in mounts:
        place, _, kind = line.partition(" - ")
        root, point = place.split(" ")[3:5]
        if kind.startswith("cgroup ") and "memory" in kind.rpartition(" ")[2].split(",") and root != "/":
            return point
        # of a version 2 namespace the root is seen as one, but only a whole machine's has no counts
        if kind.startswith("cgroup2 ") and "0::/" in own and os.path.exists(f"{point}/memory.events"):
            return point
    return ""


def build(name: str, pids_max: int, memory_max_bytes: int) -> ControlGroups:
    """Make the groups that this system lets us make. Never fails: what is not allowed is left out."""
    folders = []
    for controller, base in bases() if _wanted() else ():
        if controller == "memory" and not memory_max_bytes:
            continue
        folder = os.path.join(base, name)
        try:
            os.mkdir(folder, 0o755)
        except FileExistsError:
            pass
        except OSError:
            continue
        if pids_max:
            _write(os.path.join(folder, "pids.max"), str(pids_max))
        if memory_max_bytes:
            for file in ("memory.max", "memory.limit_in_bytes"):
                _write(os.path.join(folder, file), str(memory_max_bytes))
        folders.append(folder)
    return ControlGroups(folders, "" if folders else of_container())


def find(name: str) -> ControlGroups:
    """The groups that an earlier keeper left under this name, wherever it stood."""
    found = [os.path.join(base, name) for _, base in (bases() if _wanted() else ())]
    return ControlGroups([folder for folder in found if os.path.isdir(folder)])


def leave_foreign_group(pid: int = 0) -> None:
    """A keeper that was started inside another session's group steps out of it, or it would die with that session.

    ``pid`` names another process than this one.
    """
    for _, place, base in _places(pid or os.getpid()):
        if place != base:  # moving takes the kernel milliseconds, even to where one is
            _write(os.path.join(base, "cgroup.procs"), str(pid))


def bases() -> list[tuple[str, str]]:
    """(controller, folder) below which our groups go; the version 2 hierarchy has the empty controller name."""
    return [(name, base) for name, _, base in _places(os.getpid())]


def _places(pid: int) -> list[tuple[str, str, str]]:
    """(controller, folder that the process is in, the nearest one that is not ours)."""
    try:
        own = process.read(f"/proc/{pid}/cgroup").decode().splitlines()
        mounts = process.read("/proc/self/mounts").decode().splitlines()
    except OSError:
        return []
    paths: dict[str, str] = {}
    for line in own:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    found = []
    for line in mounts:
        _, point, kind, options = line.split(" ")[:4]
        names = [""] if kind == "cgroup2" else ["pids", "memory"] if kind == "cgroup" else []
        for name in names:
            if name == "" or name in options.split(","):
                base = place = point + paths.get(name, "/").rstrip("/")
                while os.path.basename(base).startswith(PREFIX):
                    base = os.path.dirname(base)
                if os.path.isdir(base):
                    found.append((name, place, base))
    return found


def _wanted() -> bool:
    return os.environ.get(TIER) != "subreaper"


def _write(path: str, text: str) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, text.encode())
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
