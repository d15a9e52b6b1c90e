"""What a run has left behind: processes that live on after its end. Only who asks for it has them ended."""

from __future__ import annotations

from hitchpost.ops.sessions.recover import RECOVERY, recover, wait_for_keeper_to_leave
from hitchpost.ops.views.observe import Observation, read_exit, survivors_of_earlier_runs
from hitchpost.runtimes import base
from hitchpost.store import runfiles
from hitchpost.store.home import run_folder
from hitchpost.store.session import Session
from hitchpost.values import replace


def may_be(seen: Observation) -> bool:
    """Whether the run may have left something behind: an end that nobody saw may have left any."""
    end = seen.facts.exit
    return end is None or end.survivors > 0 or not end.ended_at_known


def end_survivors(home: str, seen: Observation, actor: str) -> Observation:
    """End what the session has left behind, with this run and with those before it."""
    wait_for_keeper_to_leave(seen)
    for run in range(1, seen.facts.run):
        end = read_exit(run_folder(seen.folder, run))
        if end is not None and end.survivors:
            _end(seen, run, end.survivors, actor)
    if seen.record.earlier_survivors:
        _write_earlier(seen, actor)
    if may_be(seen):
        _end(seen, seen.facts.run, seen.facts.exit.survivors if seen.facts.exit is not None else 0, actor)
    return recover(home, seen.record.id, actor=RECOVERY)


def _end(seen: Observation, run: int, recorded: int, actor: str) -> None:
    """``recorded`` is how many are written down."""
    left = base.load(seen.record.runtime).end_leftovers(seen.folder, run, session=seen.record.id)
    if not left.count and not recorded:
        return
    stored = Session(seen.folder, actor=actor)
    with stored.lock():
        what = f"{left.count} ended" if left.count or left.unknown else "none was left"
        reason = "; ".join(filter(None, (what, left.unknown)))
        stored.tell("survivors", run=run, reason=reason)
        if recorded:
            _write_survivors(stored, run, max(0, recorded - left.count) if left.unknown else 0)


def _write_earlier(seen: Observation, actor: str) -> None:
    stored = Session(seen.folder, actor=actor)
    with stored.lock():
        left = sum(survivors_of_earlier_runs(seen).values())
        stored.save(replace(stored.record(), earlier_survivors=left))


def _write_survivors(stored: Session, run: int, still: int) -> None:
    """How many of those that the agent left are there now, beside how many they were. The caller holds the lock."""
    runfiles.amend_exit(run_folder(stored.folder, run), survivors_now=still)
    stored.touch()
