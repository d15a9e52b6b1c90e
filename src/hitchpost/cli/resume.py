"""``hitch resume``."""

from __future__ import annotations

import os

import click

from hitchpost import settings as config
from hitchpost.cli import words
from hitchpost.cli.common import json_option, print_json, say, session_argument, session_json, terminal_size
from hitchpost.cli.run import watched_by_nobody
from hitchpost.errors import FAILURES
from hitchpost.model.limits import WAIT, WHEN_LIMIT
from hitchpost.model.run import RUNNING
from hitchpost.ops.sessions.edit import edit
from hitchpost.ops.sessions.resume import resume
from hitchpost.ops.views.find import find
from hitchpost.ops.views.observe import observe
from hitchpost.store.home import open_home


def _complete_agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Those that the session can be handed over to. Never fails: completion must not print errors."""
    from hitchpost.ops.sessions.handover import sharing

    session = ctx.params.get("session") or "".join(ctx.args[:1])  # click leaves it there while an option has no value
    try:
        names = sharing(find(open_home(create=False), session).record.agent)
    except FAILURES:
        return []
    return [name for name in names if name.startswith(incomplete)]


@click.command("resume")
@session_argument
@click.option(
    "--agent",
    metavar="AGENT",
    default="",
    shell_complete=_complete_agents,
    help="Let another agent continue the conversation, such as opencode-acp that of opencode.",
)
@click.option(
    "--when-limit",
    type=click.Choice(WHEN_LIMIT),
    help="At a usage limit from now on: stop, or wait for its end and go on (needs the hub).",
)
@json_option
def command(session: str, agent: str, when_limit: str | None, as_json: bool) -> None:
    """Start the next run of a session that has ended or is suspended, in the same workspace.

    The agent continues its conversation if it can; the output says whether it does. `hitch restart` begins a new one.
    Of a session that is running, --when-limit alone changes just that.
    """
    home = open_home()
    seen = find(home, session)
    found = seen.record.id
    if when_limit and not agent and seen.facts.state == RUNNING:
        _change(home, found, when_limit, as_json=as_json)
        return
    how = {"agent": agent, "when_limit": when_limit or ""}
    begun = resume(home, found, config.load(), actor="cli", caller=os.environ, size=terminal_size(), **how)
    for note in (*begun.notes, *watched_by_nobody(home, begun.seen, when_limit)):
        say(note)
    if as_json:
        print_json({**session_json(begun.seen), "resumed_conversation": begun.resumed})
    else:
        click.echo(words.resumed(session_json(begun.seen), same=begun.resumed))


def _change(home: str, session: str, when_limit: str, *, as_json: bool) -> None:
    record = edit(home, session, actor="cli", when_limit=when_limit)
    seen = observe(home, session)
    for note in watched_by_nobody(home, seen, when_limit):
        say(note)
    if as_json:
        print_json({**session_json(seen), "resumed_conversation": False})
    else:
        click.echo(words.limited(record.name, waits=when_limit == WAIT))
