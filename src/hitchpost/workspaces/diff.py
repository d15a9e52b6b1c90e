"""What was done in a worktree since a commit: committed, uncommitted and untracked, in one difference."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from hitchpost.errors import GitFailed, Refused
from hitchpost.workspaces import git, new_index
from hitchpost.workspaces.changes import checked_out, submodules_of, untracked
from hitchpost.workspaces.patch_check import is_of_worktree
from hitchpost.workspaces.refs import is_commit
from hitchpost.workspaces.tree import Tree
from hitchpost.workspaces.view import View, containers_around, still_around

SHOWING = ("--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", "--src-prefix=a/", "--dst-prefix=b/")
LISTING = ("--raw", "--no-abbrev", "-z")
DIFF_S = 120.0
SUMMARY = re.compile(rb"\n (\d+) files? changed(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?\s*\Z")
"""The last line of ``--stat``."""
MOST_BYTES = 8 << 20
"""Of a difference that is larger, only so much is shown."""


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
    """``base`` is what was compared with. ``patch`` and ``stat`` are as git prints them; ``cut`` when too long."""

    base: str | None
    head: str | None
    branch: str | None
    files: tuple[File, ...]
    patch: bytes
    stat: bytes
    cut: bool = False

    @property
    def counts(self) -> tuple[int, int, int] | None:
        """Files, lines added and lines deleted; None when it is cut, so that nobody knows."""
        if self.cut:
            return None
        if self.stat:
            found = SUMMARY.search(self.stat)
            return None if found is None else tuple(int(number or 0) for number in found.groups())  # type: ignore[return-value]
        return (
            len(self.files),
            sum(file.added or 0 for file in self.files),
            sum(file.deleted or 0 for file in self.files),
        )


def difference(tree: Tree, base: str | None, *, stat: bool = False) -> Difference:
    """Compare a worktree with ``base``, else with its head, else with nothing; ``stat`` asks for that, and no patch.

    Reads only. Raises ``Refused``. It is done again, with the containers held still, where one may have got in between.
    """
    beside = containers_around(tree)
    found, holds = _difference(tree, base, stat, check=beside and not stat)
    if holds and (beside or not containers_around(tree)):
        return found
    with still_around(tree):
        return _difference(tree, base, stat, check=False)[0]


def _difference(tree: Tree, base: str | None, stat: bool, *, check: bool) -> tuple[Difference, bool]:
    """With whether it shows nothing but what is in the worktree now, where that is to be checked."""
    with View(tree) as view:
        against = base or checked_out(view)
        if not is_commit(against):
            raise _unknown(tree, against)
        how = ("--stat=100",) if stat else (*LISTING, "--patch")
        try:
            told, new, inside = _compared(view, against, how)
        except GitFailed:
            if view.has(against):
                raise
            raise _unknown(tree, against) from None
        submodules = submodules_of(view, inside)
        holds = not check or all(is_of_worktree(view.top, *_shown(part.out)) for part in told)
    head, cut = view.head, any(part.cut for part in told)
    if stat:
        return Difference(base, head.commit, head.branch, (), b"", told[0].out, cut), holds
    found = [file for part in told for file in _files(part.out, new)]  # in the order of the patch
    found += [
        File(path, None, "A", None, None, False, True) for path in inside if path.removesuffix("/") not in submodules
    ]
    patch = b"".join(_parted(part.out)[1] for part in told)
    return Difference(base, head.commit, head.branch, tuple(found), patch[:MOST_BYTES], b"", cut), holds


def _unknown(tree: Tree, commit: str) -> Refused:
    return Refused(f"the commit {commit} that it started from is not in {tree.top} any more")


def _compared(view: View, against: str, how: tuple[str, ...]) -> tuple[list[git.Done], frozenset[str], list[str]]:
    """What git says; the new files; the repositories inside.

    While git compares the files that it knows, others look for new ones and compare those with nothing. That will do
    unless a file is gone, too: then a new one can be that one, renamed, and all are compared at once.
    """

    def diff(of: str, **env: str) -> git.Done:
        return view.run("diff", *SHOWING, *how, of, "--", env=env, timeout_s=DIFF_S, most=MOST_BYTES, cut=True)

    with ThreadPoolExecutor(1) as beside:
        of_known = beside.submit(diff, against)
        new, inside = untracked(view)
        told, alone = [], os.path.join(view.folder, "new")
        if new and "--patch" in how:
            new_index.write(alone, new, view.empty_file)
            told = [diff(view.empty_tree, GIT_INDEX_FILE=alone)]
        told = [of_known.result(), *told]
    if new and (len(told) == 1 or any(letter == "D" for letter, _ in _listed(told[0].out))):
        _know(view, new)
        told = [diff(against)]
    return told, frozenset(new), inside


def _know(view: View, new: list[str]) -> None:
    """Make the index name these files, without a content, so that git compares them."""
    told = b"".join(b"100644 %s\t%s\0" % (view.empty_file.encode(), os.fsencode(path)) for path in new)
    view.run("update-index", "-z", "--index-info", stdin=told)


def _shown(out: bytes) -> tuple[list[str], bytes]:
    """The path of each part of the patch, and the patch. A file that became a link, or the reverse, has two parts."""
    paths = [path for letter, names in _listed(out) for path in [names[-1]] * (2 if letter == "T" else 1)]
    return paths, _parted(out)[1]


def _parted(out: bytes) -> tuple[list[str], bytes]:
    """The list of files, whose parts are ended by NULs, and the patch behind it."""
    names, _, patch = out.partition(b"\0\0")
    return [item for item in os.fsdecode(names).split("\0") if item], patch


def _listed(out: bytes) -> Iterator[tuple[str, list[str]]]:
    """What ``--raw`` says of each file: git's letter and its name, or its old one and its new one. It may be cut."""
    items = iter(_parted(out)[0])
    for item in items:
        letter = item.rpartition(" ")[2][:1]
        names = list(islice(items, 2 if letter in "RC" else 1))
        if len(names) == (2 if letter in "RC" else 1):
            yield letter, names


def _files(out: bytes, untracked: frozenset[str]) -> list[File]:
    """The patch has the files in the same order as the list before it. Either may be cut."""
    counts = _counts(_parted(out)[1])
    found: list[File] = []
    for letter, names in _listed(out):
        added, deleted, binary = next(counts, (None, None, False))
        if letter == "T":  # a file that became a link, or the other way round: one goes, one comes
            added = next(counts, (None, None, False))[0]
        old = names[0] if len(names) == 2 else None
        found.append(File(names[-1], old, letter, added, deleted, binary, names[-1] in untracked))
    return found


def _counts(patch: bytes) -> Iterator[tuple[int | None, int | None, bool]]:
    """For each file of a patch: lines added and deleted, and whether it is binary. The last one may be cut."""
    for part in re.split(rb"^diff --git ", patch, flags=re.MULTILINE)[1:]:
        head, at, body = part.partition(b"\n@@ ")
        if not at and b"\nBinary files " in head:
            yield None, None, True
        else:
            yield body.count(b"\n+"), body.count(b"\n-"), False
