"""What a git folder says is checked out, read as bytes: an agent may have written any of it, so git does not read it.

No link is followed below the folder, nothing but regular files is opened, and a name or a commit that cannot be one
is nothing.
"""

from __future__ import annotations

import errno
import os

from hitchpost.errors import Refused
from hitchpost.store import files
from hitchpost.values import value
from hitchpost.workspaces.folders import open_below, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_HEAD_BYTES, MOST_PACKED_BYTES = 4096, 16 << 20
MOST_REFS, DEEPEST = 2000, 16
_NOT_IN_NAMES = ("..", "@{", "\x7f", *"~^:?*[\\", *map(chr, range(33)))


@value
class Head:
    """``branch`` is None when the head is detached, ``commit`` when there is none yet or it cannot be read."""

    branch: str | None = None
    commit: str | None = None


def is_name(ref: str) -> bool:
    """Whether it can be the whole name of a ref."""
    first, *parts = ref.split("/")
    if first != "refs" or not parts or any(bad in ref for bad in _NOT_IN_NAMES):
        return False
    return all(part and part[0] != "." and not part.endswith((".", ".lock")) for part in parts)


def is_commit(text: str | None) -> bool:
    return text is not None and len(text) in (40, 64) and set(text) <= set("0123456789abcdef")


def read_below(top: str, path: str, most: int = MOST_HEAD_BYTES) -> bytes:
    """A file below ``top``. Raises ``OSError``, which ``NotAFile`` is one of."""
    return b"".join(parts_below(top, path, most))


def parts_below(top: str, path: str, most: int) -> Iterator[bytes]:
    """The same in parts, for a file that may be large."""
    *above, name = path.split("/")
    folder = open_below(top, *above)
    try:
        yield from _parts_at(folder, name, most)
    finally:
        os.close(folder)


def read_at(folder: int, name: str, most: int) -> bytes:
    return b"".join(_parts_at(folder, name, most))


def _parts_at(folder: int, name: str, most: int) -> Iterator[bytes]:
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=folder)
    try:
        if files.checked_file(fd, name).st_size > most:
            raise files.NotAFile(name, f"one of more than {most} bytes")
        left = most
        while left > 0 and (part := os.read(fd, min(left, 1 << 20))):
            yield part
            left -= len(part)
    finally:
        os.close(fd)


def head(common: str, own: str = "") -> Head:
    """What is checked out in the worktree whose git folder is ``own`` below ``common``, or in the main one.

    Raises ``Refused`` when that cannot be read.
    """
    path = f"{own}/HEAD" if own else "HEAD"
    try:
        text = _text(read_below(common, path))
    except OSError as error:
        why = os.strerror(error.errno or errno.EIO).lower()
        raise Refused(f"cannot tell what is checked out: cannot read {common}/{path} ({why})") from None
    if is_commit(text):
        return Head(None, text)
    ref = text.removeprefix("ref:").strip(" ")
    if not text.startswith("ref:") or not is_name(ref):
        raise Refused(f"cannot tell what is checked out: {common}/{path} names no branch and no commit")
    return Head(ref.removeprefix("refs/heads/"), commit(common, ref))


def commit(common: str, ref: str) -> str | None:
    """The commit that a ref of the repository names; None when there is no such ref, or it cannot be read."""
    if not is_name(ref):
        return None
    try:
        text = _text(read_below(common, ref))
        return text if is_commit(text) else None
    except OSError:
        return packed(common).get(ref)


def packed(common: str) -> dict[str, str]:
    try:
        text = _text(read_below(common, "packed-refs", MOST_PACKED_BYTES))
    except OSError:
        return {}
    pairs = [line.split(" ", 1) for line in text.split("\n") if line[:1] not in ("#", "^", "")]
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2 and is_commit(pair[0]) and is_name(pair[1])}


def everything(common: str) -> tuple[dict[str, str], bool]:
    """Every ref that can be read, loose ones before packed ones; and whether that is all.

    When there are too many files and folders, some are left out.
    """
    found, seen = packed(common), 0
    try:
        top = open_below(common, "refs")
    except OSError:
        return found, True
    try:
        for steps, folder, names in walk(top, DEEPEST):
            seen += 1 + len(names)
            if seen > MOST_REFS:
                return found, False
            for name in names:
                ref = "/".join(("refs", *steps, name))
                try:
                    text = _text(read_at(folder, name, MOST_HEAD_BYTES))
                except OSError:
                    continue
                if is_name(ref) and is_commit(text):
                    found[ref] = text
    finally:
        os.close(top)
    return found, True


def _text(content: bytes) -> str:
    return os.fsdecode(content.removesuffix(b"\n"))
