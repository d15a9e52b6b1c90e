"""``hitch ps`` as click sees it: for help texts, usage errors and completion."""

from __future__ import annotations

import sys

import click

from hitchpost.cli import ps
from hitchpost.model.record import ALL


def _complete_records(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Behind a comma, those that are not named yet."""
    before, comma, begun = incomplete.rpartition(",")
    return [
        f"{before}{comma}{record}" for record in ALL if record.startswith(begun) and record not in before.split(",")
    ]


@click.command("ps")
@click.option("-a", "--all", "everything", is_flag=True, help="Include archived and error records.")
@click.option(
    "--record",
    "records",
    multiple=True,
    metavar="RECORD",
    shell_complete=_complete_records,
    help=f"Only sessions with this record: {', '.join(ALL)}. Can be repeated, or given as a list with commas.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list of sessions.")
@click.option("-w", "--watch", is_flag=True, help="Follow changes until Ctrl-C.")
def command(everything: bool, records: tuple[str, ...], as_json: bool, watch: bool) -> None:
    """List sessions, one line each."""
    flags = [("--all", everything), ("--json", as_json), ("--watch", watch)]
    sys.exit(ps.main([*(flag for flag, given in flags if given), *(f"{ps.RECORD}{record}" for record in records)]))
