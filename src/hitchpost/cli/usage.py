"""``hitch usage``."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click

from hitchpost.cli.common import complete_sessions, json_option, print_json
from hitchpost.errors import UsageError
from hitchpost.model.durations import seconds_of
from hitchpost.ops.views.find import find
from hitchpost.ops.views.listing import listing
from hitchpost.ops.views.usage import BY, USUAL_DAYS, days_ago, limits, shape, total, used
from hitchpost.store.home import open_home
from hitchpost.text import table, visible


@click.command("usage")
@click.argument("session", required=False, shell_complete=complete_sessions)
@click.option("--by", type=click.Choice(list(BY)), default="day", show_default=True, help="What to sum by.")
@click.option("--since", metavar="WHEN", help=f"A day, or how long ago, such as 7d. Default: {USUAL_DAYS} days.")
@json_option
def command(session: str | None, by: str, since: str | None, as_json: bool) -> None:
    """Show the tokens that agents have used, their cost where an agent tells it, and the usage limits they are at.

    Claude Code, Codex and opencode over ACP tell what they use; other agents are not counted. Input was read anew,
    cached came from the provider's cache. What a session used is kept when the session is deleted.
    """
    home = open_home(create=False)
    sessions = None if session is None else frozenset((find(home, session).record.id,))
    begin = days_ago(USUAL_DAYS) if since is None else moment_of(since)
    found = used(home, by, since=begin, sessions=sessions)
    rows = listing(home, shapes=True)
    reached = limits(row.shape for row in rows if sessions is None or row.shape["id"] in sessions)
    sums, whole = [*map(shape, found)], shape(total(found))
    used_by = {"by": by, "since": begin.isoformat(), "sums": sums, "total": whole, "limits": reached}
    show(used_by, as_json=as_json)


def show(found: dict[str, Any], *, as_json: bool) -> None:
    """``found`` as REST has it, too."""
    if as_json:
        print_json(found)
        return
    sums = found["sums"]
    if not sums:
        click.echo(f"no agent has told of anything that it used since {found['since'][:10]}")
    else:
        head = (found["by"].upper(), "TURNS", "INPUT", "CACHED", "OUTPUT", "COST")
        lines = [_row(one) for one in sums] + ([_row(found["total"])] if len(sums) > 1 else [])
        click.echo("\n".join(table([head, *lines])))
    for limit in found["limits"]:
        click.echo(f"{visible(limit['name'])} ({limit['agent']}) is at a usage limit: {visible(limit['detail'])}")


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    cost = "-" if one["cost_usd"] is None else f"${one['cost_usd']:.2f}"
    counts = (one["turns"], one["input"] + one["cache_write"], one["cached"], one["output"])
    return (visible(one["key"]) or "-", *(f"{count:,}" for count in counts), cost)


def moment_of(text: str) -> datetime:
    if (seconds := seconds_of(text)) is not None:
        return datetime.now().astimezone() - timedelta(seconds=seconds)
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise UsageError(f"expected a day such as 2026-11-18, or 7d or 12h, but got {visible(text[:80])!r}") from None
