"""A worktree as it was written down before an agent worked there: where it is, and which repository it belongs to.

What is written down decides, not what is there later: an agent can replace every file that would say it.
"""

from __future__ import annotations

import os
import stat

from hitchpost.errors import NOT_READ, GitLocked, HitchpostError, Refused
from hitchpost.store import files
from hitchpost.store.records import StoredTree
from hitchpost.values import asdict, replace
from hitchpost.workspaces import container_writes, refs
from hitchpost.workspaces.folders import FOLDER
from hitchpost.workspaces.refs import Head
from hitchpost.workspaces.store import SEEN_INDEX

POINTER = b"gitdir: "


class Tree(StoredTree):
    """``common`` is the repository's git folder, ``own`` the worktree's own one below that; empty for a main one.

    The ids name folders as ``files.folder_id`` does. ``keep`` is the folder in which we keep our own index of it, if
    any; ``inside`` the git folder that a container has in the repository's place, if one has.
    """

    __slots__ = ()

    def head(self) -> Head:
        """What is checked out. Raises ``Refused`` when nobody can tell."""
        return refs.head(self.inside or self.common, self.own)

    @property
    def own_folder(self) -> str:
        return os.path.join(self.common, self.own) if self.own else self.common

    @property
    def index(self) -> str:
        """The worktree's own one."""
        return os.path.join(self.own_folder, "index")

    @property
    def objects(self) -> str:
        return os.path.join(self.common, "objects")

    def open(self) -> int:
        """A descriptor of the worktree. Raises ``Refused`` when another folder, or a link, is in its place."""
        return open_same(self.top, self.top_id)


def discover(folder: str, home: str | None = None) -> Tree | None:
    """The worktree that ``folder`` is in, as the files there say. One that a container could write is none."""
    link = container_writes.nearest(folder)
    if link is None or (home is not None and container_writes.could_write(home, link)):
        return None
    return _described(os.path.dirname(link), link)


def _described(top: str, link: str) -> Tree | None:
    try:
        if stat.S_ISDIR(os.stat(link).st_mode):
            git_folder = os.path.realpath(link)
        else:
            git_folder = os.path.realpath(os.path.join(top, pointed(files.read_bytes(link, 4096))))
        common, own = git_folder, ""
        if os.path.lexists(os.path.join(git_folder, "commondir")):
            text = files.read_bytes(os.path.join(git_folder, "commondir"), 4096).removesuffix(b"\n")
            common = os.path.realpath(os.path.join(git_folder, os.fsdecode(text)))
            own = os.path.relpath(git_folder, common)
        if (own and not _points_back(top, git_folder)) or not _is_safe(top, link, git_folder, common):
            return None
        return described(top, common, own)
    except NOT_READ:
        return None


def _is_safe(top: str, *parts: str) -> bool:
    """Whether it is all ours. A repository of another user is one for us only if git says so (``safe.directory``): that
    user writes its settings, and can put a link where we write."""
    if all(os.stat(path, follow_symlinks=False).st_uid == os.geteuid() for path in (top, *parts)):
        return True
    from hitchpost.workspaces import git

    try:
        return git.repository(top).common == parts[-1]
    except HitchpostError:
        return False


def _points_back(top: str, git_folder: str) -> bool:
    """Whether a worktree's git folder names the worktree, too: anybody can write a file that names a git folder."""
    named = os.fsdecode(files.read_bytes(os.path.join(git_folder, "gitdir"), 4096).removesuffix(b"\n"))
    return os.path.realpath(os.path.join(git_folder, os.path.dirname(named))) == top


def pointed(content: bytes) -> str:
    """Where a worktree's ``.git`` file leads to. Raises ``ValueError``."""
    if not content.startswith(POINTER):
        raise ValueError("expected a file that names a git folder")
    return os.fsdecode(content.removeprefix(POINTER).removesuffix(b"\n"))


