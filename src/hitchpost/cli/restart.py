"""``hitch restart``."""

from __future__ import annotations

import os

import click

from hitchpost import settings as config
from hitchpost.cli.common import (
    each,
    json_option,
    print_json,
    progress,
    say,
    session_json,
    sessions_argument,
    terminal_size,
)
from hitchpost.ops.sessions.restart import restart
from hitchpost.ops.views.find import find
from hitchpost.store.home import open_home
from hitchpost.text import visible


@click.command("restart")
@sessions_argument
@click.option("--workspace", metavar="W", help="Move the session to another workspace or folder.")
@click.option("--again", is_flag=True, help="Send the first prompt again.")
@json_option
def command(sessions: tuple[str, ...], workspace: str | None, again: bool, as_json: bool) -> None:
    """Start sessions again in the same folder, with this terminal's environment. Running ones are stopped first.

    The agent begins a new conversation; `hitch resume` continues the old one. No prompt is sent without --again.
    """
    home = open_home()
    settings = config.load()

    def restart_session(session: str) -> None:
        seen = find(home, session)
        name = seen.record.name
        begun = restart(
            home,
            seen.record.id,
            settings,
            actor="cli",
            caller=os.environ,
            size=terminal_size(),
            workspace=workspace,
            again=again,
            progress=progress(name, "stopping"),
        )
        for note in begun.notes:
            say(f"{name}: {note}")
        if as_json:
            print_json(session_json(begun.seen))
        else:
            click.echo(f"{visible(name)}: {session_json(begun.seen)['state']} (run {begun.seen.facts.run})")

    each(sessions, restart_session)
