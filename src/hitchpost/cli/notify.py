"""``hitch notify``: which ways there are to be told, a test of them, and what was told."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from hitchpost.cli.common import json_option, print_json
from hitchpost.hub import client as hub
from hitchpost.store.home import open_home
from hitchpost.text import table, visible

ALL = "all"
PATH = "/api/notifications"


@click.group("notify", invoke_without_command=True)
@click.option(
    "--test",
    "channel",
    is_flag=False,
    flag_value=ALL,
    metavar="[WAY]",
    help="Send a test message by every way that is on, or by this one.",
)
@json_option
@click.pass_context
def command(context: click.Context, channel: str | None, as_json: bool) -> None:
    """Show the ways to be told, try them, or list what was told.

    The table [notify] in config.toml sets them up; the page chooses what to be told of.
    """
    if context.invoked_subcommand is not None:
        return
    home = open_home()
    if channel is None:
        _show(hub.ask(home, "GET", PATH), as_json)
        return
    done = hub.ask(home, "POST", f"{PATH}/test", {"channel": "" if channel == ALL else channel})
    if as_json:
        print_json(done)
    else:
        rows = [("WAY", "OUTCOME", "WHY", "TOOK")]
        rows += [(one["channel"], one["outcome"], visible(one["why"]), f"{one['ms']} ms") for one in done]
        click.echo("\n".join(table(rows)))
    outcomes = {one["outcome"] for one in done}
    sys.exit(0 if "sent" in outcomes and outcomes <= {"sent", "nobody"} else 1)


def _show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    rows = [("WAY", "STATE", "WHERE")]
    for one in found["channels"]:
        state = "off" if not one["on"] else "on" if one["ready"] else "not set up"
        rows.append((one["name"], state, visible(one["where"])))
    click.echo("\n".join(table(rows)))
    quiet = f", quiet from {found['quiet_hours'].replace('-', ' to ')}" if found["quiet_hours"] else ""
    click.echo(f"\ntold of: {', '.join(found['kinds']) or 'nothing'}{quiet}")


@command.command("log")
@click.option("-n", "last", type=click.IntRange(1, 10000), default=30, show_default=True, help="How many lines.")
@json_option
def log(last: int, as_json: bool) -> None:
    """List what was told, what was not, and why. It works without the hub."""
    from hitchpost.notify import journal

    path = os.path.join(open_home(), journal.FOLDER, journal.FILE)
    found = journal.lines(path)
    if as_json:
        print_json(found[-last:])
        return
    titles = {line["id"]: line.get("title", "") for line in found if line.get("what") == journal.BEGUN}
    noted = {line.get("key"): line for line in found if line.get("what") == journal.NOTED}
    rows = [("AT", "WHAT", "WAY", "ABOUT", "WHY")]
    for line in found[-last:]:
        what = line.get("what", "")
        if what in (journal.UP, journal.DOWN):
            continue
        about = line.get("title") or titles.get(line.get("id", ""), "")
        if key := line.get("key", ""):
            session, *_, headline = key.split(" ", 3)
            about = f"{noted.get(key, {}).get('name') or session}: {headline}"
        channel = line.get("channel") or ", ".join(line.get("channels", ()))
        cells = (line.get("at", "")[:19], line.get("outcome") or what, channel, about, line.get("why", ""))
        rows.append(tuple(map(visible, map(str, cells))))  # type: ignore[arg-type]
    click.echo("\n".join(table(rows)) if len(rows) > 1 else "nothing was told yet")
