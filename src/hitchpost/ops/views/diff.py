"""What a session has changed in its folder since it began."""

from __future__ import annotations

import os
from dataclasses import asdict

from hitchpost.errors import Refused
from hitchpost.model.facts import is_elsewhere
from hitchpost.ops.views.workplace import tree_of, workspace_of
from hitchpost.runtimes import pod
from hitchpost.store.home import session_folder
from hitchpost.store.records import Record
from hitchpost.text import readable
from hitchpost.workspaces.diff import Difference, File, difference


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
    patch, stat_text = (str(found[name]).encode("utf-8", "surrogateescape") for name in ("patch", "stat"))
    files = tuple(File(**file) for file in found["files"])
    return Difference(found["base"], found["head"], found["branch"], files, patch, stat_text, found["cut"] is True)


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
