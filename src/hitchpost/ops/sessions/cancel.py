"""Cancelling: a session is ended and put away. It stays readable and takes no new run."""

from __future__ import annotations

from hitchpost.model import run as runs
from hitchpost.ops.sessions.caller_inside import refuse_inside
from hitchpost.ops.sessions.recover import RECOVERY, recover
from hitchpost.ops.sessions.remove import StillLive, archive, refuse_closed
from hitchpost.ops.sessions.stop import stop
from hitchpost.ops.views.observe import Observation, observe

ATTEMPTS = 3


def cancel(home: str, session: str, *, actor: str) -> Observation:
    """End the session's run, if it has one, and archive its record. Raises what ``stop`` and ``archive`` raise.

    A run that somebody starts in between is ended too.
    """
    seen = recover(home, session, actor=RECOVERY)
    refuse_closed(seen)
    refuse_inside(seen, "cancel")
    for attempt in range(ATTEMPTS):
        if recover(home, session, actor=RECOVERY).facts.state != runs.CREATED:
            stop(home, session, actor=actor, reason="cancelled")
        try:
            archive(home, session, actor=actor)
            break
        except StillLive:
            if attempt == ATTEMPTS - 1:
                raise
    return observe(home, session)
