"""``hitch down``: stop the hub. Sessions keep running, unless the settings say otherwise."""

from __future__ import annotations

import signal
import time

import click

from hitchpost.cli.common import say
from hitchpost.errors import HitchpostError
from hitchpost.hub import client as hub_client
from hitchpost.store.home import open_home
from hitchpost.system import process

LEAVE_S = 60.0


class StillUp(HitchpostError):
    """Raised when the hub does not end."""


@click.command("down")
def command() -> None:
    """Stop the hub. Sessions keep running, unless the setting on_shutdown = "suspend" stops and suspends them."""
    home = open_home()
    if not hub_client.is_up(home):
        click.echo("the hub is not running")
        return
    pid = hub_client.pid_of(home)
    if pid is None:
        raise StillUp("the hub is starting, or its process cannot be found; try again, or see hitch doctor")
    start = process.start_time(pid) or 0
    process.send(pid, signal.SIGTERM)
    if hub_client.is_stopped(pid):
        say(f"the hub (pid {pid}) was stopped by a signal; it is resumed so that it can end")
        process.send(pid, signal.SIGCONT)
    deadline = time.monotonic() + LEAVE_S
    told = time.monotonic() + 1
    while hub_client.is_up(home) or process.is_alive(pid, start):
        if time.monotonic() > deadline:
            raise StillUp(f"the hub did not end within {LEAVE_S:g} s; kill -9 {pid} ends it, and sessions keep running")
        if time.monotonic() > told:
            say("waiting for the hub to end")
            told += 5
        time.sleep(0.02)
    click.echo("the hub is down")
