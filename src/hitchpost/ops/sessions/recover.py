"""Recovery: what a dead keeper, a killed command or a broken disk left unsaid is written down.

An agent that lives on without its keeper gets a new one. No process is ended here: that is asked for with ``stop``.
"""

from __future__ import annotations

import os
import time

from hitchpost import wire
from hitchpost.errors import HitchpostError, NoSuchSession
from hitchpost.model import run as runs
from hitchpost.model.facts import Exit
from hitchpost.model.record import ACTIVE, SUSPENDED
from hitchpost.model.status import lives_on, settle
from hitchpost.ops.sessions.lost_tail import note_lost_tail
from hitchpost.ops.views.moments import now, rfc3339
from hitchpost.ops.views.observe import Observation, left_behind, observe, read_intent
from hitchpost.runtimes.kept import is_kept, lock_path
from hitchpost.store import files, locks, runfiles
from hitchpost.store.home import make_run_folder, session_folder
from hitchpost.store.session import Session
from hitchpost.values import asdict, replace

KEEPER_LEAVES_S = 5.0
RECOVERY = "recovery"
"""The actor of what nobody has asked for: it was so already, and is only written down."""


def recover(home: str, session: str, *, actor: str) -> Observation:
    """Bring a session's files up to what is true. Does nothing to a session that is in order.

    Raises ``NoSuchSession`` when it is gone, ``Unreadable`` when neither its files nor its story can be read.
    """
    folder = session_folder(home, session)
    try:
        _let_go_on(folder)
        seen = observe(home, session)
        if lives_on(seen.facts):
            from hitchpost.ops.sessions.takeover import take_over

            seen = take_over(home, seen, actor)
        if not _needs(seen):
            return seen
        with locks.SessionLock(folder):
            Session(folder, actor=actor).repair()
            seen = observe(home, session)
            if _is_over(seen):
                _settle(seen, actor)
            elif _left_suspended(seen):
                Session(folder, actor=actor).change_record(ACTIVE, run=seen.facts.run, reason="a run started")
            sweep(seen)
        return observe(home, session)
    except FileNotFoundError:
        raise NoSuchSession(session) from None


def _let_go_on(folder: str) -> None:
    """A container that somebody held still who was killed meanwhile. While its engine is away it stays as it is."""
    if not os.path.exists(os.path.join(folder, wire.FROZEN)):
        return
    from hitchpost.runtimes.freeze import let_go_left

    try:
        let_go_left(folder)
    except HitchpostError:
        return  # the check-up tells


def wait_for_keeper_to_leave(seen: Observation) -> None:
    """A keeper that has told of the end still syncs its log; its lock is free a moment later."""
    if seen.facts.state in runs.TERMINAL:
        deadline = time.monotonic() + KEEPER_LEAVES_S
        while is_kept(seen.run_folder) is True and time.monotonic() < deadline:
            time.sleep(0.002)


def _is_over(seen: Observation) -> bool:
    """Whether the run has ended and nobody has written that down."""
    return seen.facts.state in runs.LIVE and seen.facts.keeper_alive is False and not lives_on(seen.facts)


def _needs(seen: Observation) -> bool:
    return _is_over(seen) or _left_suspended(seen) or bool(seen.problem) or any(map(_temp_files, _places(seen)))


def _left_suspended(seen: Observation) -> bool:
    """Whoever started the run was killed before it could say that the record is active."""
    return seen.record.record == SUSPENDED and seen.facts.state == runs.RUNNING and seen.facts.keeper_alive is True


def _settle(seen: Observation, actor: str) -> None:
    """The keeper is gone: write how the run ended, and how much it left behind.

    The caller holds the session's lock and has looked since: no keeper can take the run's lock meanwhile. It is not
    taken here either, because others would see it held and say that the run lives.
    """
    from hitchpost.model import machine

    facts = seen.facts
    where = make_run_folder(seen.folder, facts.run)
    settled = settle(facts)
    end = settled.exit
    held = locks.is_held(lock_path(where))
    evidence: dict[str, object] = {
        "keeper_lock": "held by another process" if held else "free",
        "exit.json": facts.exit is not None,
    }
    if facts.same_boot is not False:
        left = left_behind(seen.record.runtime, seen.folder, facts.run)
        evidence |= {"processes_left": left.count, "not_known": left.unknown}
        end = None if end is None else replace(end, survivors=left.count)
    if facts.pod is not None:
        pod = asdict(facts.pod)
        evidence["pod"] = {name: pod[name] for name in ("name", "uid", "phase", "reason", "message", "source", "node")}
        note_lost_tail(where)
    stored = Session(seen.folder, actor=actor)
    since = rfc3339(settled.state_changed_at)
    end = Exit(error=runs.UNSEEN) if end is None else end
    counted = machine.EndCounted(end.code, end.signal, end.error, end.out_of_memory, evidence, since)
    _, effects = machine.handle(machine.Run(facts.state, intent=end.intent), counted)
    for effect in effects:
        if isinstance(effect, machine.WriteExit) and not runfiles.has_exit(where):
            _write_exit(where, replace(end, intent=read_intent(where)))
        elif isinstance(effect, machine.WriteState):
            stored.transition(
                effect.state, run=facts.run, reason=effect.reason, evidence=evidence, since=effect.since, locked=True
            )
        elif isinstance(effect, machine.TellEnd):
            reason = effect.reason
    if settled.record != facts.record:
        stored.change_record(settled.record, run=facts.run, reason=reason, since=since)


def say_why(where: str, error: str) -> None:
    """Why a run could not be started, where no keeper lived to write it."""
    if locks.is_held(lock_path(where)) is False and not runfiles.has_exit(where):
        _write_exit(where, Exit(error=error, ended_at=now()))


def _write_exit(where: str, end: Exit) -> None:
    runfiles.Ending(
        wait_status=_wait_status(end),
        intent=end.intent,
        error=end.error,
        ended_at=rfc3339(end.ended_at) or "",
        ended_at_known=end.ended_at_known,
        survivors=end.survivors,
        lost_bytes=None,
    ).write(where)


def _wait_status(end: Exit) -> int | None:
    if end.signal_number is not None:
        return end.signal_number | (0x80 if end.core_dumped else 0)
    return None if end.code is None else end.code << 8


def _temp_files(folder: str) -> list[str]:
    """Half-written files that a killed process left. Those of a live one are gone within milliseconds."""
    return [os.path.join(folder, name) for name in os.listdir(folder) if files.is_temp(name)]


def sweep(seen: Observation) -> None:
    """Remove half-written files, and what a dead keeper had reserved. The caller holds the session's lock."""
    places = _places(seen)
    for place in places:
        for path in _temp_files(place):
            files.discard(path)
    if seen.run_folder in places:
        for name in (*wire.SPARES, wire.SOCKET):
            files.discard(os.path.join(seen.run_folder, name))


def _places(seen: Observation) -> list[str]:
    """Where half-written files may be; a live keeper's folder is its own."""
    kept = seen.facts.keeper_alive is not False or not os.path.isdir(seen.run_folder)
    return [seen.folder] if kept else [seen.folder, seen.run_folder]
