"""``hitch cancel``."""

from __future__ import annotations

import click

from hitchpost.cli.common import json_option, print_json, session_argument, session_json
from hitchpost.cli.text import visible
from hitchpost.ops.sessions import find
from hitchpost.ops.stop import stop
from hitchpost.state.home import open_home


@click.command("cancel")
@session_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def command(session: str, yes: bool, as_json: bool) -> None:
    """End what a session does now. Its record stays active: it can be resumed, and keeps its conversation."""
    home = open_home(create=False)
    seen = find(home, session)
    if not yes:
        click.confirm(f"end {visible(seen.record.name)} now?", abort=True, err=True)
    seen = stop(home, seen.record.id, reason="cancelled")
    if as_json:
        print_json(session_json(seen))
    else:
        click.echo(f"{visible(seen.record.name)}: cancelled")
