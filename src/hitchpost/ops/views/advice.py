"""What a person can do about a session that does not run. Whatever is proposed here works in that very state."""

from __future__ import annotations

import os

from hitchpost.errors import Refused
from hitchpost.model import record as recs
from hitchpost.model import run as runs
from hitchpost.model.attention import BLOCKED
from hitchpost.model.status import is_stale
from hitchpost.ops.views.observe import Observation
from hitchpost.ops.views.workplace import current
from hitchpost.runtimes import base
from hitchpost.store.records import Record


def way_on(seen: Observation) -> str:
    """How the session goes on, or why it cannot and what is left to do with it."""
    record, word = seen.record, seen.record.word
    if record.record in CLOSED:
        return CLOSED[record.record].format(word)
    if instead := base.load(record.runtime).cannot_start_again:
        return instead
    if (lost := place_lost(seen)) is not None:
        return lost.hint
    if record.record == recs.SUSPENDED:
        return f"hitch resume {word} starts it again"
    if is_stale(seen.facts):
        return f"hitch restart {word} starts a new session in it, hitch stop {word} removes it"
    if seen.facts.state == runs.CREATED:
        return f"hitch restart {word} starts it"
    if record.supports_resume:
        return f"hitch resume {word} goes on with its conversation, hitch restart {word} begins another"
    return f"hitch restart {word} starts it again"


def way_to_answer(seen: Observation) -> str:
    """How a person answers what the agent asks; empty where it is not known to ask anything."""
    report, word = seen.facts.report, seen.record.word
    if report is None or report.state != BLOCKED:
        return ""
    attached = f"hitch attach {word} shows it"
    return f"hitch answer {word} yes allows it, {attached}" if report.request else attached


CLOSED = {
    recs.ARCHIVED: "hitch unarchive {0} brings it back, hitch logs {0} shows its output, hitch rm {0} deletes it",
    recs.ERROR: "hitch explain {0} says why, hitch rm {0} deletes it",
}
"""Records that take no run: what is left to do with them."""


def place_lost(seen: Observation) -> Refused | None:
    """Why the session's folder cannot be worked in; None when it can."""
    try:
        current(os.path.dirname(os.path.dirname(seen.folder)), seen)
    except Refused as lost:
        return lost
    return None


def no_run(record: Record) -> Refused:
    """For a record that takes no run."""
    return Refused(
        f"{record.name} is {record.record}: it takes no new run{noted(record)}",
        CLOSED[record.record].format(record.word),
    )


def no_archive(record: Record) -> Refused:
    """For a record that cannot be put away."""
    what = "is archived already" if record.record == recs.ARCHIVED else f"is {record.record}: it cannot be archived"
    return Refused(f"{record.name} {what}", CLOSED[record.record].format(record.word))


def no_input(seen: Observation) -> Refused:
    """For a record that is not active."""
    record = seen.record
    return Refused(f"{record.name} is {record.record} and takes no input{noted(record)}", way_on(seen))


def noted(record: Record) -> str:
    """What the record's word means for the person who reads it."""
    return f" ({note})" if (note := recs.NOTES.get(record.record)) else ""
