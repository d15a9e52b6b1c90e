"""Folders in which an agent may have made anything: links, a hundred thousand folders, folders ten thousand deep.

No link is followed, and neither the stack nor the number of open descriptors grows with the depth.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_below(top: str | int, *names: str) -> int:
    """A descriptor of the folder that is so many steps below ``top``. Raises ``OSError`` where a step is a link."""
    fd = os.open(".", FOLDER, dir_fd=top) if isinstance(top, int) else os.open(top, FOLDER)
    for name in names:
        try:
            below = os.open(name, FOLDER, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd


def walk(top: int, deepest: int) -> Iterator[tuple[tuple[str, ...], int, list[str]]]:
    """Each folder: the steps that lead to it, a descriptor of it that is open meanwhile, and what is no folder in it.

    Folders that are deeper, or cannot be opened, are left out.
    """
    todo: list[tuple[str, ...]] = [()]
    while todo:
        steps = todo.pop()
        try:
            folder = open_below(top, *steps)
        except OSError:
            continue
        try:
            below, others = _listed(folder)
            if len(steps) < deepest:
                todo += [(*steps, name) for name in sorted(below, reverse=True)]
            yield steps, folder, others
        finally:
            os.close(folder)


def _listed(folder: int) -> tuple[list[str], list[str]]:
    """The names of the folders in it, and of everything else."""
    below: list[str] = []
    others: list[str] = []
    with os.scandir(folder) as found:
        for entry in found:
            (below if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
    return below, others


def erase(path: str) -> None:
    """Delete a folder and all that is in it, also what an agent has protected from writing.

    Folders that are deeper are moved up before they are emptied, so that every step is a short one. What cannot be
    deleted stays; a link or a file in the place of the folder stays, too.
    """
    try:
        top = _opened(path, None)
    except OSError:
        return
    try:
        moved = 0
        stuck: set[str] = set()
        while below := [name for name in _emptied(top) if name not in stuck]:
            for name in below:
                try:
                    inner = _opened(name, top)
                except OSError:
                    stuck.add(name)
                    continue
                try:
                    for deeper in _emptied(inner):
                        moved += 1
                        _move_up(inner, deeper, top, f".{moved}-{os.urandom(4).hex()}")
                finally:
                    os.close(inner)
                try:
                    os.rmdir(name, dir_fd=top)
                except OSError:
                    stuck.add(name)
    finally:
        os.close(top)
    try:
        os.rmdir(path)
    except OSError:
        return  # something of somebody else's is in it


def _opened(name: str, above: int | None) -> int:
    """A descriptor of a folder that we may read and write from now on, where it is ours."""
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        if os.fstat(fd).st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{fd}", 0o700)
        return os.open(".", FOLDER, dir_fd=fd)
    finally:
        os.close(fd)


def _emptied(folder: int) -> list[str]:
    """Delete everything in it that is no folder; the names of the folders."""
    below, others = _listed(folder)
    for name in others:
        try:
            os.unlink(name, dir_fd=folder)
        except OSError:
            continue
    return below


def _move_up(folder: int, name: str, top: int, new: str) -> None:
    try:
        os.close(_opened(name, folder))  # who moves a folder must be allowed to write it
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=top)
    except OSError:
        return
