"""Waiting until an agent that was just started has come to life, or has failed to. Its keeper tells which."""

from __future__ import annotations

from hitchpost.errors import EndedAtOnce
from hitchpost.model import run as runs
from hitchpost.model.status import reason, settle
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.runtimes.link import Link, NoKeeper, Silent
from hitchpost.store.records import Record

END_S = 15.0
"""How long the end of an agent that was not ready may take to be written down."""


def ready(home: str, record: Record, run: int, run_folder: str) -> Observation:
    """Wait for the first output of the run, or ``ready_after_s``. Raises ``EndedAtOnce`` when it has failed by then."""
    try:
        with Link.connect(run_folder) as link:
            within_s = record.ready_after_s
            link.request("ready", within_s=within_s, timeout_s=within_s + END_S)
    except (NoKeeper, Silent):
        pass  # it has ended, or nobody can tell: what was seen of it counts
    seen = observe(home, record.id)
    facts = settle(seen.facts)
    if facts.run == run and facts.state == runs.FAILED:
        raise EndedAtOnce(record.name, record.word, reason(facts))
    return seen
