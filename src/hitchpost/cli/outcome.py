"""What ``--wait`` prints, and its exit code."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from hitchpost.cli.caller import print_json, say
from hitchpost.cli.common import session_json
from hitchpost.cli.words import became
from hitchpost.hub.client import is_up
from hitchpost.ops.views.observe import Observation
from hitchpost.ops.views.outcome import Outcome, wait_for_outcome
from hitchpost.ops.views.wait import has_ended
from hitchpost.text import visible
from hitchpost.values import asdict


def told(home: str, seen: Observation, began: float, *, timeout_s: float | None, as_json: bool) -> int:
    """Wait for what becomes of a session that was begun at ``began``, say it, and return the exit code."""
    since = datetime.fromtimestamp(began, UTC)
    found = wait_for_outcome(home, seen, since, timeout_s=timeout_s, hub_is_up=lambda: is_up(home))
    tell({**shape(found), "session": session_json(found.seen)}, ended=has_ended(found.seen), as_json=as_json)
    return found.exit_code


def tell(found: dict[str, Any], *, ended: bool, as_json: bool) -> None:
    """``found`` has the outcome, the answer, what it has used, and the session."""
    if as_json:
        print_json(found)
        return
    if found["answer"]:
        click.echo(visible(found["answer"], keep_newlines=True))
    session = found["session"]
    say(f"{visible(session['name'])}: {found['outcome']} ({visible(became(session, has_ended=ended))})")


def shape(found: Outcome) -> dict[str, Any]:
    return {
        "outcome": found.word,
        "answer": found.answer,
        "usage": None if found.used is None else {**asdict(found.used), "total": found.used.total},
    }
