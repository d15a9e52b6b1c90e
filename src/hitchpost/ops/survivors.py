"""What a run has left behind: processes that live on after its end. Only who asks for it has them ended."""

from __future__ import annotations

import os

from hitchpost import wire
from hitchpost.ops.look import Seen
from hitchpost.ops.recover import recover, wait_for_keeper_to_leave
from hitchpost.runtimes import base
from hitchpost.state import files, story
from hitchpost.state.manager import Manager


def may_be(seen: Seen) -> bool:
    """Whether the run may have left something behind: an end that nobody saw may have left any."""
    end = seen.facts.exit
    return end is None or end.survivors > 0 or not end.ended_at_known


def end_survivors(home: str, seen: Seen, actor: str) -> Seen:
    wait_for_keeper_to_leave(seen)
    end, run = seen.facts.exit, seen.facts.run
    if may_be(seen):
        left = base.load(seen.record.runtime).end_leftovers(seen.folder, run, session=seen.record.id)
        if left.count or (left.unknown and end is not None and end.survivors):
            with files.SessionLock(seen.folder):
                reason = "; ".join(filter(None, (f"{left.count} ended", left.unknown)))
                story.tell(seen.folder, "survivors", run=run, actor=actor, reason=reason)
                if end is not None and end.survivors:
                    _write_survivors(seen, max(0, end.survivors - left.count) if left.unknown else 0)
    return recover(home, seen.record.id)


def _write_survivors(seen: Seen, still: int) -> None:
    """How many of those that the agent left are there now, beside how many they were. The caller holds the lock."""
    path = os.path.join(seen.run_folder, wire.EXIT)
    files.write_object(path, {**files.read_object(path), "survivors_now": still})
    Manager(seen.folder, actor="").write_again()
