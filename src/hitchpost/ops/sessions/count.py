"""How much a session has changed in its folder, counted and written down for whoever shows the session."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hitchpost.ops.views.diff import changed
from hitchpost.ops.views.observe import changes_of
from hitchpost.store.home import session_folder
from hitchpost.store.records import Record
from hitchpost.store.session import read_changes, write_changes
from hitchpost.workspaces.diff import Difference

YOUNG = timedelta(minutes=1)
"""The same counts are not written again within this time: an open difference is counted at every change."""


def count(home: str, record: Record) -> None:
    """Raises ``Refused`` where there is nothing to compare."""
    note(home, record, changed(home, record, stat=True))


def note(home: str, record: Record, found: Difference) -> None:
    """What somebody has just looked at. A difference that is cut cannot be counted, and in a folder that is not the
    session's own, others change something too."""
    counts = found.counts
    if counts is None or record.workspace_id is None:
        return
    folder = session_folder(home, record.id)
    before = changes_of(read_changes(folder))
    is_known = before is not None and (before.files, before.added, before.deleted) == counts
    if before is None or not is_known or datetime.now(UTC) - before.at > YOUNG:
        write_changes(folder, *counts)
