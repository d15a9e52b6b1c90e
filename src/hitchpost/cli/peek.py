"""``hitch peek``: a session's screen as it is now, without entering it."""

from __future__ import annotations

import sys
from contextlib import closing

import click

from hitchpost.cli.common import json_option, print_json, session_argument
from hitchpost.ops.views.find import find, output_of
from hitchpost.store.home import open_home
from hitchpost.terminal import output
from hitchpost.terminal.emulators import Emulators
from hitchpost.terminal.screen import Losses, RunScreen, Screen
from hitchpost.text import visible


@click.command("peek")
@session_argument
@click.option("--run", type=int, metavar="N", help="Which run (default: the newest).")
@click.option("--colour/--no-colour", default=None, help="With the screen's colours; the default in a terminal.")
@json_option
def command(session: str, run: int | None, colour: bool | None, as_json: bool) -> None:
    """Print a session's screen as it is now. Of a run that has ended, its last screen."""
    seen = find(open_home(create=False), session)
    number, folder = output_of(seen, run)
    with Emulators() as emulators, closing(RunScreen(folder, emulators, Losses())) as screen:
        screen.advance(output.bounds(folder)[1])
        show(screen, seen.record.id, number, colour=colour, as_json=as_json)


def show(screen: Screen | RunScreen, session: str, run: int, *, colour: bool | None, as_json: bool) -> None:
    if as_json:
        column, row = screen.cursor()
        size = {"cols": screen.cols, "rows": screen.rows, "cursor": {"col": column, "row": row}}
        print_json({"session": session, "run": run, **size, "text": screen.text()})
    elif sys.stdout.isatty() if colour is None else colour:
        lines = screen.lines(0, 0, screen.cols, _height(screen))
        sys.stdout.buffer.write(b"".join(line + b"\x1b[0m\n" for line in lines))
    elif text := screen.text().rstrip():
        click.echo(visible(text, keep_newlines=True))


def _height(screen: Screen | RunScreen) -> int:
    """Without the empty lines at its end."""
    return len(screen.text().rstrip().split("\n"))
