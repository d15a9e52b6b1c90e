"""Retention: old suspended and broken records are deleted, by the policy of the model. Archived ones never are.

A person who asks for it trusts the calendar. Nobody asks the hub, so it is slower: see ``confirm`` of the policy.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from hitchpost.errors import FAILURES, MALFORMED
from hitchpost.model import run as runs
from hitchpost.model.policy import Retention, Watched, confirm, delete_at
from hitchpost.ops.sessions.remove import remove
from hitchpost.ops.views.moments import moment, rfc3339
from hitchpost.ops.views.observe import observe
from hitchpost.store import files, records
from hitchpost.system import process
from hitchpost.values import asdict

WATCHED = "retention.json"


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
            seen = observe(home, session)
        except FAILURES:
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
            except FAILURES as error:
                due, why = False, str(error)
        decisions.append(Decision(session, record.name, record.record, due, rfc3339(at), why))
    return decisions


def prune_when_sure(
    home: str, now: datetime, at_s: float, *, actor: str, among: Iterable[str], retention: Retention | None = None
) -> list[Decision]:
    """What the hub does now and then: delete what the policy confirms. ``at_s`` are seconds since the boot."""
    rules = retention or Retention()
    decided = prune(home, now, actor=actor, dry_run=True, among=among, retention=rules)
    before = _read(home)
    after, going = confirm(
        rules, before, [decision.session for decision in decided if decision.delete], process.boot_id(), at_s
    )
    if after.due_s or after.deleted_s or before.due_s or before.deleted_s:
        _write(home, after)
    return prune(home, now, actor=actor, dry_run=False, among=going, retention=rules)


def _read(home: str) -> Watched:
    """What earlier looks have seen, of other hubs too. A file that makes no sense counts as no look."""
    try:
        value = files.read_object(os.path.join(home, WATCHED))
    except files.Unusable:
        return Watched()
    try:
        due_s, deleted_s = value["due_s"], value["deleted_s"]
        if not isinstance(due_s, dict) or not isinstance(deleted_s, list):
            return Watched()
        return Watched(
            boot_id=str(value["boot_id"]),
            at_s=float(str(value["at_s"])),
            due_s={str(session): float(seconds) for session, seconds in due_s.items()},
            deleted_s=tuple(map(float, deleted_s)),
        )
    except MALFORMED:
        return Watched()


def _write(home: str, watched: Watched) -> None:
    files.write_object(os.path.join(home, WATCHED), {"schema": files.SCHEMA, **asdict(watched)})
