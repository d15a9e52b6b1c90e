"""``hitch status``: the hub, the containers, the sessions."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import click

from hitchpost.cli.common import json_option, print_json
from hitchpost.cli.services import lines
from hitchpost.hub import client as hub_client
from hitchpost.model import record, run
from hitchpost.model.durations import duration
from hitchpost.model.headline import NEEDS_YOU, STALE, colour_of
from hitchpost.model.status import UNKNOWN
from hitchpost.ops.views.services import overview
from hitchpost.store.home import open_home
from hitchpost.text import painted, visible

NAMED = 3
NOT_LIVE = (STALE, UNKNOWN, run.FAILED, run.ORPHANED, run.STOPPED, run.COMPLETED, record.SUSPENDED)


@click.command("status")
@json_option
def command(as_json: bool) -> None:
    """Show whether the hub is running, the containers, and how many sessions are in each state."""
    home = open_home()
    silent = ""
    known: dict[str, Any] | None = None
    hub: dict[str, Any] | None = None
    try:
        hub = hub_client.ask(home, "GET", "/api/health", timeout_s=hub_client.ANSWERS_S)
        known = hub_client.ask(home, "GET", "/api/status", timeout_s=5)
    except hub_client.SilentHub as error:
        silent = str(error).removeprefix("the hub ")
        hub = {"ok": False, "pid": error.pid, "problems": [str(error)]}
    except hub_client.NoHub:
        hub = None
    show(hub, known or overview(home), silent=silent, as_json=as_json)


def show(hub: dict[str, Any] | None, known: dict[str, Any], *, silent: str = "", as_json: bool) -> None:
    """``hub`` is what the hub says of itself, ``known`` what is known of the sessions."""
    rows = known["sessions"]
    words = Counter(row["status"] for row in rows)
    if as_json:
        print_json({"hub": hub, "counts": known["counts"], "containers": known["containers"], "sessions": rows})
        return
    colour = sys.stdout.isatty()
    click.echo("Services:")
    if hub is None:
        click.echo(f"  hub       {painted('stopped', 'yellow', on=colour)}   (hitch up starts it)")
    elif silent:
        click.echo(f"  hub       {painted(silent, 'yellow', on=colour)}")
    else:
        counts = ", ".join(f"{words[word]} {word}" for word in NOT_LIVE if words[word])
        up = painted("running", "green", on=colour)
        click.echo(
            f"  hub       {up}   pid {hub['pid']}, up {duration(hub['uptime_s'])}{f' ({counts})' if counts else ''}"
        )
        for text in hub.get("problems", []):
            click.echo(f"    {painted('problem', 'yellow', on=colour)}: {visible(text)}")
    click.echo("Containers:")
    click.echo("\n".join(lines(known["containers"], colour=colour)))
    needing = [row for row in rows if row.get("section") == NEEDS_YOU]  # an older hub has none
    click.echo(f"Sessions:{_needing(needing, colour=colour)}")
    for word, count in sorted(words.items()):
        paint = colour_of(word)
        click.echo(f"  {painted(f'{count} {word}', paint, on=colour and paint == 'yellow')}")
    if not rows:
        click.echo("  none")


def _needing(rows: list[dict[str, Any]], *, colour: bool) -> str:
    """How many sessions need a person, and which are the first of them."""
    if not rows:
        return ""
    rows = sorted(rows, key=lambda row: row["rank"])
    names = ", ".join(visible(row["name"]) for row in rows[:NAMED]) + (", …" if rows[NAMED:] else "")
    count = f"{len(rows)} need{'' if rows[1:] else 's'} you"
    return f" {painted(count, 'yellow', on=colour)} ({names})"
