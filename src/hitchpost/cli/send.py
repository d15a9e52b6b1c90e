"""``hitch send``."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import click

from hitchpost.cli.common import SECONDS, json_option, print_json, session_argument, session_json
from hitchpost.cli.wait import words
from hitchpost.errors import UsageError
from hitchpost.ops.send import send
from hitchpost.ops.sessions import again, find
from hitchpost.ops.waiting import wait_for_turn
from hitchpost.state.home import open_home
from hitchpost.text import visible


class Send(click.Command):
    """A text may begin with a dash, so ``-h`` asks for help only where no session is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--help"] if args == ["-h"] else args)


@click.command("send", cls=Send, context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@session_argument
@click.argument("text")
@click.option("--no-enter", is_flag=True, help="Type the text and leave it there.")
@click.option("--force", is_flag=True, help="Type even when the agent waits for a permission.")
@click.option("--wait", "until_done", is_flag=True, help="Wait until the agent is idle, wants something, or has ended.")
@click.option("--timeout", "timeout_s", type=SECONDS, metavar="SECONDS", help="With --wait: give up.")
@json_option
def command(
    session: str, text: str, no_enter: bool, force: bool, until_done: bool, timeout_s: float | None, as_json: bool
) -> None:
    """Type TEXT into a session, as a person would paste it, and press Enter.

    A TEXT of `-` is read from standard input; a line end at its end is the Enter that is pressed.
    """
    if timeout_s is not None and not until_done:
        raise UsageError("--timeout goes with --wait")
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
        text = text if no_enter else text.removesuffix("\n")
    home = open_home(create=False)
    seen = find(home, session)
    since = datetime.now(UTC)
    offset = send(seen, text, enter=not no_enter, force=force)
    name = visible(seen.record.name)
    if not as_json:
        click.echo(f"sent to {name}")
    if until_done:
        seen = wait_for_turn(home, seen, since, timeout_s=timeout_s)
        if not as_json:
            click.echo(f"{name}: {visible(words(seen))}")
    if as_json:
        print_json({"offset": offset, "session": session_json(seen if until_done else again(home, seen))})
