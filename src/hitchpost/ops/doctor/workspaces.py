"""The check-up of workspaces: git itself, files that cannot be read, worktrees that are half made or gone."""

from __future__ import annotations

import os
from collections.abc import Iterator

from hitchpost.errors import GitFailed
from hitchpost.ops.doctor.finding import Finding, note, ok, problem
from hitchpost.store import files, locks
from hitchpost.workspaces import git, store

CHECK = "workspaces"


def workspaces(home: str) -> Iterator[Finding]:
    """Nothing is said about git where no workspace needs it and it is there."""
    found = store.everything(home)
    try:
        git.require()
    except GitFailed as error:
        yield (problem if found else note)("git", str(error), "hitch run --branch and hitch diff need it")
    broken = list(_unreadable(home))
    yield from broken
    for workspace in found:
        if not workspace.made and locks.is_held(os.path.join(store.folder_of(home, workspace.id), files.LOCK)) is False:
            yield note(CHECK, f"{workspace.name} was only partly made", "run: hitch doctor --fix")
        elif workspace.made and workspace.removed_at is None and not workspace.is_present:
            todo = (
                f"hitch workspace restore {workspace.word} brings it back"
                if workspace.managed
                else f"hitch workspace rm {workspace.word} forgets it"
            )
            yield note(CHECK, f"{workspace.name}: {workspace.path} is gone or is another folder", todo)
        elif workspace.made and workspace.removed_at is None and workspace.managed and not store.own_folder(workspace):
            todo = f"hitch workspace restore {workspace.word} makes them again; its files stay as they are"
            yield note(CHECK, f"{workspace.name}: git's notes about {workspace.path} are gone", todo)
    if found and not broken:
        yield ok(CHECK, f"{len(store.listed(home))} known")


def _unreadable(home: str) -> Iterator[Finding]:
    for name in store.ids(home):
        try:
            store.read(home, name)
        except files.CannotRead as error:
            yield problem(CHECK, f"{name}: {error}", "its folder is as it was; correct the file, or move it away")
