"""``hitch cancel``."""

from __future__ import annotations

import click

from hitchpost.cli import words
from hitchpost.cli.common import json_option, print_json, session_argument, session_json
from hitchpost.ops.sessions.cancel import cancel
from hitchpost.ops.views.find import find
from hitchpost.store.home import open_home


@click.command("cancel")
@session_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def command(session: str, yes: bool, as_json: bool) -> None:
    """End a session and archive it: it stays readable but takes no new run. To continue later, use stop and resume."""
    home = open_home(create=False)
    seen = find(home, session)
    question = words.cancel_question(seen.record.name, seen.record.record, seen.facts.state)
    if question and not yes:
        click.confirm(question, abort=True, err=True)
    seen = cancel(home, seen.record.id, actor="cli")
    if as_json:
        print_json(session_json(seen))
    else:
        click.echo(words.cancelled(seen.record.name))
