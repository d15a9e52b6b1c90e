"""``hitch interrupt``."""

from __future__ import annotations

import click

from hitchpost.cli.common import json_option, print_json, session_argument, session_json
from hitchpost.ops.sessions.interrupt import interrupt
from hitchpost.store.home import open_home
from hitchpost.text import visible


@click.command("interrupt")
@session_argument
@json_option
def command(session: str, as_json: bool) -> None:
    """Interrupt what an agent over ACP works on. It keeps running, and prompts that wait for it are not sent.

    Other agents are interrupted in their terminals.
    """
    seen = interrupt(open_home(create=False), session, actor="cli")
    if as_json:
        print_json(session_json(seen))
    else:
        click.echo(f"{visible(seen.record.name)}: interrupted")
