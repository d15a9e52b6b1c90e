"""Resuming: the next run of a session that has ended, whose record says that it may go on."""

from __future__ import annotations

from collections.abc import Mapping

from hitchpost.agents.prepare import RESUME
from hitchpost.errors import Refused
from hitchpost.model import run as runs
from hitchpost.model.record import ARCHIVED, ERROR
from hitchpost.ops.sessions.recover import RECOVERY, recover
from hitchpost.ops.sessions.start import Begun, start
from hitchpost.ops.views.advice import no_run
from hitchpost.settings import Settings


def resume(
    home: str,
    session: str,
    settings: Settings,
    *,
    actor: str,
    caller: Mapping[str, str],
    size: tuple[int, int] = (80, 24),
    agent: str = "",
    when_limit: str = "",
) -> Begun:
    """Start the next run in the same workspace, with the same conversation where the agent can.

    ``agent`` is another one that goes on with the conversation, ``when_limit`` what happens at a usage limit from now
    on. Raises ``Refused`` for a live one, for records that are closed, and for an agent that cannot go on with it.
    """
    seen = recover(home, session, actor=RECOVERY)
    name = seen.record.name
    if seen.record.record in (ARCHIVED, ERROR):
        raise no_run(seen.record)
    if seen.facts.state in runs.LIVE and seen.facts.state != runs.CREATED:
        hint = f"hitch stop {seen.record.word} ends it first" if agent else ""
        raise Refused(f"{name} is {seen.facts.state}; there is nothing to resume", hint)
    how = {"caller": caller, "size": size, "reason": "resume", "actor": actor}
    return start(home, session, settings, conversation=RESUME, agent=agent, when_limit=when_limit, **how)  # type: ignore[arg-type]
