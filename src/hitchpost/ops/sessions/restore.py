"""Bringing back a workspace that is gone, for the sessions that work there."""

from __future__ import annotations

from hitchpost.errors import FAILURES, Refused, WorkspaceBusy
from hitchpost.model import run as runs
from hitchpost.ops.views.observe import observe
from hitchpost.ops.views.workplace import workspace_of
from hitchpost.store import records
from hitchpost.store.home import session_folder
from hitchpost.store.session import Session
from hitchpost.values import replace
from hitchpost.workspaces import project
from hitchpost.workspaces.git import Progress, silent
from hitchpost.workspaces.restoring import Restored, restore
from hitchpost.workspaces.store import Workspace


def bring_back(
    home: str, workspace: Workspace, snapshot: str | None = None, *, actor: str, progress: Progress = silent
) -> Restored:
    """``restore``, ready to work in. Sessions that had lost the folder are looked at again."""
    back = restore(home, workspace, snapshot, progress)
    try:
        notes = project.set_up(home, back.workspace, progress)[1]
    except WorkspaceBusy as error:
        notes = [f"its setup was not run: {error}"]
    _touch_orphans(home, workspace.id, actor)
    return replace(back, notes=(*back.notes, *notes))


def bring_back_of(home: str, session: str, *, actor: str) -> list[str]:
    """Bring a session's workspace back that was deleted. Notes on it. Raises ``Refused`` when there is none."""
    seen = observe(home, session)
    name = seen.record.name
    workspace = workspace_of(home, seen.record)
    if workspace is None or not workspace.managed:
        raise Refused(f"{name} works in a folder that Hitchpost has not made: it cannot be brought back")
    if workspace.is_present:
        raise Refused(f"the folder of {name} is there: {workspace.path}")
    back = bring_back(home, workspace, actor=actor)
    files = [f"its files are those of {back.snapshot}"] if back.snapshot else []
    return [*files, *back.notes]


def _touch_orphans(home: str, workspace: str, actor: str) -> None:
    for session in records.ids(home):
        stored = Session(session_folder(home, session), actor=actor)
        try:
            if stored.record().workspace_id != workspace or stored.read().state != runs.ORPHANED:
                continue
            with stored.lock():
                stored.touch()
        except FAILURES:
            continue  # what is said of it may be old until it changes again
