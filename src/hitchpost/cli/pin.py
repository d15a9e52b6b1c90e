"""``hitch pin``."""

from __future__ import annotations

import click

from hitchpost.cli import words
from hitchpost.cli.common import each, sessions_argument
from hitchpost.ops.sessions.edit import edit
from hitchpost.ops.views.find import resolve
from hitchpost.store.home import open_home


@click.command("pin")
@sessions_argument
@click.option("--off", is_flag=True, help="They are pinned no more.")
def command(sessions: tuple[str, ...], off: bool) -> None:
    """Keep sessions at the top of their section, in the page and in `hitch top`."""
    home = open_home()

    def pin(session: str) -> None:
        record = edit(home, resolve(home, session), actor="cli", pinned=not off)
        click.echo(words.pinned(record.name, record.pinned))

    each(sessions, pin)
