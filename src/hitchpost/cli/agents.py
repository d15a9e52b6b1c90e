"""``hitch agents``."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from hitchpost import settings as config
from hitchpost.cli.common import json_option, print_json
from hitchpost.ops.views import catalog
from hitchpost.text import table


@click.command("agents")
@json_option
def command(as_json: bool) -> None:
    """List the agents that `hitch run` knows, and whether each is installed."""
    found = catalog.agents(os.environ, config.load())
    if as_json:
        print_json([{**asdict(one), "argv": list(one.argv)} for one in found])
        return
    rows = [("AGENT", "TITLE", "PROGRAM")]
    rows += [(one.name, one.title, one.path or f"not installed: {one.install}") for one in found]
    click.echo("\n".join(table(rows)))
