"""The git folder that a container has in the place of the repository's: a copy, so that it can break no other.

The container writes all of it, and its own objects beside the repository's, which it can only read. Git never runs in
it on this side: what is committed there is read as bytes, and brought out (``bringing``).
"""

from __future__ import annotations

import os

from hitchpost.errors import Refused
from hitchpost.store import files
from hitchpost.values import asdict, replace, value
from hitchpost.workspaces import git, refs
from hitchpost.workspaces.folders import erase
from hitchpost.workspaces.tree import Tree, copy_with_time, open_same

OBJECTS, WORKSPACE = "/hitchpost/objects", "/workspace"
"""Where a container has the repository's objects, and the worktree."""
FOLDER, BROUGHT, POINTER, KEPT = "git", "git-brought.json", "git-pointer", "-kept-"
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
        raise Refused(f"{path} is not the file that git created, so it is not given to a container") from None


def make(tree: Tree, session_folder: str) -> str:
    """Make it anew, as the repository is now; its path. Nobody may have the old one any more.

    One with commits that could not be brought out is kept beside it.
    """
    folder = os.path.join(session_folder, FOLDER)
    making = f"{folder}.new"
    if left_inside(session_folder) and os.path.isdir(folder):
        os.rename(folder, f"{folder}{KEPT}{files.stamp().replace(':', '')}")
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
    write_brought(replace(tree, inside=folder), Brought(head.branch, known, {}))
    files.replace_file(
        os.path.join(session_folder, POINTER), b"gitdir: " + os.fsencode(os.path.join(tree.common, tree.own)) + b"\n"
    )
    os.rename(making, folder)
    return folder


def refresh(tree: Tree) -> None:
    """Let the next container see what other branches have got since. Its own stay as they are.

    What could be brought out has been, and no container runs.
    """
    brought = read_brought(tree)
    now = refs.everything(tree.inside)[0]
    own = {ref: now[ref] for ref in brought.left if ref in now}
    _packed(tree, tree.inside, own)
    known = {ref: commit for ref, commit in refs.everything(tree.inside)[0].items() if ref not in own}
    write_brought(tree, replace(brought, refs={**brought.refs, **known}))


@value
class Brought:
    """What is known of a container's refs.

    ``branch`` is the container's own, ``refs`` what each ref was when it was brought out, ``left`` what could not be:
    the commit and the reason.
    """

    branch: str | None
    refs: dict[str, str]
    left: dict[str, tuple[str, str]]


def is_of(tree: Tree) -> bool:
    """Whether the container's git folder is this worktree's, and not that of one where the session was before."""
    return files.read_object(os.path.join(os.path.dirname(tree.inside), BROUGHT)).get("of") == tree.own_folder


def read_brought(tree: Tree) -> Brought:
    return _read(os.path.dirname(tree.inside))


def _read(session_folder: str) -> Brought:
    known = files.read_object(os.path.join(session_folder, BROUGHT))
    branch, found, left = known.get("branch"), known.get("refs"), known.get("left")
    return Brought(
        branch if isinstance(branch, str) else None,
        {str(ref): str(commit) for ref, commit in found.items()} if isinstance(found, dict) else {},
        {str(ref): (str(item[0]), str(item[1])) for ref, item in left.items()} if isinstance(left, dict) else {},
    )


def write_brought(tree: Tree, brought: Brought) -> None:
    value: dict[str, object] = {"schema": files.SCHEMA, "of": tree.own_folder, **asdict(brought)}
    files.write_object(os.path.join(os.path.dirname(tree.inside), BROUGHT), value)


def left_inside(session_folder: str) -> list[str]:
    """What a session's containers have committed and nobody could bring into the repository, in words."""
    try:
        known = _read(session_folder).left
        beside = [name for name in os.listdir(session_folder) if name.startswith(FOLDER + KEPT)]
    except FileNotFoundError:
        return []
    where = os.path.join(session_folder, FOLDER)
    told = [f"{ref} of the container is only in {where}: {why}" for ref, (_, why) in sorted(known.items())]
    return told + [f"commits of an earlier container are only in {session_folder}/{name}" for name in sorted(beside)]


def _packed(tree: Tree, folder: str, own: dict[str, str] | None = None) -> dict[str, str]:
    """Write the refs of the repository into the copy, but not ours, and ``own`` in place of those; what they are."""
    told = git.run("/", "for-each-ref", "--format=%(objectname) %(refname)", git_dir=tree.common).out
    lines = [line for line in os.fsdecode(told).splitlines() if not line.partition(" ")[2].startswith(OURS)]
    found = {line.partition(" ")[2]: line.partition(" ")[0] for line in lines} | (own or {})
    text = "".join(f"{commit} {ref}\n" for ref, commit in sorted(found.items()) if ref.startswith("refs/"))
    erase(os.path.join(folder, "packed-refs"))  # where an agent has made a folder of it
    files.replace_file(os.path.join(folder, "packed-refs"), os.fsencode(text))
    return found


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
