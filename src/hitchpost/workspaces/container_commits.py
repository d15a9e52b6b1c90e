"""Bringing what was committed in a container into the repository.

The container's git folder is full of what an agent wrote, so git does not run there. Its refs are read as bytes, and
its objects go through a folder of ours (``objects``). Of the repository's branches only the one that the container
began on is moved, and no commit of it is ever lost. That branch comes first. Of the rest is taken what can be, and what
cannot is written down with the reason.
"""

from __future__ import annotations

import os
import tempfile

from hitchpost.errors import FAILURES, GitLocked, HitchpostError, Refused
from hitchpost.store import files, locks
from hitchpost.values import replace
from hitchpost.workspaces import container_writes, git, refs
from hitchpost.workspaces.container_git import Brought, is_of, read_brought, write_brought
from hitchpost.workspaces.objects import STAGED, WHOLE, Limits, Staged, own_folder
from hitchpost.workspaces.tree import IndexLock, Tree, copy_with_time

REFS = "refs/hitchpost/inside"
LOCK = "git.lock"
WAIT_S = 60.0
MOST_MOVED, MOST_KEPT, MOST_COMMITS = 500, 2000, 100_000
LONGEST_NAME = 50
BROUGHT_KINDS = ("refs/heads/", "refs/tags/", "refs/stash")
HEAD, REST = "HEAD", "refs"
"""A detached head, and whatever was not even looked at, where a ref is named."""


def bring_out(tree: Tree, limits: Limits = WHOLE, progress: git.Progress = git.silent) -> list[str]:
    """Store what the container has committed since the last time; what a person should know.

    What cannot be stored is in ``inside.left_inside`` afterwards, and stays in the container's folder. A look, which
    has smaller limits, does not try again what was left. ``progress`` is called about once a second. Raises
    ``HitchpostError`` when nothing at all can be done.
    """
    session_folder = os.path.dirname(tree.inside)
    with locks.Lock(os.path.join(session_folder, LOCK), WAIT_S):
        if not is_of(tree):
            raise Refused(f"{tree.inside} belongs to another worktree than {tree.top}")
        known = read_brought(tree)
        now, is_all = _inside(tree, known.branch)
        moved = {ref: commit for ref, commit in now.items() if known.refs.get(ref) != commit}
        if limits != WHOLE:
            moved = {ref: commit for ref, commit in moved.items() if known.left.get(ref, ("",))[0] != commit}
        if not moved and (is_all or REST in known.left):
            return []
        return _Bringing(tree, session_folder, limits, known, now, is_all).bring(moved, progress)


def is_current(tree: Tree) -> bool:
    """Whether the container's branch is where the repository has it: nobody has committed on this side since."""
    known = read_brought(tree)
    ref = f"refs/heads/{known.branch}"
    return known.branch is None or refs.commit(tree.common, ref) == known.refs.get(ref)


def is_brought(tree: Tree) -> bool:
    """Whether the repository has what is checked out in the container."""
    head = refs.head(tree.inside, tree.own)
    ref = HEAD if head.branch is None else f"refs/heads/{head.branch}"
    return head.commit is None or read_brought(tree).refs.get(ref) == head.commit


def _inside(tree: Tree, branch: str | None) -> tuple[dict[str, str], bool]:
    """The container's refs, its own branch and its head before all others; and whether these are all."""
    found, is_all = refs.everything(tree.inside)
    first: dict[str, str] = {}
    if branch is not None and (own := refs.commit(tree.inside, f"refs/heads/{branch}")):
        first[f"refs/heads/{branch}"] = own
    try:
        head = refs.head(tree.inside, tree.own)
    except Refused:
        head = refs.Head()
    if head.branch is None and head.commit:
        first[HEAD] = head.commit
    kept = {ref: commit for ref, commit in sorted(found.items()) if ref.startswith(BROUGHT_KINDS)}
    return {**first, **kept, **first}, is_all


