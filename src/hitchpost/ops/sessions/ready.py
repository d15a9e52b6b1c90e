"""Waiting until an agent that was just started has come to life, or has failed to. Its keeper tells which."""

from __future__ import annotations

import time

from hitchpost import lightjson, wire
from hitchpost.errors import EndedAtOnce
from hitchpost.model import run as runs
from hitchpost.model.attention import BLOCKED, BLOCKED_BY, UNKNOWN
from hitchpost.model.status import reason, settle
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.runtimes.link import Link, NoKeeper, NotReached
from hitchpost.store.records import Record

END_S = 15.0
"""How long the end of an agent that was not ready may take to be written down."""
REPORT_S = 20.0
"""How long an agent that reports what it is doing may take to do so."""


def ready(
    home: str, record: Record, run: int, run_folder: str, *, watched: bool = False, resumed: bool = False
) -> tuple[Observation, tuple[str, ...]]:
    """Wait for the first output of the run, or ``ready_after_s``; for the first report of an agent that gives one.

    Returns why the agent is not ready, too. Raises ``EndedAtOnce`` when it has failed by then.
    """
    why: tuple[str, ...] = ()
    try:
        with Link.connect(run_folder) as link:
            if watched:
                why = _not_ready(record, _first_report(link))
            else:
                within_s = record.ready_after_s
                link.request("ready", within_s=within_s, timeout_s=within_s + END_S)
    except NotReached:
        pass  # it has ended, or nobody can tell: what was seen of it counts
    seen = observe(home, record.id)
    facts = settle(seen.facts)
    if facts.run == run and facts.state == runs.FAILED:
        raise EndedAtOnce(record.name, record.word, reason(facts), resumed=resumed)
    return seen, why


def _first_report(link: Link) -> dict[str, object]:
    """What the agent says it is doing. Raises ``NoKeeper`` when it ends instead."""
    deadline = time.monotonic() + REPORT_S
    report = link.welcome.get("report")
    while not _says(report) and (left_s := deadline - time.monotonic()) > 0:
        for kind, payload in link.frames(left_s):
            event = lightjson.loads(payload) if kind == wire.EVENT else None
            if isinstance(event, dict) and event.get("event") == "attention":
                report = event.get("report")
        if link.closed:
            raise NoKeeper("the keeper closed the connection")
    return report if isinstance(report, dict) else {}


def _says(report: object) -> bool:
    return isinstance(report, dict) and report.get("state") not in (None, UNKNOWN)


def _not_ready(record: Record, report: dict[str, object]) -> tuple[str, ...]:
    if not _says(report):
        return (f"{record.name} has not shown its prompt within {REPORT_S:g} s; attach to it to see why",)
    if report["state"] != BLOCKED:
        return ()
    message = report.get("message") or BLOCKED_BY.get(str(report.get("kind")), "")
    return (f"{record.name} is not ready: {message}",)
