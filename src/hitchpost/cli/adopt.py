"""``hitch adopt``."""

from __future__ import annotations

import click

from hitchpost import settings as config
from hitchpost.cli.common import json_option, print_json, say, session_json
from hitchpost.ops.sessions.adopt import KNOWN, NOT_KNOWN, adopt
from hitchpost.runtimes import adopted
from hitchpost.store.home import open_home
from hitchpost.text import visible


@click.command("adopt")
@click.option(
    "--tmux", "target", required=True, metavar="TARGET", help="SESSION, SESSION:WINDOW[.PANE] or %ID; names are exact."
)
@click.option("--socket", type=click.Path(), help="The socket of the tmux server (default: tmux's own).")
@click.option("--name", help="A name that no other session has. Default: a generated one.")
@click.option("--description", default="", help="One line to show in hitch ps.")
@json_option
def command(target: str, socket: str | None, name: str | None, description: str, as_json: bool) -> None:
    """Start watching a program that is already running in a tmux pane, as a session.

    The program is not restarted, and its tmux is not changed. `hitch stop` ends the program itself.
    """
    home = open_home()
    seen = adopt(home, adopted.find(target, socket), config.load(), actor="cli", name=name, description=description)
    if as_json:
        print_json(session_json(seen))
    else:
        record = seen.record
        click.echo(f"{visible(record.name)} adopted as session {record.index}, id {record.id}")
    say(f"known: {KNOWN}")
    say(f"not known: {NOT_KNOWN}")
