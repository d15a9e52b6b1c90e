"""The git folder that a container has in the place of the repository's: a copy, so that it can break no other.

The container writes all of it, and its own objects beside the repository's, which it can only read. Git never runs in
it on this side: what is committed there is read as bytes, and brought out (``bringing``).
"""

from __future__ import annotations

import os

from hitchpost.errors import Refused
from hitchpost.store import files
from hitchpost.values import replace
from hitchpost.workspaces import git, refs
from hitchpost.workspaces.folders import erase
from hitchpost.workspaces.tree import Tree, copy_with_time, open_same

OBJECTS, WORKSPACE = "/hitchpost/objects", "/workspace"
"""Where a container has the repository's objects, and the worktree."""
FOLDER, BROUGHT, POINTER = "git", "git-brought.json", "git-pointer"
MOST_BYTES = 1 << 20
COPIED = ("config", "config.worktree", "shallow", "info/exclude", "info/attributes")
OWN = ("HEAD", "config.worktree", "info/sparse-checkout")
OURS = "refs/hitchpost/"


def check(tree: Tree) -> None:
    """Raise ``Refused`` unless everything that is given to a container is what was written down, and no link."""
    for path, wanted in (
        (tree.top, tree.top_id),
        (tree.common, tree.common_id),
        (tree.objects, tree.objects_id),
    ):
        os.close(open_same(path, wanted))
    link = os.path.join(tree.top, ".git")
    if tree.own:
        os.close(_regular(link))
    elif link != tree.common:
        os.close(open_same(link, tree.common_id))


def _regular(path: str) -> int:
    try:
        return files.open_file(path)
    except OSError:
        raise Refused(f"{path} is not the file that git made there; no container gets it") from None


def make(tree: Tree, session_folder: str) -> str:
    """Make it anew, as the repository is now; its path. Nobody may have the old one any more."""
    folder = os.path.join(session_folder, FOLDER)
    making = f"{folder}.new"
    for old in (making, folder):
        erase(old)
    own = os.path.join(making, tree.own) if tree.own else making
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"):
        os.makedirs(os.path.join(making, name), mode=0o700)
    os.makedirs(os.path.join(own, "info"), mode=0o700, exist_ok=True)
    for name in ("HEAD", *COPIED):
        _copy(tree.common, name, making)
    _copy_hooks(tree.common, making)
    for name in OWN:
        _copy(tree.own_folder, name, own)
    copy_with_time(tree.index, os.path.join(own, "index"))
    _put(making, "objects/info/alternates", OBJECTS)
    if tree.own:
        _put(own, "commondir", os.path.relpath(making, own))
        _put(own, "gitdir", f"{WORKSPACE}/.git")
    known = _packed(tree, making)
    head = refs.head(tree.common, tree.own)
    write_brought(replace(tree, inside=folder), head.branch, known)
    files.replace_file(
        os.path.join(session_folder, POINTER), b"gitdir: " + os.fsencode(os.path.join(tree.common, tree.own)) + b"\n"
    )
    os.rename(making, folder)
    return folder


def refresh(tree: Tree) -> None:
    """Let the next container see what other branches have got since. Its own stay as they are.

    Everything has been brought out, and no container runs.
    """
    branch, brought = read_brought(tree)
    _packed(tree, tree.inside)
    write_brought(tree, branch, {**brought, **refs.everything(tree.inside)[0]})


def is_of(tree: Tree) -> bool:
    """Whether the container's git folder is this worktree's, and not that of one where the session was before."""
    return files.read_object(os.path.join(os.path.dirname(tree.inside), BROUGHT)).get("of") == tree.own_folder


def read_brought(tree: Tree) -> tuple[str | None, dict[str, str]]:
    """The branch that is the container's own, and what each of its refs was when we looked last."""
    known = files.read_object(os.path.join(os.path.dirname(tree.inside), BROUGHT))
    branch, found = known.get("branch"), known.get("refs")
    brought = {str(ref): str(commit) for ref, commit in found.items()} if isinstance(found, dict) else {}
    return (branch if isinstance(branch, str) else None), brought


def write_brought(tree: Tree, branch: str | None, known: dict[str, str]) -> None:
    value: dict[str, object] = {"schema": files.SCHEMA, "of": tree.own_folder, "branch": branch, "refs": known}
    files.write_object(os.path.join(os.path.dirname(tree.inside), BROUGHT), value)


def _packed(tree: Tree, folder: str) -> dict[str, str]:
    """Write the refs of the repository into the copy, but not ours; what they are."""
    told = git.run("/", "for-each-ref", "--format=%(objectname) %(refname)", git_dir=tree.common).out
    lines = [line for line in os.fsdecode(told).splitlines() if not line.partition(" ")[2].startswith(OURS)]
    files.replace_file(os.path.join(folder, "packed-refs"), os.fsencode("".join(f"{line}\n" for line in lines)))
    return {line.partition(" ")[2]: line.partition(" ")[0] for line in lines}


def _copy(top: str, name: str, to: str) -> None:
    try:
        content = refs.read_below(top, name, MOST_BYTES)
    except OSError:
        return
    with open(os.path.join(to, name), "wb") as file:
        file.write(content)


def _copy_hooks(common: str, making: str) -> None:
    """As they are, for the container's git: nothing runs them on this side."""
    try:
        names = os.listdir(os.path.join(common, "hooks"))
    except OSError:
        return
    for name in names:
        if not name.endswith(".sample"):
            _copy(common, f"hooks/{name}", making)
            if os.access(os.path.join(common, "hooks", name), os.X_OK) and os.path.exists(f"{making}/hooks/{name}"):
                os.chmod(f"{making}/hooks/{name}", 0o700)


def _put(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "wb") as file:
        file.write(os.fsencode(text) + b"\n")
