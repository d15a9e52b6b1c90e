"""The folders that a person may mean while typing a path, and what git says of the one that is typed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import count, islice

from hitchpost.errors import UsageError
from hitchpost.text import readable
from hitchpost.workspaces import refs, store
from hitchpost.workspaces.tree import discover

MOST_LOOKED_AT = 10_000
"""Entries of one folder. Of a larger one, some may be missing."""
MOST_TOLD = 50
HOME = "~"


@dataclass(frozen=True, slots=True)
class FoundFolder:
    """``repository`` says that it is the top of a git repository."""

    path: str
    repository: bool


@dataclass(frozen=True, slots=True)
class Folders:
    """``path`` is what was typed, in full, ``home`` what ``~`` stands for. ``repository`` is the one that it is in;
    None outside of git. ``branch`` is a name that no branch there has, like the one that was asked for.

    ``folders`` are those that what was typed may become; ``cut`` says that there are more.
    """

    path: str
    home: str
    is_folder: bool
    repository: str | None
    branch: str | None
    folders: list[FoundFolder]
    cut: bool


def full_path(typed: str) -> str:
    """What a person means by a path; ``~`` is the home folder. Raises ``UsageError`` unless it begins at the root."""
    if typed.partition("/")[0] == HOME:
        return os.path.expanduser(HOME).rstrip("/") + typed[1:] or "/"
    if not os.path.isabs(typed):
        raise UsageError("the folder has to be a full path, such as /src/shop or ~/shop", field="folder")
    return typed


def look(home: str, typed: str, branch: str = "") -> Folders:
    """What cannot be read is not there. Raises ``UsageError``, see ``full_path``."""
    path = full_path(typed)
    if path == os.path.expanduser(HOME):
        path += "/"
    found, cut = _below(*os.path.split(path))
    is_folder = os.path.isdir(path)
    tree = discover(path, home) if is_folder else None
    return Folders(
        path=path,
        home=os.path.expanduser(HOME),
        is_folder=is_folder,
        repository=None if tree is None else tree.common.removesuffix("/.git"),
        branch=_free_branch(home, tree.common, branch) if tree and refs.is_name(f"refs/heads/{branch}") else None,
        folders=found,
        cut=cut,
    )


def _below(folder: str, begin: str) -> tuple[list[FoundFolder], bool]:
    """The folders there whose names begin so, and whether there may be more.

    Hidden ones only when that is typed. Links are left out, as nobody sees where they lead; so are names that are no
    text.
    """
    try:
        with os.scandir(folder) as entries:
            looked_at = list(islice(entries, MOST_LOOKED_AT + 1))
    except OSError:
        return [], False
    wanted = begin.casefold()
    names = sorted(
        (
            entry.name
            for entry in looked_at[:MOST_LOOKED_AT]
            if entry.name.casefold().startswith(wanted)
            and (entry.name[0] != "." or wanted.startswith("."))
            and entry.name == readable(entry.name)
            and _is_folder(entry)
        ),
        key=lambda name: (name.casefold(), name),
    )
    paths = [os.path.join(folder, name) for name in names[:MOST_TOLD]]
    found = [FoundFolder(path, os.path.lexists(os.path.join(path, ".git"))) for path in paths]
    return found, len(names) > MOST_TOLD or len(looked_at) > MOST_LOOKED_AT


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _free_branch(home: str, common: str, wanted: str) -> str:
    """The name, or with a number behind it where a branch, here or at a remote, has it or lies below it."""
    taken: set[str] = set()
    for ref in refs.everything(common)[0]:
        _, kind, name = ref.split("/", 2) if ref.count("/") > 1 else ("", "", "")
        if kind == "remotes":
            name = name.partition("/")[2]
        if kind in ("heads", "remotes"):
            taken.update(name[:at] for at, letter in enumerate(f"{name}/") if letter == "/")
    names = (wanted if number == 1 else f"{wanted}-{number}" for number in count(1))
    return next(name for name in names if name not in taken and store.of_branch(home, common, name) is None)