def described(top: str, common: str, own: str) -> Tree | None:
    """Raises ``OSError`` when something that a repository has is not there."""
    if own.startswith("..") or not os.path.lexists(os.path.join(common, own, "HEAD")):
        return None
    ids = [files.folder_id(path) for path in (top, common, os.path.join(common, "objects"))]
    return Tree(top, ids[0], common, ids[1], ids[2], own)


def stored(tree: Tree | None) -> StoredTree | None:
    """For a record. Where our index and a container's git folder are is not in it."""
    return None if tree is None else StoredTree(**asdict(replace(tree, keep="", inside="")))


def read(stored: StoredTree | None) -> Tree | None:
    """The tree that a record describes."""
    return None if stored is None else Tree(**asdict(stored))


def open_same(path: str, identity: str) -> int:
    """A descriptor of the folder. Raises ``Refused`` unless it is the one that ``identity`` names, and no link."""
    try:
        fd = os.open(path, FOLDER)
    except OSError as error:
        raise Refused(f"{path} is gone, or no longer a folder ({os.strerror(error.errno or 0).lower()})") from None
    place = os.fstat(fd)
    if f"{place.st_dev:x}-{place.st_ino:x}" != identity or os.path.realpath(path) != path:
        os.close(fd)
        raise Refused(f"{path} is not the folder that was recorded when work began there")
    return fd


# Our own index --------------------------------------------------------------------------------------------------


def copy_with_time(path: str, copy: str) -> bool:
    """By an index's own time git knows which files may have changed in the instant in which it was written."""
    try:
        fd = files.open_file(path)
    except OSError:
        return False
    with open(fd, "rb") as source, open(copy, "wb") as target:
        while part := source.read(1 << 20):
            target.write(part)
        found = os.fstat(fd)
    os.utime(copy, ns=(found.st_atime_ns, found.st_mtime_ns))
    return True


def linked_or_copied(path: str, copy: str) -> bool:
    """For who replaces the file and never writes into it, as git does with an index."""
    try:
        os.link(path, copy, follow_symlinks=False)
    except OSError:
        return copy_with_time(path, copy)  # it is on another disk
    return True


def kept_index(tree: Tree) -> str:
    """Our index of an earlier look; empty when there is none. Its name ends with the commit that it is of."""
    if not tree.keep:
        return ""
    found = [name for name in os.listdir(tree.keep) if name.startswith(f"{SEEN_INDEX}-")]
    return os.path.join(tree.keep, max(found)) if found else ""


def keep_index(tree: Tree, index: str, commit: str = "first") -> None:
    """Keep an index that nobody but us has written, or the worktree's own one from before an agent worked there."""
    if not tree.keep:
        return
    name = f"{SEEN_INDEX}-{commit}"
    temp = os.path.join(tree.keep, f".{name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    if not copy_with_time(index, temp):
        return
    os.replace(temp, os.path.join(tree.keep, name))
    for other in os.listdir(tree.keep):
        if other.startswith(f"{SEEN_INDEX}-") and other != name:
            files.discard(os.path.join(tree.keep, other))


class IndexLock:
    """Git's own lock on the index of a worktree: held from before it is read until another one is in its place.

    Raises ``GitLocked`` while somebody else has it.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.path = os.path.join(tree.own_folder, "index.lock")

    def __enter__(self) -> IndexLock:
        try:
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
        except FileExistsError:
            raise GitLocked("read-tree", self.path) from None
        self.held = True
        return self

    def __exit__(self, *_: object) -> None:
        if self.held:
            files.discard(self.path)

    def install(self, index: str) -> None:
        """Make an index the worktree's own, as git does it. That ends the lock."""
        copy_with_time(index, self.path)
        os.replace(self.path, self.tree.index)
        self.held = False


def install_index(tree: Tree, index: str) -> None:
    """Make an index the worktree's own, whatever it had. Raises ``GitLocked``."""
    with IndexLock(tree) as lock:
        lock.install(index)
