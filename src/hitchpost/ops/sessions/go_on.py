"""Going on when a usage limit has ended: a prompt that nobody types, once for each limit."""

from __future__ import annotations

from collections.abc import Mapping

from hitchpost.errors import KeeperSilent, Refused
from hitchpost.model.limits import goes_on_at
from hitchpost.ops.sessions.prompt import prompt
from hitchpost.ops.sessions.send import NotReady, Unclear
from hitchpost.ops.views.moments import utc_text
from hitchpost.ops.views.observe import observe
from hitchpost.store import files
from hitchpost.store.home import session_folder
from hitchpost.store.session import Session
from hitchpost.values import replace

NOTHING_SENT = (Refused, KeeperSilent, NotReady, OSError)
"""What ``prompt`` raises before anything is typed, but for ``Unclear``. After anything else it may have been."""


def go_on(home: str, session: str, text: str, *, actor: str, caller: Mapping[str, str]) -> bool:
    """Prompt the agent to go on. False when somebody was faster. Raises what ``prompt`` raises.

    It is written down first: a hub that dies meanwhile does not prompt twice. Where nothing was sent, it is taken back.
    Where it is not known, the session says so, and needs somebody.
    """
    stored = Session(session_folder(home, session), actor=actor)
    with stored.lock():
        seen = observe(home, session)
        report, record = seen.facts.report, stored.record()
        if report is None or goes_on_at(seen.facts) is None:
            return False
        stored.save(replace(record, gone_on_from=utc_text(report.at), gone_on_at=files.stamp(), gone_on_known=False))
    try:
        prompt(home, session, text, actor=actor, caller=caller)
    except Unclear:
        raise
    except NOTHING_SENT:
        before = {name: getattr(record, name) for name in ("gone_on_from", "gone_on_at", "gone_on_known")}
        with stored.lock():
            stored.save(replace(stored.record(), **before))
        raise
    with stored.lock():
        stored.save(replace(stored.record(), gone_on_known=True))
    try:
        reason = "the usage limit has ended, so it was told to go on"
        stored.mention("limit", run=seen.facts.run, details={"reason": reason})
    except OSError:
        pass  # it was told all the same
    return True
