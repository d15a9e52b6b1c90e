"""Changing what a person calls a session, and when its silence counts as idle."""

from __future__ import annotations

from hitchpost.errors import NameTaken, NoSuchSession
from hitchpost.model.record import ARCHIVED
from hitchpost.ops.create import check_description, check_idle_after, check_name, home_lock
from hitchpost.state import files, index, records, story
from hitchpost.state.home import session_folder
from hitchpost.state.records import Record
from hitchpost.values import replace


def edit(
    home: str,
    session: str,
    *,
    actor: str,
    name: str | None = None,
    description: str | None = None,
    idle_after_s: float | None = None,
) -> Record:
    """What is not None is changed. Raises ``NameTaken`` or ``UsageError``; nothing is changed then."""
    if name is not None:
        check_name(name)
    if description is not None:
        check_description(description)
    if idle_after_s is not None:
        check_idle_after(idle_after_s)
    folder = session_folder(home, session)
    with home_lock(home):
        rows = index.rows(home)
        if session not in rows:
            raise NoSuchSession(session)
        for row in rows.values():
            if row["id"] != session and row["name"] == name and row["record"] != ARCHIVED:
                raise NameTaken(str(name), row["id"])
        with files.SessionLock(folder):
            record = records.read(folder)
            changed = replace(
                record,
                name=record.name if name is None else name,
                description=record.description if description is None else description,
                idle_after_s=record.idle_after_s if idle_after_s is None else idle_after_s,
            )
            edited = {"name": changed.name, "description": changed.description, "idle_after_s": changed.idle_after_s}
            story.tell(folder, "edited", run=0, actor=actor, **edited)
            records.write(folder, changed)
    return changed
