"""``hitch rename``."""

from __future__ import annotations

import click

from hitchpost.cli import words
from hitchpost.cli.common import json_option, print_json, session_argument, session_json
from hitchpost.ops.sessions.edit import edit
from hitchpost.ops.views.find import resolve
from hitchpost.ops.views.observe import observe
from hitchpost.store.home import open_home


@click.command("rename")
@session_argument
@click.argument("name")
@json_option
def command(session: str, name: str, as_json: bool) -> None:
    """Give a session another name. It keeps its id, its number, its conversation and its folder."""
    home = open_home()
    session_id = resolve(home, session)
    before = observe(home, session_id).record.name
    edit(home, session_id, actor="cli", name=name)
    if as_json:
        print_json(session_json(observe(home, session_id)))
    else:
        click.echo(words.renamed(before, name))
