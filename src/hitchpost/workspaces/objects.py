"""The objects that a container has made, on their way into the repository.

Regular files with the names of objects are copied, without following a link, and only those that the repository does
not have. How large each one becomes is read first: a few kilobytes can stand for gigabytes. Git packs what is wanted in
a folder of ours, checks every object, and only then stores it.
"""

from __future__ import annotations

import mmap
import os
import re
import time
import zlib
from collections.abc import Iterator

from hitchpost.errors import GitFailed, Refused
from hitchpost.store import files
from hitchpost.values import value
from hitchpost.workspaces import git
from hitchpost.workspaces.folders import FOLDER, erase, open_below
from hitchpost.workspaces.tree import Tree

STAGED = "git-staged"
MOST_FILES = 200_000
LISTING = ("ls-tree", "-r", "-t", "--name-only", "-z")
HEADER_BYTES, PART_BYTES = 512, 1 << 20
_LOOSE = re.compile(r"[0-9a-f]{38}(?:[0-9a-f]{24})?")
_PACK = re.compile(r"pack-[0-9a-f]{40}(?:[0-9a-f]{24})?\.pack")
_HEADER = re.compile(rb"(?:commit|tree|blob|tag) ([0-9]{1,15})\0")
OFS_DELTA, REF_DELTA = 6, 7
ENVIRONMENT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
SETTINGS = "[core]\nbare = true\nhooksPath = /dev/null\nrepositoryFormatVersion = 1\n[extensions]\nobjectFormat = "


@value
class Limits:
    """What is brought out at most: bytes in all, as large as they become, and seconds."""

    total_bytes: int
    timeout_s: float


WHOLE = Limits(2 << 30, 120.0)
LOOK = Limits(64 << 20, 20.0)
"""A look is short. What it does not bring out is brought out when the session is stopped, restarted or removed."""


def own_folder(folder: str, objects: str, commit: str, beside: str = "") -> dict[str, str]:
    """Make a git folder of ours for commands without a worktree; the environment that leads git there.

    ``beside`` are more objects that they may read.
    """
    kind = "sha256" if len(commit) == 64 else "sha1"
    for name in ("refs", "objects"):
        os.mkdir(os.path.join(folder, name))
    for name, text in (("HEAD", "ref: refs/heads/none"), ("config", SETTINGS + kind)):
        with open(os.path.join(folder, name), "w") as file:
            file.write(f"{text}\n")
    if beside:
        os.makedirs(os.path.join(objects, "info"), exist_ok=True)
        link = os.path.join(folder, "beside")
        os.symlink(beside, link)
        files.replace_file(os.path.join(objects, "info", "alternates"), link.encode() + b"\n", durable=False)
    return ENVIRONMENT | {"GIT_DIR": folder, "GIT_OBJECT_DIRECTORY": objects}


