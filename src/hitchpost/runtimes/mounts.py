"""What must not get into a container: the state folder, where hub and keepers listen, an engine's socket, and, where it
could write, what we run and read ourselves.

Files and folders are compared by device and inode, so that another name of the same thing is no way around this.
"""

from __future__ import annotations

import os
import stat
import sys

from hitchpost.errors import Refused
from hitchpost.runtimes import engine
from hitchpost.settings import config_path
from hitchpost.store.home import home_path
from hitchpost.system.scratch import MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Identity = tuple[int, int]

MOUNTS = "/proc/self/mountinfo"
MOVE_PROGRAMS = "use --branch, or a folder that does not hold it"
MOVE = "use --branch, a folder that does not hold it, or a HITCHPOST_HOME elsewhere"


class MountRefused(Refused):
    """Raised when a container would get at the hub, at keepers, or at the engine."""

    def __init__(self, what: str, why: str, hint: str = "name another") -> None:
        super().__init__(f"{what} cannot be mounted into a container: {why}", hint)


def refuse_mount(home: str, what: str, path: str, own: str | None = None, *, writable: bool = True) -> None:
    """Raise ``MountRefused`` unless ``path`` may be mounted. ``what`` names it for the person.

    ``own`` is the session's workspace where that is one of ours: it lies in the state folder, and may be mounted.
    """
    real = os.path.realpath(path)
    homes = [around for place in {home, _usual_home()} if (around := _around(place))]
    sockets = {place: around for place in engine.sockets() if (around := _around(place))}
    allowed = set(_around(own)[:1]) if own is not None else set()
    for place in (real, *_mounted_below(real)):
        here = _around(place)
        if not here:
            continue
        if any(here[0] in around for around in homes):
            raise MountRefused(what, f"{place} is or holds Hitchpost's state folder", MOVE)
        if any(around[0] in here for around in homes) and allowed.isdisjoint(here):
            raise MountRefused(what, f"{place} is in Hitchpost's state folder")
        if stat.S_ISSOCK(os.lstat(place).st_mode):
            raise MountRefused(what, f"{place} is a socket of a process outside the container")
        held = next((socket for socket, around in sockets.items() if here[0] in around), None)
        if held is not None:
            raise MountRefused(
                what, f"the engine's socket {held} is in it, which would give the container control of this machine"
            )
        if writable and (ours := _run_here(here)):
            raise MountRefused(
                what, f"{ours} is in it, and what is written there runs outside the container", MOVE_PROGRAMS
            )
    linked = {around[0] for place, around in sockets.items() if os.lstat(place).st_nlink > 1}
    if linked and (found := _named_below(real, linked)) is not None:
        raise MountRefused(
            what, f"{found} is the engine's socket, which would give the container control of this machine"
        )


def _run_here(here: list[Identity]) -> str:
    """What of our programs, settings and git folders is here, below or, for folders of ours, around; else empty."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    whole = [package, *([sys.prefix] if sys.prefix != sys.base_prefix else [])]
    for place in (*whole, sys.executable, os.path.dirname(os.__file__), _settings_place(), MEMORY):
        around = _around(place)
        if around and (here[0] in around or (place in whole and around[0] in here)):
            return place
    return ""


def _settings_place() -> str:
    """Where our settings are, or the folder in which they could be made."""
    place = os.path.abspath(config_path())
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    return place


def _usual_home() -> str:
    """Where another hub of this user may be when ours has another home."""
    return home_path({name: text for name, text in os.environ.items() if name != "HITCHPOST_HOME"})


def _around(path: str) -> list[Identity]:
    """What is at ``path``, and every folder around it up to the root; nothing where there is nothing."""
    try:
        place = os.path.realpath(path)
        found = [_identity(place)]
        while place != "/":
            place = os.path.dirname(place)
            found.append(_identity(place))
    except OSError:
        return []
    return found


def _identity(path: str) -> Identity:
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def _mounted_below(folder: str) -> Iterator[str]:
    """What is mounted there comes along into the container."""
    with open(MOUNTS, "rb") as lines:
        for line in lines:
            escaped = line.split(b" ")[4]  # a space is \040 there
            place = os.fsdecode(escaped.decode("unicode_escape").encode("latin-1"))
            if place.startswith(os.path.join(folder, "")) and place != "/":
                yield place


def _named_below(folder: str, identities: set[Identity]) -> str | None:
    """Another name, in ``folder``, of one of these files. Looked for only where such names exist."""
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                if _identity(os.path.join(place, name)) in identities:
                    return os.path.join(place, name)
            except OSError:
                continue  # gone meanwhile
    return None
