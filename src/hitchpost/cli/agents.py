"""``hitch agents``."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import click

from hitchpost import settings as config
from hitchpost.cli.common import json_option, print_json
from hitchpost.ops.views import catalog
from hitchpost.text import table, visible


@click.command("agents")
@json_option
def command(as_json: bool) -> None:
    """List the agents that `hitch run` can start, and whether each is installed.

    Files in the folder `agents` beside your settings add agents, or replace built-in ones.
    """
    found = catalog.agents(os.environ, config.load())
    show([{**asdict(agent), "argv": list(agent.argv)} for agent in found], as_json=as_json)


def show(found: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    rows = [("AGENT", "TITLE", "PROGRAM")]
    rows += [(visible(agent["name"]), visible(agent["title"]), visible(_program(agent))) for agent in found]
    click.echo("\n".join(table(rows)))


def _program(agent: dict[str, Any]) -> str:
    if agent["broken"]:
        return f"broken: {agent['broken']}"
    return agent["path"] or (f"not installed: {agent['install']}" if agent["install"] else "not installed")
