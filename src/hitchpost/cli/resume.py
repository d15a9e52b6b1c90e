"""``hitch resume``."""

from __future__ import annotations

import os

import click

from hitchpost import settings as config
from hitchpost.cli.common import json_option, print_json, say, session_argument, session_json, terminal_size
from hitchpost.ops.sessions.resume import resume
from hitchpost.ops.views.find import find
from hitchpost.store.home import open_home
from hitchpost.text import visible


@click.command("resume")
@session_argument
@json_option
def command(session: str, as_json: bool) -> None:
    """Start the next run of a session that has ended or is suspended, in the same workspace.

    The agent continues its conversation if it can; the output says whether it does. `hitch restart` begins a new one.
    """
    home = open_home()
    found = find(home, session).record.id
    begun = resume(home, found, config.load(), actor="cli", caller=os.environ, size=terminal_size())
    for note in begun.notes:
        say(note)
    if as_json:
        print_json({**session_json(begun.seen), "resumed_conversation": begun.resumed})
    else:
        name, state = visible(begun.seen.record.name), session_json(begun.seen)["state"]
        which = "the same conversation" if begun.resumed else "a new conversation"
        click.echo(f"{name}: {state} (run {begun.seen.facts.run}), {which}")
