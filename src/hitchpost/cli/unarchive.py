"""``hitch unarchive``."""

from __future__ import annotations

import click

from hitchpost.cli import words
from hitchpost.cli.common import each, sessions_argument
from hitchpost.ops.sessions.remove import unarchive
from hitchpost.ops.views.advice import way_on
from hitchpost.ops.views.find import find
from hitchpost.ops.views.observe import observe
from hitchpost.store.home import open_home


@click.command("unarchive")
@sessions_argument
def command(sessions: tuple[str, ...]) -> None:
    """Bring archived sessions back, so that they can run again. One whose name is taken by now gets another."""
    home = open_home()

    def unarchive_session(session: str) -> None:
        before = find(home, session).record
        record = unarchive(home, before.id, actor="cli")
        click.echo(words.brought_back(before.name, record.name, way_on(observe(home, record.id))))

    each(sessions, unarchive_session)
