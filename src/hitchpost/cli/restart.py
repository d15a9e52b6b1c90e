"""``hitch restart``."""

from __future__ import annotations

import os

import click

from hitchpost import settings as config
from hitchpost.cli import words
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
from hitchpost.ops.sessions.give_up import is_in_doubt, risk
from hitchpost.ops.sessions.restart import restart
from hitchpost.ops.views.find import find
from hitchpost.store.home import open_home
from hitchpost.text import visible


@click.command("restart")
@sessions_argument
@click.option("--workspace", metavar="W", help="Move the session to another workspace or folder.")
@click.option("--again", is_flag=True, help="Send the first prompt again.")
@click.option("--force", is_flag=True, help="Give up a pod that nobody reaches, whose agent may still be running.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
def command(
    sessions: tuple[str, ...], workspace: str | None, again: bool, force: bool, yes: bool, as_json: bool
) -> None:
    """Start sessions again in the same folder, with this terminal's environment. Running ones are stopped first.

    The agent begins a new conversation; `hitch resume` continues the old one. No prompt is sent without --again.
    """
    home = open_home()
    settings = config.load()

    def restart_session(session: str) -> None:
        seen = find(home, session)
        name = seen.record.name
        if force and is_in_doubt(seen) and not yes:
            node = seen.facts.pod.node if seen.facts.pod is not None else None
            click.confirm(f"{visible(risk(name, node))}. Give it up?", abort=True, err=True)
        begun = restart(
            home,
            seen.record.id,
            settings,
            actor="cli",
            caller=os.environ,
            size=terminal_size(),
            workspace=workspace,
            again=again,
            force=force,
            progress=progress(name, "stopping"),
        )
        for note in begun.notes:
            say(f"{name}: {note}")
        if as_json:
            print_json(session_json(begun.seen))
        else:
            click.echo(words.restarted(session_json(begun.seen)))

    each(sessions, restart_session)
