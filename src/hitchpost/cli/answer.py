"""``hitch answer``."""

from __future__ import annotations

import click

from hitchpost.cli import words
from hitchpost.cli.common import json_option, print_json, session_argument, session_json
from hitchpost.ops.sessions.answer import answer
from hitchpost.store.home import open_home


@click.command("answer")
@session_argument
@click.argument("choice", metavar="yes|no|always|TEXT")
@click.option("--request", default="", metavar="ID", help="Answer only this request; the session's JSON has its id.")
@click.option("--message", default="", metavar="TEXT", help="With no: tell the agent why.")
@json_option
def command(session: str, choice: str, request: str, message: str, as_json: bool) -> None:
    """Answer what SESSION asks: allow or refuse what it wants to do.

    An answer counts once: it is refused if somebody has already answered in the terminal.
    """
    seen = answer(open_home(create=False), session, choice, actor="cli", request=request, message=message)
    if as_json:
        print_json(session_json(seen))
    else:
        click.echo(words.answered(choice, seen.record.name))
