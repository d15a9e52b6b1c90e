"""Changing what a person calls a session, and when its silence counts as idle."""

from __future__ import annotations

from hitchpost.errors import NameTaken, NoSuchSession
from hitchpost.ops.sessions.create import check_description, check_idle_after, check_name, home_lock, in_use
from hitchpost.store.home import session_folder
from hitchpost.store.index import Index
from hitchpost.store.records import Record
from hitchpost.store.session import Session
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
    stored = Session(session_folder(home, session), actor=actor)
    known = Index(home).refresh()
    with home_lock(home):
        for row in in_use(home, known):
            if row["id"] != session and row["name"] == name:
                raise NameTaken(str(name), row["id"])
        if session not in known.lines:
            raise NoSuchSession(session)
        with stored.lock():
            record = stored.record()
            changed = replace(
                record,
                name=record.name if name is None else name,
                description=record.description if description is None else description,
                idle_after_s=record.idle_after_s if idle_after_s is None else idle_after_s,
            )
            edited = {"name": changed.name, "description": changed.description, "idle_after_s": changed.idle_after_s}
            stored.tell("edited", run=0, **edited)
            stored.save(changed)
    return changed
