"""``hitch services``: the containers of the sessions, CR-070's view."""

from __future__ import annotations

import sys
from typing import Any

import click

from hitchpost import hubclient
from hitchpost.cli.common import json_option, print_json
from hitchpost.model.facts import WITHOUT_SANDBOX
from hitchpost.model.status import COLOURS, STALE, STALE_NOTE, container_name, cr070, status
from hitchpost.ops.listing import listing
from hitchpost.ops.look import Seen, look
from hitchpost.state.home import open_home
from hitchpost.text import painted, visible

NOBODY_KNOWS = "session state unknown (Hub down)"


@click.command("services")
@json_option
def command(as_json: bool) -> None:
    """Show the containers of all sessions, and whether an agent lives in each."""
    from datetime import UTC, datetime

    home = open_home()
    try:
        hubclient.ask(home, "GET", "/api/health", timeout_s=5)
        is_up = True
    except hubclient.NoHub:
        is_up = False
    found = [look(home, row.id) for row in listing(home) if row.shape["runtime"] not in (*WITHOUT_SANDBOX, "")]
    there = [seen for seen in found if seen.facts.sandbox_alive is True]
    rows = [_row(seen, is_up) for seen in there]
    if as_json:
        print_json({"hub": is_up, "containers": rows})
        return
    colour = sys.stdout.isatty()
    click.echo("Containers:")
    width = max([len(row["name"]) for row in rows], default=0)
    for row, seen in zip(rows, there, strict=True):
        paint = COLOURS.get(row["state"], status(seen.facts, datetime.now(UTC)).colour)
        word = painted(row["state"].ljust(10), paint, on=colour)
        click.echo(f"  {visible(row['name']).ljust(width + 4)}{word}{row['note']}".rstrip())
    if not rows:
        click.echo("  none")


def _row(seen: Seen, is_up: bool) -> dict[str, Any]:
    word = cr070(seen.facts)
    note = ""
    if not is_up and seen.facts.keeper_alive is not True:
        word, note = "running", NOBODY_KNOWS
    elif word == STALE:
        note = STALE_NOTE
    elif seen.facts.sandbox_paused:
        note = "(paused)"
    record = seen.record
    return {
        "name": f"agent-{record.name}",
        "container": container_name(record.id),
        "session": record.id,
        "state": word,
        "note": note,
    }
