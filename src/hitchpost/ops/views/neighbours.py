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

NAMED = 3


def neighbours(home: str, session: str, folder: str) -> list[str]:
    """One note about the other sessions with live runs in ``folder``; none where there are none."""
    now = moments.now()
    names: list[str] = []
    for other in Index(home).check().changed:
        if other == session:
            continue
        try:
            record = records.read(session_folder(home, other))
            live = record.folder == folder and status(observe(home, other).facts, now).state in runs.LIVE
        except FAILURES:
            continue
        if live:
            names.append(record.name)
        if len(names) > NAMED:
            return [f"note: {', '.join(names[:NAMED])} and more sessions work in {folder} too; see hitch ps"]
    if not names:
        return []
    several = f"sessions {', '.join(names[:-1])} and {names[-1]} work" if names[1:] else f"session {names[0]} works"
    return [f"note: {several} in {folder} too"]
