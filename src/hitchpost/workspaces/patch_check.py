"""Whether a patch shows nothing but what is in the worktree.

Git looks at a path first and opens it later. What runs in a container can put a link in the place of a folder in
between, and then git shows a file of this side. So each part that a patch shows of a file must be in the file that is
found at its path without following any link.
"""

from __future__ import annotations

import os
import re
import stat

from hitchpost.workspaces import refs
from hitchpost.workspaces.folders import open_below
from hitchpost.workspaces.view import MOST_DIFFED_BYTES

_SECTION = re.compile(rb"^diff --git ", re.MULTILINE)
_HUNK = re.compile(rb"^@@ .*$", re.MULTILINE)


def is_of_worktree(top: int, paths: list[str], patch: bytes) -> bool:
    """``paths`` are those of the patch's files, in its order; ``top`` is a descriptor of the worktree.

    A file that was written meanwhile, or whose line ends git has converted in another way, may count as another one.
    """
    whole = patch.replace(b"\r\n", b"\n").removesuffix(b"\r")  # it may be cut anywhere
    for number, section in enumerate(_SECTION.split(whole)[1:]):
        parts = [part for hunk in _HUNK.split(section)[1:] if (part := _new_part(hunk))]
        if not parts:
            continue
        content = _content_or_nothing(top, paths[number]) if number < len(paths) else b""
        if not all(part in content for part in parts):
            return False
    return True


def _new_part(hunk: bytes) -> bytes:
    """What the file has there now."""
    return b"\n".join([line[1:] for line in hunk.split(b"\n")[1:] if line[:1] in (b"+", b" ")])


def _content_or_nothing(top: int, path: str) -> bytes:
    try:
        return _content(top, path).replace(b"\r\n", b"\n")
    except OSError:
        return b""


def _content(top: int, path: str) -> bytes:
    """Of a file, or where a link leads. Raises ``OSError`` where another link is on the way."""
    *above, name = path.split("/")
    folder = open_below(top, *above)
    try:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return os.fsencode(os.readlink(name, dir_fd=folder))
        return refs.read_at(folder, name, MOST_DIFFED_BYTES)
    finally:
        os.close(folder)
