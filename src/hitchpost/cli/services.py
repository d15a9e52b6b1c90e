"""``hitch services``: the containers of the sessions."""

from __future__ import annotations

import sys
from typing import Any

import click

from hitchpost.cli.common import json_option, print_json
from hitchpost.hub import client as hub_client
from hitchpost.model.headline import colour_of
from hitchpost.ops.views.services import overview
from hitchpost.store.home import open_home
from hitchpost.text import painted, visible


@click.command("services")
@json_option
def command(as_json: bool) -> None:
    """Show each session's container, and whether its agent is alive."""
    home = open_home()
    try:
        is_up, rows = True, hub_client.ask(home, "GET", "/api/status", timeout_s=5)["containers"]
    except hub_client.NoHub:
        is_up, rows = False, overview(home)["containers"]
    show(is_up, rows, as_json=as_json)


def show(is_up: bool, rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json({"hub": is_up, "containers": rows})
    else:
        click.echo("\n".join(("Containers:", *lines(rows, colour=sys.stdout.isatty()))))


def lines(rows: list[dict[str, Any]], *, colour: bool) -> list[str]:
    """One for each container; stale ones are yellow."""
    names = [visible(row["name"]) for row in rows]
    width = max(map(len, names), default=0) + 4
    found = []
    for name, row in zip(names, rows, strict=True):
        word = row.get("status", row["state"])  # an older hub has no status
        shown = painted(word.ljust(10), colour_of(word), on=colour)
        found.append(f"  {name.ljust(width)}{shown}{visible(row['note'])}".rstrip())
    return found or ["  none"]
