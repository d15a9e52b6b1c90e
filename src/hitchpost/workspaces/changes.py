"""What a worktree holds that no branch has: changed and untracked files, submodules, loose commits."""

from __future__ import annotations

import os
import re

from hitchpost.errors import Refused
from hitchpost.values import value
from hitchpost.workspaces import git
from hitchpost.workspaces.folders import open_below
from hitchpost.workspaces.tree import Tree
from hitchpost.workspaces.view import GITLINK, View

LONGEST_NAMED = 256


@value
class Changes:
    """``untracked`` files are in no commit, ``submodules`` are checked out.

    ``loose`` is the head's commit when no branch, remote branch or tag has it.
    """

    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    submodules: tuple[str, ...] = ()
    loose: str | None = None

    @property
    def count(self) -> int:
        return len(self.changed) + len(self.untracked)

    @property
    def is_clean(self) -> bool:
        return not self.count and self.loose is None

    def __str__(self) -> str:
        """``1 changed and 2 new files``."""
        numbers = [(len(self.changed), "changed"), (len(self.untracked), "new")]
        parts = [" and ".join(f"{number} {word}" for number, word in numbers if number)]
        parts = [f"{parts[0]} file{'' if self.count == 1 else 's'}"] if self.count else []
        if self.loose is not None:
            parts.append("commits that are on no branch")
        return ", ".join(parts) or "clean"


def changes(tree: Tree) -> Changes:
    """Look at a worktree. Reads only: no file of the worktree or of its repository is written."""
    with View(tree) as view:
        return seen(view)


def seen(view: View) -> Changes:
    """Files that differ from what is checked out, and new ones, added to the index or not."""
    changed = view.run("diff", "--name-only", "-z", "--no-renames", checked_out(view), "--").items
    new, inside = everything_new(view)
    submodules = submodules_of(view, inside)
    new += [path for path in inside if path.removesuffix("/") not in submodules]
    return Changes(tuple(changed), tuple(sorted(new)), submodules, loose_commit(view))


def checked_out(view: View) -> str:
    """What is checked out: a commit, or a tree without files."""
    return view.head.commit or view.empty_tree


def untracked(view: View) -> tuple[list[str], list[str]]:
    """Files that what is checked out does not have and git does not ignore; and repositories, named with a slash."""
    return _parted(view.run("ls-files", "-z", "--others", "--exclude-standard").items)


def _parted(found: list[str]) -> tuple[list[str], list[str]]:
    return [path for path in found if not path.endswith("/")], [path for path in found if path.endswith("/")]


def everything_new(view: View) -> tuple[list[str], list[str]]:
    """The same, and the repositories that git does not name: those in folders that hold files which it knows.

    Raises ``Refused`` when there is something that git cannot open: nobody knows what is in it.
    """
    listing = view.run("ls-files", "-z", "--others", "--exclude-standard")
    if unopened := re.search(r"could not open directory '([^'\n]+)", listing.err):
        place = unopened[1] if len(unopened[1]) < LONGEST_NAMED else unopened[1].partition("/")[0]
        where = os.path.join(view.tree.top, place.removesuffix("/"))
        raise Refused(f"git cannot open all of {where}, so it cannot be in a snapshot; move it elsewhere first")
    new, inside = _parted(listing.items)
    known = [] if view.head.commit is None else view.run("ls-tree", "-r", "-z", "--name-only", view.head.commit).items
    places = set(known)
    for path in (*known, *new):
        while (path := os.path.dirname(path)) and path not in places:
            places.add(path)
    return new, sorted({*inside, *(f"{place}/" for place in places if _is_repository(view, place))})


def _is_repository(view: View, place: str) -> bool:
    """Whether it is a folder, and no link, with a ``.git`` in it, whatever that is."""
    try:
        os.stat(f"{place}/.git", dir_fd=view.top, follow_symlinks=False)
        os.close(open_below(view.top, *place.split("/")))
    except OSError:
        return False
    return True


def submodules_of(view: View, inside: list[str]) -> tuple[str, ...]:
    """Which of the repositories inside are submodules. Nobody looks into them, so there may be work in each."""
    if not inside or view.head.commit is None:
        return ()
    paths = {entry.partition("\t")[2] for entry in gitlinks(view)}
    return tuple(sorted(paths & {path.removesuffix("/") for path in inside}))


def gitlinks(view: View) -> list[str]:
    """The submodules of what is checked out, as ``git update-index --index-info`` wants them."""
    entries = view.run("ls-tree", "-r", "-z", view.head.commit or "HEAD").items
    return [entry for entry in entries if entry.startswith(GITLINK)]


def loose_commit(view: View) -> str | None:
    """The head's commit when nothing but the head leads to it."""
    return loose(view.tree.common, view.head.commit)


def loose(common: str, commit: str | None) -> str | None:
    """The commit when no branch, remote branch or tag of the repository leads to it."""
    if commit is None:
        return None
    reached = ("--not", "--branches", "--remotes", "--tags")
    return commit if git.run("/", "rev-list", "-n1", commit, *reached, git_dir=common).out else None
