"""Who else works in a folder. Looks at no more sessions than it takes to name a few."""

from __future__ import annotations

from hitchpost.errors import FAILURES
from hitchpost.model import run as runs
from hitchpost.model.status import status
from hitchpost.ops.views import moments
from hitchpost.ops.views.observe import observe
from hitchpost.store import records
from hitchpost.store.home import session_folder
from hitchpost.store.index import Index

NAMED = 5


def neighbours(home: str, session: str, folder: str) -> list[str]:
    """A note about each other session with a live run in ``folder``, or about a few of many."""
    now = moments.now()
    notes: list[str] = []
    for other in Index(home).check().changed:
        if other == session:
            continue
        try:
            record = records.read(session_folder(home, other))
            live = record.folder == folder and status(observe(home, other).facts, now).state in runs.LIVE
        except FAILURES:
            continue
        if live and len(notes) == NAMED:
            return [*notes, f"note: more sessions work in {folder}; see hitch ps"]
        if live:
            notes.append(f"note: session {record.name} works in {folder} too")
    return notes
