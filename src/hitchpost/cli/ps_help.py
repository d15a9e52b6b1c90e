"""``hitch ps`` as click sees it: for help texts, usage errors and completion."""

from __future__ import annotations

import sys

import click

from hitchpost.cli import ps


@click.command("ps")
@click.option("-a", "--all", "everything", is_flag=True, help="Archived and error records too.")
@click.option("--json", "as_json", is_flag=True, help="A list of sessions in the one JSON shape.")
@click.option("-w", "--watch", is_flag=True, help="Follow changes until Ctrl-C.")
def command(everything: bool, as_json: bool, watch: bool) -> None:
    """List sessions, one line each."""
    flags = [("--all", everything), ("--json", as_json), ("--watch", watch)]
    sys.exit(ps.main([flag for flag, wanted in flags if wanted]))