class _Bringing:
    """One time. What was done is written down after each step."""

    def __init__(
        self, tree: Tree, session_folder: str, limits: Limits, known: Brought, now: dict[str, str], is_all: bool
    ) -> None:
        self.tree, self.session_folder, self.limits, self.known = tree, session_folder, limits, known
        self.own = f"refs/heads/{known.branch}"
        self.left = {ref: item for ref, item in known.left.items() if now.get(ref) == item[0]}
        if not is_all:
            self.left[REST] = ("", f"there are more than {refs.MOST_REFS} files and folders, and not all were read")
        self.notes: list[str] = []
        self.prefix = f"{REFS}/{os.path.basename(session_folder)}"

    def bring(self, moved: dict[str, str], progress: git.Progress) -> list[str]:
        before = set(self.left)
        own = {ref: commit for ref, commit in moved.items() if ref == self.own}
        others = {ref: commit for ref, commit in moved.items() if ref != self.own}
        fitting = dict(list(others.items())[:MOST_MOVED])
        for ref in others.keys() - fitting.keys():
            self._leave({ref: others[ref]}, f"more than {MOST_MOVED} branches and tags have changed at once")
        try:
            if moved:
                first = next(iter(moved.values()))
                with Staged(self.tree, self.session_folder, first, self.limits, progress) as staged:
                    self._bring_own(staged, own)
                    self._bring_others(staged, fitting)
        except FAILURES as error:
            tried = {**own, **fitting}
            self._leave({ref: tried[ref] for ref in tried if self.known.refs.get(ref) != tried[ref]}, str(error))
        self._write({})
        told = [f"{ref} could not be copied into the repository: {self.left[ref][1]}" for ref in self.left]
        return [*self.notes, *(text for ref, text in zip(self.left, told, strict=True) if ref not in before)]

    def _bring_own(self, staged: Staged, own: dict[str, str]) -> None:
        for ref, commit in own.items():
            try:
                staged.refuse_endless(commit)
                self._store(staged, [commit])
                self.notes += self._move(ref, self.known.refs.get(ref), commit)
            except HitchpostError as error:
                self._leave(own, str(error))
            else:
                self._write(own)

    def _bring_others(self, staged: Staged, others: dict[str, str]) -> None:
        """All at once; where that fails, one by one while there is time."""
        if not others:
            return
        try:
            self._store(staged, list(others.values()))
            self._keep(others)
        except HitchpostError:
            for ref, commit in others.items():
                try:
                    self._store(staged, [commit])
                    self._keep({ref: commit})
                except HitchpostError as error:
                    self._leave({ref: commit}, str(error))

    def _store(self, staged: Staged, commits: list[str]) -> None:
        home = os.path.dirname(os.path.dirname(self.session_folder))
        container_writes.note_commits(home, self.tree.common, staged.new_commits(commits, MOST_COMMITS))
        staged.store(commits)

    def _move(self, ref: str, before: str | None, commit: str) -> list[str]:
        """Move the container's own branch, unless somebody has moved it elsewhere on this side."""
        there = refs.commit(self.tree.common, ref)
        if there == commit:
            return []
        leads_there = there is not None and self._git("merge-base", "--is-ancestor", there, commit, check=False) == 0
        if there is None or not (leads_there or there == before):
            self._keep({ref: commit})
            return []
        if not leads_there:
            self._keep({"refs/before": there})
        self._git("update-ref", "-m", "hitchpost: committed in a container", ref, commit, there)
        _follow(self.tree, ref, there, commit, os.path.join(self.session_folder, STAGED))
        return []

    def _keep(self, wanted: dict[str, str]) -> None:
        """Give each commit a ref of ours. Its name is flat, so that no other can be in its way."""
        told = git.run("/", "for-each-ref", "--format=%(refname)", f"{self.prefix}/", git_dir=self.tree.common).out
        there = set(os.fsdecode(told).splitlines())
        new = {f"{self.prefix}/{_flat(ref)}-{commit[:16]}": commit for ref, commit in wanted.items()}
        if len(there | new.keys()) > MOST_KEPT:
            raise Refused(f"{len(there)} are kept below {self.prefix} already")
        lines = "".join(f"update {ref} {commit}\n" for ref, commit in new.items())
        git.run("/", "update-ref", "--stdin", git_dir=self.tree.common, stdin=os.fsencode(lines))
        self.notes += [f"{commit[:12]} is kept in {ref}" for ref, commit in new.items() if ref not in there]
        self._write({ref: commit for ref, commit in wanted.items() if ref != "refs/before"})

    def _leave(self, wanted: dict[str, str], why: str) -> None:
        self.left |= {ref: (commit, why) for ref, commit in wanted.items()}

    def _write(self, brought: dict[str, str]) -> None:
        self.left = {ref: item for ref, item in self.left.items() if ref not in brought}
        self.known = replace(self.known, refs={**self.known.refs, **brought}, left=self.left)
        write_brought(self.tree, self.known)

    def _git(self, *words: str, check: bool = True) -> int:
        return git.run("/", *words, git_dir=self.tree.common, check=check).code


def _flat(ref: str) -> str:
    return ref.removeprefix("refs/").replace("/", "-")[:LONGEST_NAME]


def _follow(tree: Tree, ref: str, old: str, new: str, place: str) -> None:
    """The worktree's index on this side follows its branch: else every commit would look as if it were undone."""
    if refs.head(tree.common, tree.own).branch != ref.removeprefix("refs/heads/"):
        return
    try:
        with IndexLock(tree) as lock, tempfile.TemporaryDirectory(dir=place) as folder:
            index = {"GIT_INDEX_FILE": os.path.join(folder, "moved-index")}
            there = copy_with_time(tree.index, index["GIT_INDEX_FILE"])
            env = own_folder(folder, tree.objects, new) | index
            merged = there and git.run("/", "read-tree", "-i", "-m", old, new, env=env, check=False).code == 0
            if not merged:
                files.discard(index["GIT_INDEX_FILE"])
                git.run("/", "read-tree", new, env=env)
            lock.install(index["GIT_INDEX_FILE"])
    except GitLocked:
        return  # somebody is at work there, and sees the difference
