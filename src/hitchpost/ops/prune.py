"""Retention: old suspended and broken records are deleted, by the policy of the model. Archived ones never are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from hitchpost.errors import HitchpostError
from hitchpost.model import run as runs
from hitchpost.model.policy import Retention, delete_at
from hitchpost.ops.look import look, moment
from hitchpost.ops.remove import remove
from hitchpost.ops.view import rfc3339
from hitchpost.state import records


@dataclass(frozen=True, slots=True)
class Decision:
    """What the policy says about one session; ``at`` is when it may go, None for never."""

    session: str
    name: str
    record: str
    delete: bool
    at: str | None
    why: str


def prune(
    home: str,
    now: datetime,
    *,
    actor: str,
    dry_run: bool,
    retention: Retention | None = None,
    among: Iterable[str] | None = None,
) -> list[Decision]:
    """Decide about every session, or about some, and delete what is due. A workspace is never touched."""
    decisions = []
    for session in records.ids(home) if among is None else among:
        try:
            seen = look(home, session)
        except (FileNotFoundError, HitchpostError):
            continue
        record = seen.record
        last = moment(record.last_active_at) or moment(record.record_changed_at) or seen.facts.created_at
        at = delete_at(retention or Retention(), seen.facts, last)
        live = seen.facts.state in runs.LIVE and seen.facts.state != runs.CREATED
        due = at is not None and now >= at and not live
        why = f"{record.record} records are kept" if at is None else f"{record.record} since {rfc3339(last)}"
        if due and not dry_run:
            try:
                remove(home, session, actor=actor)
            except (HitchpostError, OSError) as error:
                due, why = False, str(error)
        decisions.append(Decision(session, record.name, record.record, due, rfc3339(at), why))
    return decisions
