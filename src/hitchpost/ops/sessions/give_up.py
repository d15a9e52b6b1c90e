"""Giving a pod up that nobody reaches: its run counts as ended, although its agent may live. A person decides that."""

from __future__ import annotations

from hitchpost.errors import Refused
from hitchpost.model.pods import doubt_of
from hitchpost.model.status import UNKNOWN, status
from hitchpost.ops.sessions.recover import RECOVERY, recover
from hitchpost.ops.views.moments import now
from hitchpost.ops.views.observe import Observation
from hitchpost.runtimes import base
from hitchpost.store.session import Session


def risk(name: str, node: str | None) -> str:
    """What may come of it, for who is asked."""
    where = f"on node {node}, which nobody reaches" if node else "where nobody reaches it"
    return f"{name} may still be running {where}; if it is, two agents will work on the same files"


def is_in_doubt(seen: Observation) -> bool:
    """Whether there is a pod that may run on without being reached."""
    return seen.facts.pod is not None and status(seen.facts, now()).word == UNKNOWN


def give_up(home: str, session: str, *, actor: str) -> Observation:
    """Nothing is done to a session that is not in doubt. Raises ``Refused`` for one that is not in a pod."""
    seen = recover(home, session, actor=RECOVERY)
    if seen.facts.pod is None:
        raise Refused(
            f"{seen.record.name} is not in a pod that could be given up", f"hitch stop {seen.record.word} ends it"
        )
    if not is_in_doubt(seen):
        return seen
    stored = Session(seen.folder, actor=actor)
    with stored.lock():
        reason = f"{doubt_of(seen.facts)}; {risk(seen.record.name, seen.facts.pod.node)}"
        stored.tell("given up", run=seen.facts.run, reason=reason)
    base.load(seen.record.runtime).give_up(seen.folder)
    return recover(home, session, actor=RECOVERY)
