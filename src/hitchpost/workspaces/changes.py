"""What a worktree holds that no branch has: changed and untracked files, submodules' own work, loose commits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import copyfileobj
from tempfile import TemporaryDirectory

from hitchpost.values import value
from hitchpost.workspaces import git

GITLINK = "160000"
_SUBMODULE, _PATH = 2, {"1": 8, "2": 9, "u": 10}


@value
class Changes:
    """``loose`` is the head's commit when no branch, remote branch or tag has it."""

    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    submodules: tuple[str, ...] = ()
    loose: str | None = None

    @property
    def count(self) -> int:
        return len(self.changed) + len(self.untracked)

    @property
    def is_clean(self) -> bool:
        return not self.count and not self.submodules and self.loose is None

    def __str__(self) -> str:
        """``1 changed and 2 untracked files``."""
        numbers = [(len(self.changed), "changed"), (len(self.untracked), "untracked")]
        parts = [" and ".join(f"{number} {word}" for number, word in numbers if number)]
        parts = [f"{parts[0]} file{'' if self.count == 1 else 's'}"] if self.count else []
        if self.submodules:
            parts.append(f"work in the submodule {', '.join(self.submodules)}")
        if self.loose is not None:
            parts.append("commits that are on no branch")
        return ", ".join(parts) or "clean"


def changes(folder: str) -> Changes:
    """Look at the worktree ``folder``. Reads only: the index is not refreshed, no lock is taken."""
    changed, untracked, submodules = [], [], []
    words = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=none", "--no-renames")
    for item in git.run(folder, *words).items:
        kind = item[:1]
        if kind == "?":
            untracked.append(item[2:])
        elif kind in _PATH:
            fields = item.split(" ", _PATH[kind])
            changed.append(fields[-1])
            if fields[_SUBMODULE][0] == "S" and set(fields[_SUBMODULE][2:]) - {"."}:
                submodules.append(fields[-1])
    return Changes(tuple(changed), tuple(untracked), tuple(submodules), loose_commit(folder))


def loose_commit(folder: str, git_dir: str | None = None) -> str | None:
    """The head's commit when nothing but the head leads to it."""
    head = git.head(folder, git_dir)
    if head is None:
        return None
    reached = ("--not", "--branches", "--remotes", "--tags")
    return head if git.run(folder, "rev-list", "-n1", head, *reached, git_dir=git_dir).out else None


def unpushed_submodules(folder: str) -> list[str]:
    """Submodules with commits that only this worktree has: their repositories go with it."""
    found = []
    for item in git.run(folder, "ls-files", "-z", "--stage").items:
        mode, _, path = item.partition("\t")
        below = os.path.join(folder, path)
        if mode.startswith(GITLINK) and os.path.lexists(os.path.join(below, ".git")):
            done = git.run(below, "rev-list", "-n1", "HEAD", "--branches", "--not", "--remotes", check=False)
            if done.code != 0 or done.out:
                found.append(path)
    return found


@contextmanager
def scratch_index(folder: str, *, empty: bool = False) -> Iterator[dict[str, str]]:
    """The environment for git commands that work on a copy of the index, which is thrown away afterwards."""
    with TemporaryDirectory(prefix="hitchpost-index-") as temp:
        path = os.path.join(temp, "index")
        if not empty:
            try:
                _copy_with_time(os.path.join(git.git_folder(folder), "index"), path)
            except FileNotFoundError:
                pass
        yield {"GIT_INDEX_FILE": path, "GIT_LITERAL_PATHSPECS": "1"}


def _copy_with_time(path: str, copy: str) -> None:
    """By an index's own time git knows which files may have changed in the instant in which it was written."""
    with open(path, "rb") as source, open(copy, "wb") as target:
        copyfileobj(source, target)
        found = os.fstat(source.fileno())
    os.utime(copy, ns=(found.st_atime_ns, found.st_mtime_ns))
