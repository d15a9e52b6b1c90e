"""Recovery: what a dead keeper, a killed command or a broken disk left unsaid is written down, and its tree ended."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

from hitchpost import wire
from hitchpost.errors import NoSuchSession
from hitchpost.model import run as runs
from hitchpost.model.facts import Exit
from hitchpost.model.status import settle
from hitchpost.ops.look import Seen, look
from hitchpost.ops.view import rfc3339
from hitchpost.runtimes import base
from hitchpost.runtimes.link import is_kept, lock_path
from hitchpost.state import files, quarantine, records, story
from hitchpost.state.home import make_run_folder, session_folder
from hitchpost.state.manager import Manager

KEEPER_LEAVES_S = 5.0


def recover(home: str, session: str, *, actor: str = "recovery") -> Seen:
    """Bring a session's files up to what is true. Does nothing to a session that is in order.

    Raises ``NoSuchSession`` when it is gone, ``Unreadable`` when neither its files nor its story can be read.
    """
    folder = session_folder(home, session)
    try:
        seen = look(home, session)
        if not _needs(seen):
            return seen
        with files.SessionLock(folder):
            _repair(folder, actor)
            seen = look(home, session)
            if seen.facts.state in runs.LIVE and seen.facts.keeper_alive is False:
                _settle(seen, actor)
            sweep(seen)
        return look(home, session)
    except (FileNotFoundError, files.Removed):
        raise NoSuchSession(session) from None


def wait_for_keeper_to_leave(seen: Seen) -> None:
    """A keeper that has told of the end still syncs its log; its lock is free a moment later."""
    if seen.facts.state in runs.TERMINAL:
        deadline = time.monotonic() + KEEPER_LEAVES_S
        while is_kept(seen.run_folder) is True and time.monotonic() < deadline:
            time.sleep(0.002)


def _needs(seen: Seen) -> bool:
    dead = seen.facts.state in runs.LIVE and seen.facts.keeper_alive is False
    return dead or bool(seen.problem) or any(map(_temp_files, _places(seen)))


def _repair(folder: str, actor: str) -> None:
    """Replace files that cannot be read by what the story tells. The unreadable ones are kept in the quarantine."""
    try:
        records.read(folder)
    except (files.Unreadable, FileNotFoundError) as error:
        record = records.from_story(folder)
        if not record.argv:
            raise files.Unreadable(
                os.path.join(folder, records.RECORD), f"{error}; its story does not have it"
            ) from None
        quarantine.put_away(folder, records.RECORD)
        story.tell(folder, "repaired", run=0, actor=actor, reason=str(error))
        records.write(folder, record)
    Manager(folder, actor=actor).repair()


def _settle(seen: Seen, actor: str) -> None:
    """The keeper is gone: end what it left, then write how the run ended.

    The caller holds the session's lock and has looked since: no keeper can take the run's lock meanwhile. It is not
    taken here either, because others would see it held and say that the run lives.
    """
    facts = seen.facts
    where = make_run_folder(seen.folder, facts.run)
    settled = settle(facts)
    end = settled.exit
    held = files.is_held(lock_path(where))
    evidence: dict[str, object] = {
        "keeper_lock": "held by another process" if held else "free",
        "exit.json": facts.exit is not None,
    }
    if facts.same_boot is not False:
        left = base.load(seen.record.runtime).end_leftovers(seen.folder, facts.run, session=seen.record.id)
        evidence |= {"processes_ended": left.ended, "not_known": left.unknown}
    if facts.exit is None and end is not None:
        _write_exit(where, end, _intent(where))
    manager = Manager(seen.folder, actor=actor)
    reason = runs.verdict(end.code, end.signal, end.intent, end.error)[1] if end is not None else runs.UNSEEN
    since = rfc3339(settled.state_changed_at)
    for state in runs.path(facts.state, settled.state):
        manager.transition(state, run=facts.run, reason=reason, evidence=evidence, since=since, locked=True)
    if settled.record != facts.record:
        records.change_record(seen.folder, settled.record, run=facts.run, actor=actor, reason=reason, since=since)


def say_why(where: str, error: str) -> None:
    """Why a run could not be started, where no keeper lived to write it."""
    if files.is_held(lock_path(where)) is False and not os.path.exists(os.path.join(where, wire.EXIT)):
        _write_exit(where, Exit(error=error, ended_at=datetime.now(UTC)), None)


def _intent(where: str) -> str | None:
    try:
        by = files.read_object(os.path.join(where, wire.INTENT)).get("by")
    except (OSError, files.Unreadable, files.NewerSchema):
        return None
    return by if isinstance(by, str) else None


def _write_exit(where: str, end: Exit, intent: str | None) -> None:
    value: dict[str, object] = {
        "schema": files.SCHEMA,
        "code": None,
        "signal": None,
        "signal_number": None,
        "core_dumped": False,
        "wait_status": None,
        "intent": intent,
        "error": end.error,
        "attention": None,
        "survivors": 0,
        "rusage": None,
        "ended_at": rfc3339(end.ended_at),
        "ended_at_known": end.ended_at_known,
    }
    files.write_object(os.path.join(where, wire.EXIT), value)


def _temp_files(folder: str) -> list[str]:
    """Half-written files that a killed process left. Those of a live one are gone within milliseconds."""
    return [os.path.join(folder, name) for name in os.listdir(folder) if files.is_temp(name)]


def sweep(seen: Seen) -> None:
    """Remove half-written files, and what a dead keeper had reserved. The caller holds the session's lock."""
    places = _places(seen)
    for place in places:
        for path in _temp_files(place):
            files.discard(path)
    if seen.run_folder in places:
        for name in (*wire.SPARES, wire.SOCKET):
            files.discard(os.path.join(seen.run_folder, name))


def _places(seen: Seen) -> list[str]:
    """Where half-written files may be; a live keeper's folder is its own."""
    kept = seen.facts.keeper_alive is not False or not os.path.isdir(seen.run_folder)
    return [seen.folder] if kept else [seen.folder, seen.run_folder]
