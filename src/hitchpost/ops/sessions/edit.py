"""Changing what a person calls a session, where it stands in a list, when it counts as idle, and what a limit does."""

from __future__ import annotations

import time

from hitchpost.errors import NameTaken, NoSuchSession, UsageError
from hitchpost.ops.sessions.create import (
    check_description,
    check_idle_after,
    check_name,
    home_lock,
    not_archived,
    rows_of_all,
)
from hitchpost.store import files
from hitchpost.store.home import session_folder
from hitchpost.store.index import Index
from hitchpost.store.records import Record
from hitchpost.store.session import Session
from hitchpost.values import replace

EDITED = ("name", "description", "idle_after_s", "pinned", "snoozed_until", "when_limit")
DAY_S = 86400
LONGEST_SNOOZE_S = 365 * DAY_S


def _until(snooze_s: float) -> str:
    return files.stamp(time.time() + snooze_s) if snooze_s else ""


def edit(
    home: str,
    session: str,
    *,
    actor: str,
    name: str | None = None,
    description: str | None = None,
    idle_after_s: float | None = None,
    pinned: bool | None = None,
    snooze_s: float | None = None,
    when_limit: str | None = None,
) -> Record:
    """What is not None is changed. Raises ``NameTaken`` or ``UsageError``; nothing is changed then."""
    if name is not None:
        check_name(name)
    if description is not None:
        check_description(description)
    if idle_after_s is not None:
        check_idle_after(idle_after_s)
    if snooze_s is not None and not 0 <= snooze_s <= LONGEST_SNOOZE_S:
        raise UsageError(f"expected a snooze of at most {LONGEST_SNOOZE_S // DAY_S} days, but got {snooze_s:g} s")
    stored = Session(session_folder(home, session), actor=actor)
    known = Index(home).refresh()
    with home_lock(home):
        for row in not_archived(rows_of_all(home, known)):
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
                pinned=record.pinned if pinned is None else pinned,
                snoozed_until=record.snoozed_until if snooze_s is None else _until(snooze_s),
                when_limit=when_limit or record.when_limit,
            )
            stored.tell("edited", run=0, **{field: getattr(changed, field) for field in EDITED})
            stored.save(changed)
    return changed
