"""``hitch wait``."""

from __future__ import annotations

import sys

import click

from hitchpost.cli.common import SECONDS, json_option, print_json, say, session_json, sessions_argument
from hitchpost.cli.words import became
from hitchpost.errors import UsageError
from hitchpost.ops.views.find import find
from hitchpost.ops.views.session_types import Session
from hitchpost.ops.views.wait import ENDED_TOO, EXIT, UNTIL, has_ended, wait_for_any
from hitchpost.store.home import open_home
from hitchpost.text import visible


@click.command("wait")
@sessions_argument
@click.option("--any", "any_of", is_flag=True, help="Wait for the first of several sessions, and say which.")
@click.option("--until", type=click.Choice(list(UNTIL)), default=EXIT, show_default=True, help="What to wait for.")
@click.option("--timeout", "timeout_s", type=SECONDS, metavar="SECONDS", help="Give up after this time.")
@json_option
def command(sessions: tuple[str, ...], any_of: bool, until: str, timeout_s: float | None, as_json: bool) -> None:
    """Wait until a session is idle, waits for a prompt, is blocked on a permission, or has ended.

    A session that waits, is blocked or reports an error also counts as `idle`, because it is doing nothing. `your-turn`
    is anything that needs a person: blocked, waiting, done, an error, or the end, but not silence alone. With `exit`,
    the exit code is 0 whatever the agent's was; the label says how it ended. The exit code is 1 if the time runs out,
    or if the session ends while you wait for something else.
    """
    check_number(sessions, any_of)
    home = open_home(create=False)
    seen = wait_for_any(home, [find(home, session) for session in sessions], until, timeout_s=timeout_s)
    tell(session_json(seen), until, ended=has_ended(seen), as_json=as_json)


def check_number(sessions: tuple[str, ...], any_of: bool) -> None:
    if len(sessions) > 1 and not any_of:
        raise UsageError("expected one session, or several with --any: the first of them ends the wait")


def tell(session: Session, until: str, *, ended: bool, as_json: bool) -> None:
    """Say what became of it. Exits with 1 when it has ended while something else was waited for."""
    in_vain = until not in ENDED_TOO and ended
    words = became(session, has_ended=ended)
    if as_json:
        print_json(session)
    elif not in_vain:
        click.echo(f"{visible(session['name'])}: {visible(words)}")
    if in_vain:
        say(f"hitch: {session['name']} ended before it was {until}: {words}")
        sys.exit(1)
