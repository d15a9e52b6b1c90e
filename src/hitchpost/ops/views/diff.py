"""What a session has changed in its folder since it began."""

from __future__ import annotations

import os
from dataclasses import asdict

from hitchpost.errors import Refused
from hitchpost.ops.views.workplace import tree_of, workspace_of
from hitchpost.store.records import Record
from hitchpost.text import readable
from hitchpost.workspaces.diff import Difference, difference


def changed(home: str, record: Record, *, stat: bool = False) -> Difference:
    """Committed, uncommitted and untracked. Raises ``Refused`` when the folder is gone, or was in no worktree."""
    workspace = workspace_of(home, record)
    folder = record.folder if workspace is None or not workspace.managed else workspace.path
    if not os.path.isdir(folder):
        back = f"hitch workspace restore {workspace.word} brings it back" if workspace and workspace.managed else ""
        raise Refused(f"{record.name} has no folder any more: {folder} is gone", back)
    tree = tree_of(home, record)
    if tree is None:
        raise Refused(f"{folder} was in no git repository when {record.name} began there: nothing to compare with")
    return difference(tree, record.base, stat=stat)


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
