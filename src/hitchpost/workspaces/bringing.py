"""Bringing what was committed in a container into the repository.

The container's git folder is full of what an agent wrote, so git does not run there. Its refs are read as bytes, its
objects are copied without following a link, packed and checked by git in a folder of ours, and only then stored. Of
the repository's branches only the one that the container began on is moved, and no commit of it is ever lost.
"""

from __future__ import annotations

import os
import re
import tempfile

from hitchpost.errors import HitchpostError, Refused
from hitchpost.store import files
from hitchpost.workspaces import git, refs
from hitchpost.workspaces.folders import FOLDER, open_below
from hitchpost.workspaces.inside import is_of, read_brought, write_brought
from hitchpost.workspaces.tree import Tree, copy_with_time, install_index

REFS = "refs/hitchpost/inside"
STAGED, LOCK = "git-staged", "git.lock"
WAIT_S, BRING_S = 60.0, 120.0
MOST_MOVED, MOST_BYTES = 500, 2 << 30
BROUGHT_KINDS = ("refs/heads/", "refs/tags/", "refs/stash")
_LOOSE = re.compile(r"[0-9a-f]{38}(?:[0-9a-f]{24})?")
_PACK = re.compile(r"pack-[0-9a-f]{40}(?:[0-9a-f]{24})?\.pack")
ENVIRONMENT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
SETTINGS = "[core]\nbare = true\nhooksPath = /dev/null\nrepositoryFormatVersion = 1\n[extensions]\nobjectFormat = "


def bring_out(tree: Tree) -> list[str]:
    """Store what the container has committed since the last time; what a person should know.

    Raises ``HitchpostError`` when that cannot be done; then nothing has changed.
    """
    session_folder = os.path.dirname(tree.inside)
    with files.Lock(os.path.join(session_folder, LOCK), WAIT_S):
        if not is_of(tree):
            raise Refused(f"{tree.inside} belongs to another worktree than {tree.top}")
        branch, before = read_brought(tree)
        now = _inside(tree)
        moved = {ref: commit for ref, commit in now.items() if before.get(ref) != commit}
        if not moved:
            return []
        if len(moved) > MOST_MOVED:
            raise Refused(f"the container has changed {len(moved)} branches and tags; {MOST_MOVED} are the most")
        _fetch(tree, session_folder, list(moved.values()))
        notes = []
        for ref, commit in moved.items():
            if branch is not None and ref == f"refs/heads/{branch}":
                notes += _move(tree, session_folder, ref, before.get(ref), commit)
            else:
                notes.append(_kept(tree, session_folder, ref.removeprefix("refs/"), commit))
        write_brought(tree, branch, {**before, **now})
        return notes


def is_current(tree: Tree) -> bool:
    """Whether the container's branch is where the repository has it: nobody has committed on this side since."""
    branch, brought = read_brought(tree)
    ref = f"refs/heads/{branch}"
    return branch is None or refs.commit(tree.common, ref) == brought.get(ref)


def _inside(tree: Tree) -> dict[str, str]:
    found, _ = refs.everything(tree.inside)
    head = refs.head(tree.inside, tree.own)
    kept = {ref: commit for ref, commit in found.items() if ref.startswith(BROUGHT_KINDS)}
    return {**kept, "HEAD": head.commit} if head.branch is None and head.commit else kept


def _move(tree: Tree, session_folder: str, ref: str, before: str | None, commit: str) -> list[str]:
    """Move the container's own branch, unless somebody has moved it elsewhere on this side."""
    there = refs.commit(tree.common, ref)
    if there == commit:
        return []
    leads_there = there is not None and _git(tree, "merge-base", "--is-ancestor", there, commit, check=False) == 0
    notes = []
    if there is None or not (leads_there or there == before):
        return [_kept(tree, session_folder, ref.removeprefix("refs/"), commit)]
    if not leads_there:
        moment = files.stamp().replace("-", "").replace(":", "")
        notes = [_kept(tree, session_folder, f"before/{moment}", there)]
    _git(tree, "update-ref", "-m", "hitchpost: committed in a container", ref, commit, there)
    _follow(tree, ref, there, commit)
    return notes


def _kept(tree: Tree, session_folder: str, name: str, commit: str) -> str:
    ref = f"{REFS}/{os.path.basename(session_folder)}/{name}"
    _git(tree, "update-ref", ref, commit)
    return f"{commit[:12]} is kept in {ref}"


