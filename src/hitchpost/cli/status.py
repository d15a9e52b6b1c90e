"""``hitch status``: the hub, its sandboxes, its sessions."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import click

from hitchpost import hubclient
from hitchpost.cli.common import json_option, print_json
from hitchpost.errors import HitchpostError
from hitchpost.model.durations import duration
from hitchpost.model.facts import DOCKER
from hitchpost.model.status import container_name, cr070
from hitchpost.ops.listing import listing
from hitchpost.ops.look import look
from hitchpost.state.home import open_home
from hitchpost.text import painted, visible


@click.command("status")
@json_option
def command(as_json: bool) -> None:
    """Show whether the hub runs, which sandboxes there are, and how many sessions are in which state."""
    home = open_home()
    silent = ""
    try:
        hub: dict[str, Any] | None = hubclient.ask(home, "GET", "/api/health", timeout_s=hubclient.ANSWERS_S)
        known = {one["id"]: one["state"] for one in hubclient.ask(home, "GET", "/api/agents", timeout_s=5)}
    except hubclient.SilentHub as error:
        silent = str(error).removeprefix("the hub ")
        hub, known = {"ok": False, "pid": error.pid, "problems": [str(error)]}, {}
    except hubclient.NoHub:
        hub, known = None, {}
    rows = [row.shape for row in listing(home)]
    words = Counter(known.get(row["id"]) or _word(home, row["id"]) for row in rows)
    if as_json:
        print_json({"hub": hub, "counts": dict(words), "sessions": rows})
        return
    colour = sys.stdout.isatty()
    click.echo("Services:")
    if hub is None:
        click.echo(f"  hub       {painted('stopped', 'yellow', on=colour)}   (hitch up starts it)")
    elif silent:
        click.echo(f"  hub       {painted(silent, 'yellow', on=colour)}")
    else:
        counts = ", ".join(f"{words[word]} {word}" for word in ("stale", "error", "stopped") if words[word])
        up = painted("running", "green", on=colour)
        click.echo(
            f"  hub       {up}   pid {hub['pid']}, up {duration(hub['uptime_s'])}{f' ({counts})' if counts else ''}"
        )
        for text in hub.get("problems", []):
            click.echo(f"    {painted('problem', 'yellow', on=colour)}: {visible(text)}")
    click.echo("Sandboxes:")
    boxes = [row for row in rows if row["runtime"] == DOCKER]
    for row in boxes:
        click.echo(f"  {container_name(row['id'])}  {visible(row['label'])}")
    if not boxes:
        click.echo("  none")
    click.echo("Sessions:")
    states = Counter(row["status"] for row in rows)
    for word, count in sorted(states.items()):
        click.echo(f"  {count} {word}")
    if not rows:
        click.echo("  none")


def _word(home: str, session: str) -> str:
    try:
        return cr070(look(home, session).facts)
    except (HitchpostError, OSError):
        return "unknown"
