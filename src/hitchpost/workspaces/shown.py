"""Whether a patch shows nothing but what is in the worktree.

Git looks at a path first and opens it later. What runs in a container can put a link in the place of a folder in
between, and then git shows a file of this side. So each line that a patch shows of a file must be in the file that is
found at its path without following any link.
"""

from __future__ import annotations

import os
import re
import stat

from hitchpost.workspaces import refs
from hitchpost.workspaces.view import MOST_DIFFED_BYTES

_SECTION = re.compile(rb"^diff --git ", re.MULTILINE)
_HUNK = re.compile(rb"^@@ .*$", re.MULTILINE)


def is_of_worktree(top: int, paths: list[str], patch: bytes) -> bool:
    """``paths`` are those of the patch's files, in its order; ``top`` is a descriptor of the worktree.

    A file that was written meanwhile, or whose line ends git has converted in another way, may count as another one.
    """
    sections = _SECTION.split(patch)[1:]
    cut = len(sections) < len(paths)  # then the last one may end anywhere
    for number, section in enumerate(sections):
        lines = _new_lines(section)
        if cut and number == len(sections) - 1:
            lines = lines[:-1]
        if not lines:
            continue
        known = _lines_of(top, paths[number]) if number < len(paths) else set()
        if not known.issuperset(lines):
            return False
    return True


def _new_lines(section: bytes) -> list[bytes]:
    """The lines that a file has now, as far as they are shown."""
    return [
        line[1:].rstrip(b"\r")
        for hunk in _HUNK.split(section)[1:]
        for line in hunk.split(b"\n")[1:]
        if line[:1] in (b"+", b" ")
    ]


def _lines_of(top: int, path: str) -> set[bytes]:
    try:
        return {line.rstrip(b"\r") for line in _content(top, path).split(b"\n")}
    except OSError:
        return set()


def _content(top: int, path: str) -> bytes:
    """Of a file, or where a link leads. Raises ``OSError`` where another link is on the way."""
    *above, name = path.split("/")
    folder = refs.open_below(f"/proc/self/fd/{top}/.", *above)
    try:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return os.fsencode(os.readlink(name, dir_fd=folder))
        return refs.read_at(folder, name, MOST_DIFFED_BYTES)
    finally:
        os.close(folder)