def _git(tree: Tree, *words: str, check: bool = True) -> int:
    return git.run("/", *words, git_dir=tree.common, check=check).code


def _follow(tree: Tree, ref: str, old: str, new: str) -> None:
    """The worktree's index on this side follows its branch: else every commit would look as if it were undone."""
    if refs.head(tree.common, tree.own).branch != ref.removeprefix("refs/heads/"):
        return
    with tempfile.TemporaryDirectory(prefix="hitchpost-git-") as folder:
        index = {"GIT_INDEX_FILE": os.path.join(folder, "moved-index")}
        there = copy_with_time(tree.index, index["GIT_INDEX_FILE"])
        env = _own_folder(folder, tree.objects, new) | index
        merged = there and git.run("/", "read-tree", "-i", "-m", old, new, env=env, check=False).code == 0
        if not merged:
            files.discard(index["GIT_INDEX_FILE"])
            git.run("/", "read-tree", new, env=env)
        try:
            install_index(tree, index["GIT_INDEX_FILE"])
        except HitchpostError:
            return  # somebody is at work there, and sees the difference


# Objects --------------------------------------------------------------------------------------------------------


def _own_folder(folder: str, objects: str, commit: str, beside: str = "") -> dict[str, str]:
    """A git folder of ours for commands without a worktree. ``beside`` are more objects that they may read."""
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


def _fetch(tree: Tree, session_folder: str, commits: list[str]) -> None:
    """Store these commits, and what they lead to, in the repository. Git checks every object on the way."""
    staged = os.path.join(session_folder, STAGED)
    os.makedirs(os.path.join(staged, "pack"), mode=0o700, exist_ok=True)
    _copy_objects(tree.inside, staged)
    known = git.run("/", "for-each-ref", "--format=^%(objectname)", git_dir=tree.common).out
    wanted = "".join(f"{commit}\n" for commit in commits).encode() + known
    with tempfile.TemporaryDirectory(prefix="hitchpost-git-") as folder:
        env = _own_folder(folder, staged, commits[0], tree.objects)
        for name in os.listdir(os.path.join(staged, "pack")):
            path = os.path.join(staged, "pack", name)
            if name.endswith(".pack") and not os.path.exists(f"{path.removesuffix('.pack')}.idx"):
                git.run("/", "index-pack", path, env=env, timeout_s=BRING_S)
        packing = ("pack-objects", "-q", "--revs", "--non-empty", os.path.join(folder, "out"))
        named = git.run("/", *packing, stdin=wanted, env=env, timeout_s=BRING_S).line
        if not named:
            return
        fd = files.open_file(os.path.join(folder, f"out-{named}.pack"))
        try:
            words = ("index-pack", "--stdin", "--strict", f"--max-input-size={MOST_BYTES}")
            git.run("/", *words, source=fd, env=env | {"GIT_OBJECT_DIRECTORY": tree.objects}, timeout_s=BRING_S)
        finally:
            os.close(fd)


def _copy_objects(inside: str, staged: str) -> None:
    """Copy the container's own objects. Regular files with the names of objects only, and no link is followed."""
    left = MOST_BYTES
    top = open_below(inside, "objects")
    try:
        for name in os.listdir(top):
            wanted = _PACK if name == "pack" else _LOOSE if re.fullmatch("[0-9a-f]{2}", name) else None
            if wanted is None:
                continue
            try:
                folder = os.open(name, FOLDER, dir_fd=top)
            except OSError:
                continue
            try:
                for entry in filter(wanted.fullmatch, os.listdir(folder)):
                    target = os.path.join(staged, name, entry)
                    if not os.path.exists(target):
                        left -= _copy_object(folder, entry, target, left)
            finally:
                os.close(folder)
    finally:
        os.close(top)


def _copy_object(folder: int, name: str, target: str, most: int) -> int:
    """The number of bytes. Raises ``Refused`` when they are too many."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return 0
    try:
        try:
            size = files.checked_file(fd, name).st_size
        except files.NotAFile:
            return 0
        if size > most:
            raise Refused(f"the container has made more than {MOST_BYTES >> 30} GiB of git objects")
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        temp = f"{target}.{os.getpid()}.tmp"
        with open(temp, "wb") as file:
            done = 0
            while done < size and (part := os.pread(fd, min(size - done, 1 << 20), done)):
                file.write(part)
                done += len(part)
        os.rename(temp, target)
        return size
    finally:
        os.close(fd)
