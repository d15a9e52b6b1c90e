"""Leases: a slot is a locked file with its holder named inside. The lock ends with its holder, whatever happens."""

from __future__ import annotations

import fcntl
import os
import time

from hitchpost import lightjson
from hitchpost.errors import Refused, WorkspaceBusy
from hitchpost.store import files, locks
from hitchpost.values import value
from hitchpost.workspaces import store
from hitchpost.workspaces.store import SLOTS, Workspace

READER = "reader-"
TAKE_WAIT_S = 0.5


@value
class Holder:
    """Who holds a slot, as it is written in the slot's file."""

    slot: str
    session: str
    name: str
    run: int
    at: str

    @property
    def reader(self) -> bool:
        return self.slot.startswith(READER)

    def __str__(self) -> str:
        return f"{self.name} ({self.session})" if self.session else self.name


def take(home: str, workspace: Workspace, *, session: str, name: str, run: int = 0, share: bool = False) -> int:
    """An open, locked descriptor of a slot; closing it, or the end of every process that has it, gives it back.

    Raises ``WorkspaceBusy`` with the holders when every writer's slot is taken, ``Refused`` when it was removed.
    """
    try:
        with store.lock(home, workspace.id):
            current = store.read(home, workspace.id)
            if current.removed_at is not None or not current.made:
                raise locks.Removed(current.path)
            folder = os.path.join(store.folder_of(home, workspace.id), SLOTS)
            fd = _free_slot(folder, current.capacity, share)
            if fd is None:
                raise WorkspaceBusy(
                    current.name, [str(holder) for holder in holders(home, current) if not holder.reader]
                )
            return _signed(fd, {"session": session, "name": name, "run": run, "at": files.stamp()})
    except FileNotFoundError:
        raise Refused(f"workspace {workspace.name!r} has been removed") from None


def holders(home: str, workspace: Workspace) -> list[Holder]:
    """Everyone who holds a slot at this moment, writers first."""
    folder = os.path.join(store.folder_of(home, workspace.id), SLOTS)
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    names.sort(key=lambda slot: (slot.startswith(READER), len(slot), slot))
    return [_holder(folder, slot) for slot in names if locks.is_held(os.path.join(folder, slot)) is not False]


def check_free(home: str, workspace: Workspace, session: str = "") -> None:
    """Raise ``WorkspaceBusy`` when no writer's slot is free, that of ``session`` itself not counted."""
    writers = [
        holder
        for holder in holders(home, workspace)
        if not holder.reader and (holder.session != session or not session)
    ]
    if len(writers) >= workspace.capacity:
        raise WorkspaceBusy(workspace.name, list(map(str, writers)))


def _free_slot(folder: str, capacity: int, share: bool) -> int | None:
    """A probe holds a slot's lock for an instant, so writers' slots are tried for a while."""
    if share:
        number = 0
        while (fd := _try(os.path.join(folder, f"{READER}{number}"))) is None:
            number += 1
        return fd
    deadline = time.monotonic() + TAKE_WAIT_S
    while True:
        for number in range(capacity):
            if (fd := _try(os.path.join(folder, str(number)))) is not None:
                return fd
        if time.monotonic() > deadline:
            return None
        time.sleep(0.005)


def _try(path: str) -> int | None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise
    return fd


def _signed(fd: int, holder: dict[str, object]) -> int:
    try:
        text = lightjson.dumps(holder).encode() + b"\n"
        os.ftruncate(fd, 0)
        os.pwrite(fd, text, 0)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _holder(folder: str, slot: str) -> Holder:
    """A slot that was taken this instant may not name its holder yet."""
    try:
        value = files.read_object(os.path.join(folder, slot))
    except files.CannotRead:
        value = {}
    run = value.get("run")
    return Holder(
        slot,
        str(value.get("session", "")),
        str(value.get("name", "another process")),
        run if isinstance(run, int) else 0,
        str(value.get("at", "")),
    )
