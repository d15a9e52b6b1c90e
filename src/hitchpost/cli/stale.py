"""The menu for a container that runs without an agent in it."""

from __future__ import annotations

import os
import sys

import click

from hitchpost import settings
from hitchpost.agents import catalog
from hitchpost.errors import HitchpostError, Refused
from hitchpost.hub import client as hub_client
from hitchpost.model.headline import STALE
from hitchpost.model.status import STALE_NOTE
from hitchpost.ops.sessions.restart import restart
from hitchpost.ops.sessions.stop import stop
from hitchpost.ops.views.advice import way_on
from hitchpost.ops.views.observe import Observation
from hitchpost.text import visible


def ask(home: str, seen: Observation) -> bool:
    """Whether the session runs again, as the person chose. Raises ``Refused`` where nobody can be asked."""
    name, agent = seen.record.name, seen.record.agent
    if not (os.isatty(0) and os.isatty(1)):
        raise Refused(f"{name} is {STALE} {STALE_NOTE}", way_on(seen))
    title = catalog.title(agent)
    click.echo(f"Agent '{visible(name)}' is {STALE} {STALE_NOTE}.\n")
    click.echo(f"  [R] Restart session - launch {visible(title)} in a new tmux session")
    click.echo("  [T] Teardown      - remove the container entirely")
    click.echo("  [C] Cancel\n")
    click.echo("Choice: ", nl=False)
    choice = sys.stdin.readline().strip().lower()
    if choice == "r":
        _do(home, seen, "restart-session")
        return True
    if choice == "t":
        _do(home, seen, "stop")
        click.echo(f"{visible(name)}: the container is removed")
    elif choice not in ("c", ""):
        raise Refused(f"expected R, T or C, but got {choice!r}")
    return False


def _do(home: str, seen: Observation, what: str) -> None:
    """Through the hub where there is one, else the same operation here."""
    session = seen.record.id
    try:
        hub_client.ask(home, "POST", f"/api/agents/{session}/{what}", timeout_s=120)
    except hub_client.NoHub:
        if what == "stop":
            stop(home, session, actor="cli")
        else:
            restart(home, session, settings.load(), actor="cli", caller=os.environ)
    except hub_client.HubRefused as error:
        raise HitchpostError(str(error)) from None
