"""Other words for the same facts, which clients were promised: the state of ``/api/agents``, the word of
``session.status``. ``docs/decisions/000-origins.md`` says where they come from."""

from __future__ import annotations

from hitchpost.model import record, run
from hitchpost.model.facts import Facts
from hitchpost.model.headline import STALE
from hitchpost.model.status import (
    WAITING,
    WANTS_A_PERSON,
    as_told,
    attention,
    interrupted,
    is_stale,
    never_ran,
    sandbox_gone,
)
from hitchpost.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

AGENT_STATES = ("stopped", "starting", "running", "stale", "stopping", "error")


def agent_state(facts: Facts) -> str:
    """The state of an agent in ``/api/agents``. Clients must take words that they do not know."""
    facts = as_told(facts)
    if facts.record == record.ARCHIVED:
        return "stopped"
    if is_stale(facts):
        return STALE
    if facts.state in run.LIVE:
        return facts.state
    crashed = facts.state == run.FAILED and not interrupted(facts) and not sandbox_gone(facts)
    return "error" if crashed or facts.state == run.ORPHANED else "stopped"


def container_name(session: str) -> str:
    """The name of a session's container."""
    return f"agent-{session}"


def event_status(facts: Facts, now: datetime) -> str:
    """The word of ``session.status``: active, waiting, idle, error or stopped. ``idle``: no process exists."""
    facts = replace(as_told(facts), probe_failed=False)
    if facts.record == record.ARCHIVED:
        return "stopped"
    asked_by = facts.exit.intent if facts.exit is not None else None
    reaped = facts.state == run.STOPPED and asked_by in (run.SHUTDOWN, run.REAPER)
    suspended = facts.record == record.SUSPENDED and facts.state not in run.LIVE
    if suspended or reaped:
        return "idle"
    if facts.state in (run.FAILED, run.ORPHANED):
        return "error"
    if facts.state in run.TERMINAL:
        return "stopped"
    return WAITING if attention(facts, now) in WANTS_A_PERSON else "active"


def event_reason(facts: Facts) -> str:
    """The short reason that goes with the word ``error``: ``Exit code 1``, ``Process crashed``, or why none started."""
    facts = as_told(facts)
    if facts.exit is not None and never_ran(facts):
        return f"Failed to start: {facts.exit.error}"
    if facts.exit is None or facts.exit.code is None:
        return "Process crashed"
    return f"Exit code {facts.exit.code}"
