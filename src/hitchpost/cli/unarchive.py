"""``hitch unarchive``."""

from __future__ import annotations

import click

from hitchpost.cli.common import each, sessions_argument
from hitchpost.ops.sessions.remove import unarchive
from hitchpost.ops.views.advice import way_on
from hitchpost.ops.views.find import find
from hitchpost.ops.views.observe import observe
from hitchpost.store.home import open_home
from hitchpost.text import visible


@click.command("unarchive")
@sessions_argument
def command(sessions: tuple[str, ...]) -> None:
    """Bring archived sessions back, so that they can run again. One whose name is taken by now gets another."""
    home = open_home()

    def unarchive_session(session: str) -> None:
        before = find(home, session).record
        record = unarchive(home, before.id, actor="cli")
        now = "" if record.name == before.name else f" as {visible(record.name)}"
        click.echo(f"{visible(before.name)}: brought back{now}; {way_on(observe(home, record.id))}")

    each(sessions, unarchive_session)
