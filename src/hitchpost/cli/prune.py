"""``hitch prune``."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

import click

from hitchpost.cli.common import json_option, print_json
from hitchpost.ops.sessions.retention import prune
from hitchpost.store.home import open_home
from hitchpost.text import visible


@click.command("prune")
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
@json_option
def command(dry_run: bool, as_json: bool) -> None:
    """Delete old records: suspended for 7 days (30 if resumable), errors after 24 hours. Archived ones stay."""
    found = prune(open_home(), datetime.now(UTC), actor="cli", dry_run=dry_run)
    if as_json:
        print_json([asdict(decision) for decision in found])
        return
    due = [decision for decision in found if decision.delete]
    for decision in due:
        click.echo(
            f"{visible(decision.name)} ({decision.session}): {'would be ' if dry_run else ''}deleted, {decision.why}"
        )
    if not due:
        click.echo("nothing is due")
