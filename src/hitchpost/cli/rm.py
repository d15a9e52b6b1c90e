"""``hitch rm``."""

from __future__ import annotations

import click

from hitchpost.cli import words
from hitchpost.cli.common import each, say, sessions_argument
from hitchpost.ops.sessions.remove import remove
from hitchpost.ops.views.find import resolve
from hitchpost.store.home import open_home


@click.command("rm")
@sessions_argument
@click.option("-f", "--force", is_flag=True, help="Stop running sessions first.")
def command(sessions: tuple[str, ...], force: bool) -> None:
    """Delete sessions with their history and recordings. The folders they worked in are not touched."""
    home = open_home()

    def remove_session(session: str) -> None:
        gone = remove(home, resolve(home, session), actor="cli", force=force, tell=say)
        click.echo(words.removed(gone.name))

    each(sessions, remove_session)
