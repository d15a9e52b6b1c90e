"""What was done in a worktree since a commit: committed, uncommitted and untracked, in one difference."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from hitchpost.errors import Refused
from hitchpost.workspaces import git
from hitchpost.workspaces.changes import scratch_index

EMPTY_TREE_OF = ("hash-object", "-t", "tree", "--stdin")
SHOWING = ("--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", "--src-prefix=a/", "--dst-prefix=b/")
DIFF_S = 300.0


@dataclass(frozen=True, slots=True)
class File:
    """One file that differs. Lines are counted for text only. ``status`` is git's letter."""

    path: str
    old_path: str | None
    status: str
    added: int | None
    deleted: int | None
    binary: bool
    untracked: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """``base`` is what was compared with. ``patch`` and ``stat`` are as git prints them."""

    base: str | None
    head: str | None
    branch: str | None
    files: tuple[File, ...]
    patch: bytes
    stat: bytes


def difference(folder: str, base: str | None) -> Difference:
    """Compare the worktree that ``folder`` is in with ``base``, else with its head, else with nothing.

    Reads only: the index is copied. Raises ``NotARepository`` or ``Refused``.
    """
    top = git.repository(folder).top
    if top is None:
        raise Refused(f"{folder} is in a bare repository, or in git's own folder: there are no files to compare")
    head = git.head(top)
    if base is not None and (not re.fullmatch(r"[0-9a-f]{40,64}", base) or git.commit(top, base) is None):
        raise Refused(f"the commit {base} that it started from is not in {top} any more")
    against = base or head or git.run(top, *EMPTY_TREE_OF).line
    with scratch_index(top) as env:
        untracked = git.run(top, "ls-files", "-z", "--others", "--exclude-standard", env=env).items
        named = b"".join(os.fsencode(path) + b"\0" for path in untracked if not path.endswith("/"))
        words = ("add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul")
        if named:
            git.run(top, *words, stdin=named, env=env, timeout_s=DIFF_S)
        unmerged = git.run(top, "diff", "--name-only", "--diff-filter=U", "-z", env=env).out
        if unmerged:
            git.run(top, "update-index", "--add", "--remove", "-z", "--stdin", stdin=unmerged, env=env)

        def diff(*how: str) -> git.Done:
            return git.run(top, "diff", *SHOWING, *how, against, "--", env=env, timeout_s=DIFF_S)

        counted = diff("--raw", "--numstat", "--no-abbrev", "-z")
        patch, stat = diff("--patch"), diff("--stat=100")
    files = [*_files(counted.items, set(untracked)), *_repositories(untracked)]
    return Difference(base, head, git.current_branch(top), tuple(files), patch.out, stat.out)


def _files(items: list[str], untracked: set[str]) -> list[File]:
    """``--raw`` comes first, then ``--numstat``, which names files in the same order."""
    found: list[tuple[str, str | None, str]] = []
    position = 0
    while position < len(items) and items[position].startswith(":"):
        letter = items[position].rpartition(" ")[2][:1]
        renamed = letter in "RC"
        old = items[position + 1] if renamed else None
        found.append((items[position + (2 if renamed else 1)], old, letter))
        position += 3 if renamed else 2
    files = []
    for path, old, letter in found:
        added, deleted = items[position].split("\t")[:2]
        position += 3 if old is not None else 1
        binary = added == "-"
        counts = (None, None) if binary else (int(added), int(deleted))
        files.append(File(path, old, letter, counts[0], counts[1], binary, path in untracked))
    return files


def _repositories(untracked: list[str]) -> list[File]:
    """Repositories inside the worktree are named; what is in them is their own."""
    return [File(path, None, "A", None, None, False, True) for path in untracked if path.endswith("/")]
