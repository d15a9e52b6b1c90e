"""``hitch diff``: what a session has changed."""

from __future__ import annotations

import sys
from contextlib import suppress

import click

from hitchpost.cli.common import json_option, print_json, say, session_argument
from hitchpost.ops.sessions.count import note
from hitchpost.ops.views.diff import changed, diff_shape
from hitchpost.ops.views.find import find
from hitchpost.store.home import open_home
from hitchpost.text import COLOURS, visible
from hitchpost.workspaces.diff import MOST_BYTES

PAINT = (("+++", "1"), ("---", "1"), ("diff --git", "1"), ("@@", "36"), ("+", COLOURS["green"]), ("-", COLOURS["red"]))


@click.command("diff")
@session_argument
@click.option("--stat", is_flag=True, help="Only count the changes in each file.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@json_option
def command(session: str, stat: bool, color: str, as_json: bool) -> None:
    """Show what changed since the session began: committed, uncommitted and untracked."""
    home = open_home(create=False)
    record = find(home, session).record
    found = changed(home, record, stat=stat and not as_json)
    with suppress(OSError):  # whoever may only read still sees the difference
        note(home, record, found)
    if as_json:
        print_json(diff_shape(found))
    else:
        show(found.stat if stat else found.patch, found.base, cut=found.cut, color=color)


def show(text: bytes, base: str | None, *, cut: bool, color: str) -> None:
    """A difference with ``base``, as git prints it; ``cut`` when there is more of it."""
    if base is None:
        say("the commit that the session started from is unknown; comparing with the last commit")
    if cut:
        say(f"only the first {MOST_BYTES >> 20} MiB are shown; git diff {base or 'HEAD'} there shows all")
    coloured = color == "always" or (color == "auto" and sys.stdout.isatty())
    if coloured or sys.stdout.isatty():
        click.echo("\n".join(_lines(text, coloured)), nl=bool(text), color=True)
    else:
        sys.stdout.buffer.write(text)


def _lines(text: bytes, coloured: bool) -> list[str]:
    """For a terminal: what a changed file holds must not reach it as a command."""
    lines = text.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")
    shown = ["\t".join(map(visible, line.split("\t"))) for line in lines]
    return [_painted(line) for line in shown] if coloured else shown


def _painted(line: str) -> str:
    code = next((code for start, code in PAINT if line.startswith(start)), "")
    return f"\x1b[{code}m{line}\x1b[0m" if code else line
