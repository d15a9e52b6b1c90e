"""``hitch archive``."""

from __future__ import annotations

import click

from hitchpost.cli import words
from hitchpost.cli.common import each, sessions_argument
from hitchpost.ops.sessions.remove import archive
from hitchpost.ops.views.find import resolve
from hitchpost.store.home import open_home


@click.command("archive")
@sessions_argument
def command(sessions: tuple[str, ...]) -> None:
    """Archive ended sessions. They stay readable (`hitch ps --all`), take no new run, and free their names."""
    home = open_home()

    def archive_session(session: str) -> None:
        click.echo(words.archived(archive(home, resolve(home, session), actor="cli").name))

    each(sessions, archive_session)
