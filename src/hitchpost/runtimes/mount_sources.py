"""What a person has named with --config and --mount, written down so that nothing else gets into a container.

An agent may be able to write where such a folder lies, and put a link in its place: no link of that kind is followed.
The real path, device and inode are written down when the session is made, and compared before each start. The engine
is given the real path.
"""

from __future__ import annotations

import os
import stat

from hitchpost.runtimes.mounts import MountRefused
from hitchpost.store.sandbox import MountSource, StoredSandbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PUT_BACK = "restore the original, or create a new session for the new one"


def describe(config: str | None, mounts: Iterable[str]) -> tuple[MountSource, ...]:
    """As they are now. Raises ``MountRefused`` for what is not there."""
    found = [] if config is None else [_described(config, "")]
    for text in mounts:
        given, colon, rest = text.partition(":")
        found.append(_described(given, colon + rest))
    return tuple(found)


def _described(given: str, target: str) -> MountSource:
    path = os.path.realpath(given)
    try:
        place = os.lstat(path)
    except OSError:
        raise MountRefused(f"{'--mount' if target else '--config'} {given}{target}", f"{given} is not there") from None
    source = MountSource(given, path, place.st_dev, place.st_ino, target)
    if target and ":" in path:
        raise MountRefused(source.what, f"there is a colon in {path}")
    return source


def of(sandbox: StoredSandbox) -> tuple[MountSource, ...]:
    """Those of a record; as they are now where an older version has written nothing down."""
    return describe(sandbox.config, sandbox.mounts) if sandbox.sources is None else sandbox.sources


def compare(sources: Sequence[MountSource], folder: str | None = None) -> None:
    """Raise ``MountRefused`` unless each is what was written down, and no link leads there. ``folder`` is where the
    session works.

    A file may be another one where the container cannot write: editors put a new one in the place of the old.
    """
    within = [source.path for source in sources if source.is_writable]
    within += [os.path.realpath(folder)] if folder is not None else []
    for source in sources:
        if link := _link(source.given):
            todo = f"name {source.path} itself" if source.path == os.path.realpath(source.given) else PUT_BACK
            raise MountRefused(source.what, f"{link} is a link to {os.path.realpath(link)}", todo)
        if os.path.realpath(source.path) != source.path:
            raise MountRefused(source.what, f"a link leads from {source.path} to another place", PUT_BACK)
        try:
            place = os.lstat(source.path)
        except OSError:
            raise MountRefused(source.what, f"{source.path} is not there any more", PUT_BACK) from None
        same = (place.st_dev, place.st_ino) == (source.dev, source.ino)
        edited = stat.S_ISREG(place.st_mode) and not any(_is_below(source.path, place) for place in within)
        if not same and not edited:
            kind = "folder" if stat.S_ISDIR(place.st_mode) else "file"
            raise MountRefused(source.what, f"{source.path} is another {kind} than when the session was made", PUT_BACK)


def _link(path: str) -> str:
    """The first link on the way that a program of ours could have made; empty when there is none. What leads on from
    folders in which we cannot write, such as ``/var/run``, is the machine's own."""
    place = "/"
    for name in os.path.abspath(path).split("/")[1:]:
        around, place = place, os.path.join(place, name)
        if os.path.islink(place) and os.access(around, os.W_OK):
            return place
    return ""


def _is_below(path: str, folder: str) -> bool:
    return os.path.join(path, "").startswith(os.path.join(folder, ""))
