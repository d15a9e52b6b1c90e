"""Removing and archiving sessions, and bringing archived ones back. The workspace is not touched."""

from __future__ import annotations

import os
from collections.abc import Callable

from hitchpost.errors import FAILURES, NoSuchSession, Refused
from hitchpost.model import run as runs
from hitchpost.model.record import ARCHIVED, SUSPENDED
from hitchpost.ops.sessions.caller_inside import refuse_inside
from hitchpost.ops.sessions.create import REMOVED, free_name, home_lock, next_number, not_archived, rows_of_all, sweep
from hitchpost.ops.sessions.edit import EDITED
from hitchpost.ops.sessions.give_up import give_up, is_in_doubt
from hitchpost.ops.sessions.recover import RECOVERY, recover, wait_for_keeper_to_leave
from hitchpost.ops.sessions.sandbox import bring_out, not_brought
from hitchpost.ops.sessions.stop import stop
from hitchpost.ops.views.advice import CLOSED, no_archive
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.runtimes import base
from hitchpost.runtimes.link import is_kept
from hitchpost.store import files, locks
from hitchpost.store.home import session_folder, sessions_folder
from hitchpost.store.index import Index
from hitchpost.store.records import Record
from hitchpost.store.session import Session
from hitchpost.values import replace
from hitchpost.workspaces.folders import erase


class StillLive(Refused):
    """Raised when a session cannot be put away because a run of it lives."""


class NotEnded(StillLive):
    """Raised when a session is to be deleted and nobody has stopped it."""

    hint = "stop it first"
    cli_hint = "stop it first, or use --force"

    def __init__(self, name: str, state: str) -> None:
        super().__init__(f"{name} is {state}", self.hint)


def remove(
    home: str, session: str, *, actor: str, force: bool = False, tell: Callable[[str], None] = lambda text: None
) -> Record:
    """Delete a session that has ended, its history included. ``force`` stops a live one first.

    Commits of its container that cannot be brought into the repository are a reason to refuse; with ``force`` they are
    lost, and ``tell`` is told of each.
    """
    sweep(home)
    seen = recover(home, session, actor=RECOVERY)
    if not force and _is_live(seen):
        raise NotEnded(seen.record.name, seen.facts.state)
    refuse_inside(seen, "rm --force")
    if force and is_in_doubt(seen):
        seen = give_up(home, session, actor=actor)
    if seen.facts.state != runs.CREATED:
        seen = stop(home, session, actor=actor, run=seen.facts.run, reason="removed")
    with locks.SessionLock(seen.folder):
        seen = observe(home, session)
        _refuse_live(seen, "it has just been started again")
        _bring_out(home, seen.record, force, tell)
        base.load(seen.record.runtime).clear_away(seen.folder)
        gone = os.path.join(sessions_folder(home), REMOVED + session)
        os.rename(seen.folder, gone)
        files.sync_folder(sessions_folder(home))
    erase(gone)
    return seen.record


def _bring_out(home: str, record: Record, force: bool, tell: Callable[[str], None]) -> None:
    try:
        bring_out(home, record)
        lost = not_brought(home, record)
    except FAILURES as error:
        lost = [f"commits of its container may be lost: {error}", *not_brought(home, record)]
    if lost and not force:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        raise Refused(f"{lost[0]}{more}", f"hitch rm --force {record.word} deletes it")
    for text in lost:
        tell(f"deleted: {text}")


def archive(home: str, session: str, *, actor: str) -> Record:
    """Put a session away: it stays readable and takes no new run until ``unarchive``. Only a person does this."""
    sweep(home)
    wait_for_keeper_to_leave(seen := recover(home, session, actor=RECOVERY))
    with locks.SessionLock(seen.folder):
        seen = observe(home, session)
        refuse_closed(seen)
        _refuse_live(seen, "stop it before you archive it")
        stored = Session(seen.folder, actor=actor)
        record = stored.change_record(ARCHIVED, run=seen.facts.run, reason="archived by the user")
    base.load(record.runtime).tear_down(seen.folder)
    return record


def unarchive(home: str, session: str, *, actor: str) -> Record:
    """Bring an archived session back: it is suspended, and takes new runs. Only a person does this.

    If its name or its number belongs to another session by now, it gets one that is free.
    """
    known = Index(home).refresh()
    with home_lock(home):
        everybody = rows_of_all(home, known)
        others = [row for row in not_archived(everybody) if row["id"] != session]
        if session not in known.lines:
            raise NoSuchSession(session)
        stored = Session(session_folder(home, session), actor=actor)
        with stored.lock():
            run, record = observe(home, session).facts.run, stored.record()
            if record.record != ARCHIVED:
                raise Refused(f"{record.name} is {record.record}, not archived; there is nothing to bring back")
            name, index = free_name(record.name, others), record.index
            if any(row["index"] == index for row in others):
                index = next_number(home, everybody)
            if (name, index) != (record.name, record.index):
                record = replace(record, name=name, index=index)
                stored.tell("edited", run=run, **{field: getattr(record, field) for field in (*EDITED, "index")})
                stored.save(record)
            return stored.change_record(SUSPENDED, run=run, reason="unarchived by the user")


def refuse_closed(seen: Observation) -> None:
    """Raises ``Refused`` for a record that can be put away no more."""
    if seen.record.record in CLOSED:
        raise no_archive(seen.record)


def _refuse_live(seen: Observation, todo: str) -> None:
    """Whoever holds the session's lock knows afterwards that no run can begin before it lets go."""
    if _is_live(seen):
        raise StillLive(f"{seen.record.name} is {seen.facts.state}; {todo}")


def _is_live(seen: Observation) -> bool:
    state = seen.facts.state
    return state in runs.LIVE or (state != runs.CREATED and is_kept(seen.run_folder) is not False)
