"""``hitch agents``."""

from __future__ import annotations

import shutil

import click

from hitchpost.agents import catalog
from hitchpost.cli.common import json_option, print_json
from hitchpost.cli.text import table


@click.command("agents")
@json_option
def command(as_json: bool) -> None:
    """List the agents that `hitch run` knows, and whether each is installed."""
    found = [(agent, shutil.which(agent.argv[0])) for agent in map(catalog.load, catalog.names())]
    if as_json:
        print_json(
            [
                {
                    "name": agent.name,
                    "title": agent.title,
                    "argv": list(agent.argv),
                    "path": path,
                    "install": agent.install,
                }
                for agent, path in found
            ]
        )
        return
    rows = [("AGENT", "TITLE", "PROGRAM")]
    rows += [(agent.name, agent.title, path or f"not installed: {agent.install}") for agent, path in found]
    click.echo("\n".join(table(rows)))