class Staged:
    """``with Staged(tree, …) as staged``: the container's own objects in a folder of ours, gone afterwards.

    Raises ``Refused`` when they are too many or too large.
    """

    def __init__(
        self, tree: Tree, session_folder: str, commit: str, limits: Limits, progress: git.Progress = git.silent
    ) -> None:
        self.tree, self.limits, self.progress = tree, limits, progress
        self.told_s = 0.0
        self.top = os.path.join(session_folder, STAGED)  # no container can write there, as it might in TMPDIR
        self.own, self.folder = os.path.join(self.top, "git"), os.path.join(self.top, "objects")
        self.hash_bytes = len(commit) // 2
        self.commit = commit
        self.left = limits.total_bytes
        self.ends = time.monotonic() + limits.timeout_s

    def __enter__(self) -> Staged:
        erase(self.top)
        os.mkdir(self.top, mode=0o700)
        os.mkdir(self.own)
        os.makedirs(os.path.join(self.folder, "pack"))
        try:
            self.known = git.run("/", "for-each-ref", "--format=^%(objectname)", git_dir=self.tree.common).out
            self.env = own_folder(self.own, self.folder, self.commit, self.tree.objects)
            self._copy()
            for name in os.listdir(os.path.join(self.folder, "pack")):
                self._git("index-pack", os.path.join(self.folder, "pack", name))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        erase(self.top)

    def new_commits(self, commits: list[str], most: int) -> list[str]:
        """The commits that these lead to and that no ref of the repository has. Raises ``Refused``, ``GitFailed``."""
        words = ("rev-list", f"--max-count={most + 1}", "--stdin")
        found = self._git(*words, stdin=self._wanted(commits)).out.decode().split()
        if len(found) > most:
            raise Refused(f"it has more than {most} new commits")
        return found

    def refuse_endless(self, commit: str) -> None:
        """A few trees that name each other can stand for any number of files. Raises ``GitFailed`` for too many."""
        self._git(*LISTING, commit)

    def store(self, commits: list[str]) -> None:
        """Put these commits, and what they lead to, into the repository. Git checks every object on the way."""
        out = os.path.join(self.top, "out")
        packing = ("pack-objects", "-q", "--revs", "--non-empty", out)
        named = self._git(*packing, stdin=self._wanted(commits)).line
        if not named:
            return
        fd = files.open_file(f"{out}-{named}.pack")
        try:
            words = ("index-pack", "--stdin", "--strict", f"--max-input-size={self.limits.total_bytes}")
            self._git(*words, source=fd, env=self.env | {"GIT_OBJECT_DIRECTORY": self.tree.objects})
        finally:
            os.close(fd)
        self.known += "".join(f"^{commit}\n" for commit in commits).encode()

    def _wanted(self, commits: list[str]) -> bytes:
        return "".join(f"{commit}\n" for commit in commits).encode() + self.known

    def _git(
        self, *words: str, stdin: bytes = b"", source: int | None = None, env: dict[str, str] | None = None
    ) -> git.Done:
        left_s = self.ends - time.monotonic()
        if left_s <= 0:
            raise GitFailed(words[0], f"it did not end within {self.limits.timeout_s:g} s")
        env = env or self.env
        return git.run("/", *words, stdin=stdin, source=source, env=env, timeout_s=left_s, progress=self._tell)

    def _tell(self, _: float = 0.0) -> None:
        """About once a second, while objects are copied and while git works."""
        waited_s = self.limits.timeout_s - (self.ends - time.monotonic())
        if waited_s >= self.told_s + git.PROGRESS_EVERY_S:
            self.told_s = waited_s
            self.progress(waited_s)

    # copying ----------------------------------------------------------------------------------------------------

    def _copy(self) -> None:
        top = open_below(self.tree.inside, "objects")
        try:
            self._copy_loose(top)
            self._copy_packs(top)
        finally:
            os.close(top)

    def _copy_loose(self, top: int) -> None:
        found: list[tuple[str, str]] = []
        for name in os.listdir(top):
            if re.fullmatch("[0-9a-f]{2}", name) is None or (folder := _opened(top, name)) is None:
                continue
            try:
                found += [(name, entry) for entry in os.listdir(folder) if _LOOSE.fullmatch(entry)]
            finally:
                os.close(folder)
            if len(found) > MOST_FILES:
                raise Refused(f"the container has made more than {MOST_FILES} git objects")
        for name, entry in self._unknown(found):
            folder = _opened(top, name)
            if folder is None:
                continue
            try:
                self._copy_object(folder, entry, os.path.join(self.folder, name, entry))
            finally:
                os.close(folder)

    def _unknown(self, found: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Those that the repository does not have."""
        asked = "".join(f"{name}{entry}\n" for name, entry in found).encode()
        words = ("cat-file", "--batch-check=%(objectname)")
        told = git.run("/", *words, git_dir=self.tree.common, stdin=asked).out.decode().splitlines() if found else []
        missing = {line.partition(" ")[0] for line in told if line.endswith(" missing")}
        return [(name, entry) for name, entry in found if name + entry in missing]

    def _copy_object(self, folder: int, name: str, target: str) -> None:
        """One that would become too large is left out: nobody may need it."""
        fd = _opened_file(folder, name)
        if fd is None:
            return
        try:
            size = os.fstat(fd).st_size
            if size > self.limits.total_bytes // 2:
                return
            self._count(size)
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            _copy_bytes(fd, target, size)
        finally:
            os.close(fd)
        with open(target, "rb") as copy:  # not the container's own file, which may be another one by now
            becomes = _becomes(copy.read(HEADER_BYTES))
        if becomes is None or becomes > self.limits.total_bytes // 2:
            files.discard(target)
        else:
            self._count(max(becomes - size, 0))

    def _copy_packs(self, top: int) -> None:
        folder = _opened(top, "pack")
        if folder is None:
            return
        try:
            for name in filter(_PACK.fullmatch, os.listdir(folder)):
                fd = _opened_file(folder, name)
                if fd is None:
                    continue
                try:
                    size = os.fstat(fd).st_size
                    self._count(size)
                    target = os.path.join(self.folder, "pack", name)
                    _copy_bytes(fd, target, size)
                finally:
                    os.close(fd)
                self._measure(target)
        finally:
            os.close(folder)

    def _count(self, size_bytes: int) -> None:
        self._tell()
        self.left -= size_bytes
        if self.left < 0:
            most = self.limits.total_bytes >> 20
            raise Refused(f"the container has made git objects of more than {most} MiB")

    def _measure(self, path: str) -> None:
        """Count what a pack becomes, by what it says of each object: git holds it to that, and refuses garbage."""
        with open(path, "rb") as pack:
            if os.fstat(pack.fileno()).st_size:
                with mmap.mmap(pack.fileno(), 0, access=mmap.ACCESS_READ) as content:
                    for size in _Pack(content, self.hash_bytes).sizes():
                        self._count(size)


def _becomes(content: bytes) -> int | None:
    """How large an object says that it is; None when it is none."""
    try:
        found = _HEADER.match(zlib.decompressobj().decompress(content, 64))
    except zlib.error:
        return None
    return int(found[1]) if found is not None else None


class _Pack:
    """The sizes in a pack, one entry after the other. See ``gitformat-pack``."""

    def __init__(self, content: mmap.mmap, hash_bytes: int) -> None:
        self.content, self.hash_bytes, self.place = content, hash_bytes, 12

    def sizes(self) -> Iterator[int]:
        """Each is told before the entry is inflated. They end where the pack is broken."""
        try:
            for _ in range(int.from_bytes(self.content[8:12], "big")):
                kind, size = self._head()
                yield size
                begins = self._skip(size)
                if kind in (OFS_DELTA, REF_DELTA):
                    yield _target_size(begins)
        except (IndexError, zlib.error):
            return

    def _head(self) -> tuple[int, int]:
        byte = self._byte()
        kind, size, shift = byte >> 4 & 7, byte & 15, 4
        while byte & 128:
            byte = self._byte()
            size |= (byte & 127) << shift
            shift += 7
        if kind == REF_DELTA:
            self.place += self.hash_bytes
        while kind == OFS_DELTA and self._byte() & 128:
            pass
        return kind, size

    def _byte(self) -> int:
        self.place += 1
        return self.content[self.place - 1]

    def _skip(self, size: int) -> bytes:
        """Go behind one compressed part of so many bytes; how it begins."""
        inflating, begins, made, given = zlib.decompressobj(), b"", 0, b""
        while not inflating.eof:
            if not given:
                given = self.content[self.place : self.place + 65536]
                self.place += len(given)
            if not given or made > size:
                raise IndexError("the pack is not what it says")
            out = inflating.decompress(given, PART_BYTES)
            given, made, begins = inflating.unconsumed_tail, made + len(out), begins or out[:32]
        self.place -= len(inflating.unused_data)
        return begins


def _target_size(delta: bytes) -> int:
    """What a delta makes: its second number."""
    place = 0
    numbers: list[int] = []
    while len(numbers) < 2 and place < len(delta):
        number, shift = 0, 0
        while place < len(delta):
            byte = delta[place]
            place += 1
            number |= (byte & 127) << shift
            shift += 7
            if not byte & 128:
                break
        numbers.append(number)
    return numbers[1] if len(numbers) == 2 else 0


def _opened(above: int, name: str) -> int | None:
    try:
        return os.open(name, FOLDER, dir_fd=above)
    except OSError:
        return None


def _opened_file(folder: int, name: str) -> int | None:
    """None for anything but a regular file."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    try:
        files.checked_file(fd, name)
    except OSError:
        os.close(fd)
        return None
    return fd


def _copy_bytes(fd: int, target: str, size: int) -> None:
    with open(target, "wb") as file:
        done = 0
        while done < size and (part := os.pread(fd, min(size - done, PART_BYTES), done)):
            file.write(part)
            done += len(part)
