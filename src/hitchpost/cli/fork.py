"""``hitch fork``."""

from __future__ import annotations

import os

import click

from hitchpost.cli import words
from hitchpost.cli.common import json_option, print_json, progress, say, session_argument, session_json, terminal_size
from hitchpost.ops.sessions.fork import fork
from hitchpost.ops.views.find import find
from hitchpost.store.home import open_home


@click.command("fork")
@session_argument
@click.option("--name", metavar="N", help="Name of the new session. Default: a generated one.")
@json_option
def command(session: str, name: str | None, as_json: bool) -> None:
    """Start a new session with the conversation of SESSION and a copy of its work.

    The copy is a worktree on a new branch, at the same commit, with the uncommitted files but not the ignored
    ones. SESSION itself is not changed.
    """
    home = open_home()
    record = find(home, session).record
    told = progress(record.name, "copying its work")
    seen, notes = fork(home, record.id, actor="cli", caller=os.environ, name=name, size=terminal_size(), progress=told)
    for note in notes:
        say(note)
    if as_json:
        print_json(session_json(seen))
        return
    click.echo(words.forked(session_json(seen), record.name))
