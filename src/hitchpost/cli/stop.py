"""``hitch stop``."""

from __future__ import annotations

import click

from hitchpost.cli import words
from hitchpost.cli.common import SECONDS, each, json_option, print_json, progress, say, session_json, sessions_argument
from hitchpost.ops.sessions.sandbox import not_brought
from hitchpost.ops.sessions.stop import check_grace, stop
from hitchpost.ops.views.find import find
from hitchpost.store.home import open_home


@click.command("stop")
@sessions_argument
@click.option("--grace", "grace_s", type=SECONDS, help="Seconds before force is used (default: 10).")
@click.option("--now", is_flag=True, help="Use force at once.")
@json_option
def command(sessions: tuple[str, ...], grace_s: float | None, now: bool, as_json: bool) -> None:
    """End sessions and everything they started."""
    if grace_s is not None:
        check_grace(grace_s)
    home = open_home()

    def stop_session(session: str) -> None:
        seen = find(home, session)
        show = progress(seen.record.name, "stopping")
        seen = stop(home, seen.record.id, actor="cli", grace_s=0.0 if now else grace_s, progress=show)
        for text in not_brought(home, seen.record):
            say(text)
        if as_json:
            print_json(session_json(seen))
        else:
            click.echo(words.stopped(session_json(seen)))

    each(sessions, stop_session)
