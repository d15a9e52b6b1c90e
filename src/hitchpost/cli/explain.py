"""``hitch explain``: why a session has its status, now or at an earlier moment."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from hitchpost.cli.common import json_option, print_json, session_argument
from hitchpost.errors import UsageError
from hitchpost.model.durations import duration, seconds_between, seconds_of
from hitchpost.ops.views.explain import Explanation, explain
from hitchpost.ops.views.find import find
from hitchpost.ops.views.moments import rfc3339
from hitchpost.store import story
from hitchpost.store.home import open_home
from hitchpost.text import table, visible

LAST_LINES = 10
CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?", re.ASCII)


@click.command("explain")
@session_argument
@click.option("--at", "at_text", metavar="TIME", help="An earlier moment: RFC 3339, 14:05 (today), or '5m ago'.")
@click.option(
    "-a", "--all", "everything", is_flag=True, help="Show the whole story, not only its end. JSON always has all of it."
)
@json_option
def command(session: str, at_text: str | None, everything: bool, as_json: bool) -> None:
    """Show why SESSION has its status: each fact with its source and age, the rule that applied, and the story."""
    seen = find(open_home(create=False), session)
    now = datetime.now().astimezone()
    found = explain(seen, now, None if at_text is None else parse_time(at_text, now))
    show(as_object(found), everything=everything, as_json=as_json)


def show(found: dict[str, Any], *, everything: bool, as_json: bool) -> None:
    """``found`` as ``as_object`` makes it."""
    if as_json:
        print_json(found)
    else:
        click.echo("\n".join(as_lines(found, everything)))


def parse_time(text: str, now: datetime) -> datetime:
    """The moment that ``text`` means. Times without a zone are of this machine's zone, like ``now``."""
    words = text.strip()
    try:
        if words.endswith("ago") and (ago_s := seconds_of(words.removesuffix("ago"))) is not None:
            return (now - timedelta(seconds=ago_s)).astimezone(UTC)
        if CLOCK.fullmatch(words):
            words = f"{now:%Y-%m-%d}T{words:0>5}" if words.count(":") == 1 else f"{now:%Y-%m-%d}T{words:0>8}"
        return datetime.fromisoformat(words).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"expected --at to be a time like 2026-05-04T14:05:00Z, 14:05 or '5m ago', but got {text[:80]!r}"
        ) from None


def as_object(explanation: Explanation) -> dict[str, Any]:
    return {
        "session": explanation.session,
        "at": rfc3339(explanation.at),
        "in_status_s": explanation.words.in_status_s,
        "rule": explanation.rule,
        "facts": [
            {"fact": fact.fact, "value": fact.value, "source": fact.source, "at": rfc3339(fact.at)}
            for fact in explanation.facts
        ],
        "story": list(explanation.story),
    }


def as_lines(found: dict[str, Any], everything: bool) -> list[str]:
    session, at, lines = found["session"], datetime.fromisoformat(found["at"]), found["story"]
    which = f"session {session['index']}, id {session['id']}, run {session['run']}"
    rows: list[tuple[str, ...]] = [("FACT", "VALUE", "SOURCE", "AGE")]
    for fact in found["facts"]:
        age = "" if fact["at"] is None else duration(seconds_between(datetime.fromisoformat(fact["at"]), at))
        rows.append(tuple(visible(cell) for cell in (fact["fact"], fact["value"], fact["source"], age)))
    told = lines if everything else lines[-LAST_LINES:]
    count = f"the last {len(told)} of {len(lines)} lines" if len(told) < len(lines) else "from its creation"
    return [
        visible(f"{session['name']} ({which}) at {found['at']}"),
        visible(f"  {session['label']}, for {duration(found['in_status_s'])}"),
        visible(f"  because {found['rule']}"),
        "",
        *table(rows),
        "",
        f"Story, {count}:",
        *(visible(story.as_text([line])) for line in told),
    ]
