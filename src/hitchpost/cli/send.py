"""``hitch send``."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import click

from hitchpost.cli.caller import Delivering, terminal_size, typed_in
from hitchpost.cli.common import SECONDS, json_option, print_json, say, session_argument, session_json
from hitchpost.cli.words import became, sent
from hitchpost.errors import UsageError
from hitchpost.model import run as runs
from hitchpost.ops.sessions.prompt import prompt
from hitchpost.ops.views.find import again, find
from hitchpost.ops.views.wait import has_ended, wait_for_turn
from hitchpost.store import files
from hitchpost.store.home import open_home
from hitchpost.store.images import MOST_BYTES, ending_of
from hitchpost.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.ops.views.session_types import Session


class Send(click.Command):
    """A text may begin with a dash, so ``-h`` asks for help only where no session is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--help"] if args == ["-h"] else args)


@click.command("send", cls=Send, context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@session_argument
@click.argument("text")
@click.option(
    "--image",
    "images",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="Send this PNG, JPEG, GIF or WebP image along; for agents over ACP that take images. Can be repeated.",
)
@click.option("--no-enter", is_flag=True, help="Do not press Enter.")
@click.option("--force", is_flag=True, help="Type whatever the agent shows. It may answer a permission or a dialog.")
@click.option("--resume", "resumes", is_flag=True, help="First resume a session that has ended or is suspended.")
@click.option("--wait", "until_done", is_flag=True, help="Wait until the agent is idle, needs something, or has ended.")
@click.option("--timeout", "timeout_s", type=SECONDS, metavar="SECONDS", help="With --wait: give up after this time.")
@json_option
def command(
    session: str,
    text: str,
    images: tuple[str, ...],
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
    check(until_done, timeout_s)
    text = said(text, enter=not no_enter)
    pictures = tuple(map(picture, images))
    home = open_home(create=False)
    record = find(home, session).record
    since = datetime.now(UTC)
    shown = session_json(find(home, session)) if force else None
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
            images=pictures,
        )
    seen, receipt = done.seen, done.receipt
    name = visible(seen.record.name)
    for note in done.notes:
        say(note)
    if not as_json and done.started:
        click.echo(f"{name} was started again (run {seen.facts.run})")
    if not as_json:
        how = {"watched": receipt.watched, "waits": receipt.waits}
        told = sent(name, proof=receipt.proof, **how, shown=forced_upon(shown))
        if not receipt.waits and not receipt.proof and again(home, seen).facts.state in runs.TERMINAL:
            told += "; the agent has ended"
        click.echo(told)
    if until_done:
        seen = wait_for_turn(home, seen, since, timeout_s=timeout_s)
        if not as_json:
            click.echo(f"{name}: {visible(became(session_json(seen), has_ended=has_ended(seen)))}")
    if as_json:
        now = session_json(seen if until_done else again(home, seen))
        proof = {"proof": receipt.proof, "confirmed": bool(receipt.proof), "waits": receipt.waits}
        receipt_json = {"offset": receipt.offset, **proof, "images": len(pictures)}
        print_json({**receipt_json, "started": done.started, "session": now})


def picture(path: str) -> bytes:
    """An image, looked at before anything is sent. Raises ``UsageError``."""
    try:
        if (size := os.stat(path).st_size) > MOST_BYTES:
            raise UsageError(
                f"cannot send {path}: it has {size} bytes, and the images of a prompt at most {MOST_BYTES}"
            )
        data = files.read_bytes(path, MOST_BYTES, follow=True)
    except OSError as error:
        raise UsageError(f"cannot send {path}: {(error.strerror or str(error)).lower()}") from None
    if not ending_of(data):
        raise UsageError(f"cannot send {path}: expected a PNG, JPEG, GIF or WebP image, but got something else")
    return data


def check(until_done: bool, timeout_s: float | None) -> None:
    if timeout_s is not None and not until_done:
        raise UsageError("--timeout needs --wait")


def said(text: str, *, enter: bool) -> str:
    """The text itself, or with ``-`` what standard input has."""
    if text != "-":
        return text
    text = typed_in()
    return text.removesuffix("\n") if enter else text


def forced_upon(shown: Session | None) -> str:
    """What the agent showed when a text was forced upon it; empty when it would have taken it anyway."""
    if shown is None or not shown["refusal"]:
        return ""
    return ": ".join(filter(None, (shown["headline"], visible(shown["detail"]))))
