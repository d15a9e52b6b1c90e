"""Cancelling: a session is ended and put away. It stays readable and takes no new run."""

from __future__ import annotations

from hitchpost.model import run as runs
from hitchpost.ops.look import Seen, look
from hitchpost.ops.recover import recover
from hitchpost.ops.remove import archive
from hitchpost.ops.stop import stop


def cancel(home: str, session: str) -> Seen:
    """End the session's run, if it has one, and archive its record. Raises what ``stop`` and ``archive`` raise."""
    seen = recover(home, session)
    if seen.facts.state != runs.CREATED:
        stop(home, session, reason="cancelled")
    archive(home, session)
    return look(home, session)
