"""``hitch send``."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import click

from hitchpost.cli.caller import Delivering, terminal_size, typed_in
from hitchpost.cli.common import SECONDS, json_option, print_json, say, session_argument, session_json
from hitchpost.cli.wait import words
from hitchpost.errors import UsageError
from hitchpost.model import run as runs
from hitchpost.model.status import Status, status
from hitchpost.ops.sessions.prompt import prompt
from hitchpost.ops.sessions.send import Receipt
from hitchpost.ops.views.find import again, find
from hitchpost.ops.views.wait import wait_for_turn
from hitchpost.store.home import open_home
from hitchpost.text import visible


class Send(click.Command):
    """A text may begin with a dash, so ``-h`` asks for help only where no session is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--help"] if args == ["-h"] else args)


@click.command("send", cls=Send, context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@session_argument
@click.argument("text")
@click.option("--no-enter", is_flag=True, help="Do not press Enter.")
@click.option("--force", is_flag=True, help="Type whatever the agent shows. It may answer a permission or a dialog.")
@click.option("--resume", "resumes", is_flag=True, help="First resume a session that has ended or is suspended.")
@click.option("--wait", "until_done", is_flag=True, help="Wait until the agent is idle, needs something, or has ended.")
@click.option("--timeout", "timeout_s", type=SECONDS, metavar="SECONDS", help="With --wait: give up after this time.")
@json_option
def command(
    session: str,
    text: str,
    no_enter: bool,
    force: bool,
    resumes: bool,
    until_done: bool,
    timeout_s: float | None,
    as_json: bool,
) -> None:
    """Type TEXT into a session, as a person would paste it, and press Enter.

    A session that was ended because it was idle, or that had completed, is started again first; with --resume, any
    that has ended or is suspended. With `-`, TEXT is
    read from standard input, so that no process list shows it; a final newline counts as the Enter that is pressed.
    """
    if timeout_s is not None and not until_done:
        raise UsageError("--timeout needs --wait")
    if text == "-":
        text = typed_in()
        text = text if no_enter else text.removesuffix("\n")
    home = open_home(create=False)
    record = find(home, session).record
    since = datetime.now(UTC)
    shown = status(find(home, session).facts, since) if force else None
    with Delivering(record.name):
        done = prompt(
            home,
            record.id,
            text,
            actor="cli",
            caller=os.environ,
            size=terminal_size(),
            enter=not no_enter,
            force=force,
            resumes=resumes,
        )
    seen = done.seen
    name = visible(seen.record.name)
    for note in done.notes:
        say(note)
    if not as_json and done.started:
        click.echo(f"{name} was started again (run {seen.facts.run})")
    if not as_json:
        told = _told(name, done.receipt, shown)
        if not done.receipt.waits and not done.receipt.proof and again(home, seen).facts.state in runs.TERMINAL:
            told += "; the agent has ended"
        click.echo(told)
    if until_done:
        seen = wait_for_turn(home, seen, since, timeout_s=timeout_s)
        if not as_json:
            click.echo(f"{name}: {visible(words(seen))}")
    if as_json:
        now = session_json(seen if until_done else again(home, seen))
        proof = {"proof": done.receipt.proof, "confirmed": bool(done.receipt.proof), "waits": done.receipt.waits}
        print_json({"offset": done.receipt.offset, **proof, "started": done.started, "session": now})


def _told(name: str, receipt: Receipt, shown: Status | None) -> str:
    """``shown``: what the agent showed when a text was forced upon it."""
    if shown is not None and shown.refusal:
        what = ": ".join(filter(None, (shown.headline, visible(shown.detail))))
        return f"typed into {name}, whatever it does with it ({what}); not confirmed"
    if receipt.waits:
        return f"waits for {name}, which gets it when it is done"
    if receipt.proof:
        return f"delivered to {name} (proved by {receipt.proof})"
    return f"typed into {name}, not confirmed" if receipt.watched else f"sent to {name}"
