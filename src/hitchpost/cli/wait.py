"""``hitch wait``."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import click

from hitchpost.cli.common import SECONDS, json_option, print_json, say, session_json, sessions_argument
from hitchpost.errors import UsageError
from hitchpost.model.status import status
from hitchpost.ops.views.find import find
from hitchpost.ops.views.observe import Observation
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
    if len(sessions) > 1 and not any_of:
        raise UsageError("expected one session, or several with --any: the first of them ends the wait")
    home = open_home(create=False)
    seen = wait_for_any(home, [find(home, session) for session in sessions], until, timeout_s=timeout_s)
    in_vain = until not in ENDED_TOO and has_ended(seen)
    if as_json:
        print_json(session_json(seen))
    elif not in_vain:
        click.echo(f"{visible(seen.record.name)}: {visible(words(seen))}")
    if in_vain:
        say(f"hitch: {seen.record.name} ended before it was {until}: {words(seen)}")
        sys.exit(1)


def words(seen: Observation) -> str:
    """What became of it: the attention of a session that lives, with its headline; the label of one that has ended."""
    found = status(seen.facts, datetime.now(UTC))
    if has_ended(seen):
        return found.label
    is_same = found.headline.lower() == found.attention
    return found.attention if is_same else f"{found.attention} ({found.headline})"
