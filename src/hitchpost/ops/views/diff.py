"""What a session has changed in its folder since it began."""

from __future__ import annotations

import os
from dataclasses import asdict

from hitchpost.errors import MALFORMED, Refused
from hitchpost.model.facts import is_elsewhere
from hitchpost.ops.views.workplace import tree_of, workspace_of
from hitchpost.runtimes import pod
from hitchpost.store.home import session_folder
from hitchpost.store.records import Record
from hitchpost.text import readable
from hitchpost.workspaces.diff import Difference, File, difference

NOTHING = type(None)
KINDS: dict[str, tuple[type, ...]] = {
    "path": (str,),
    "old_path": (str, NOTHING),
    "status": (str,),
    "added": (int, NOTHING),
    "deleted": (int, NOTHING),
    "binary": (bool,),
    "untracked": (bool,),
}


def changed(home: str, record: Record, *, stat: bool = False) -> Difference:
    """Committed, uncommitted and untracked. Raises ``Refused`` when the folder is gone, or was in no worktree."""
    if is_elsewhere(record.runtime):
        return _changed_there(session_folder(home, record.id), stat)
    workspace = workspace_of(home, record)
    folder = record.folder if workspace is None or not workspace.managed else workspace.path
    if not os.path.isdir(folder):
        back = f"hitch workspace restore {workspace.word} brings it back" if workspace and workspace.managed else ""
        raise Refused(f"{record.name} has no folder any more: {folder} is gone", back)
    tree = tree_of(home, record)
    if tree is None:
        raise Refused(f"{folder} was in no git repository when {record.name} began there: nothing to compare with")
    return difference(tree, record.base, stat=stat)


def _changed_there(folder: str, stat: bool) -> Difference:
    """As its pod sees it."""
    found = pod.ask(folder, "diff", stat=stat)
    try:
        patch, stat_text = (str(found[name]).encode("utf-8", "surrogateescape") for name in ("patch", "stat"))
        files = tuple(_file(file) for file in found["files"])
        base, head, branch = (None if found[name] is None else str(found[name]) for name in ("base", "head", "branch"))
    except MALFORMED as error:
        raise pod.NoAnswer("diff", error) from None
    return Difference(base, head, branch, files, patch, stat_text, found.get("cut") is True)


def _file(told: dict[str, object]) -> File:
    """Raises ``TypeError`` when a field is of another kind than a file's."""
    file = File(**told)  # type: ignore[arg-type]
    for name, kinds in KINDS.items():
        if not isinstance(getattr(file, name), kinds):
            raise TypeError(f"expected {name} of a file to be of another kind than {type(getattr(file, name))}")
    return file


def diff_shape(difference: Difference) -> dict[str, object]:
    """The JSON of ``hitch diff`` and of REST."""
    return {
        "base": difference.base,
        "head": difference.head,
        "branch": readable(difference.branch),
        "files": [readable(asdict(file)) for file in difference.files],
        "patch": difference.patch.decode("utf-8", "replace"),
        "cut": difference.cut,
    }
