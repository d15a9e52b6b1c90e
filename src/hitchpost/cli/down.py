"""``hitch down``: end the hub. Sessions go on, unless the settings say otherwise."""

from __future__ import annotations

import os
import signal
import time

import click

from hitchpost import hubclient
from hitchpost.cli.common import say
from hitchpost.errors import HitchpostError
from hitchpost.keeper.tree import send
from hitchpost.state import files
from hitchpost.state.home import open_home

LEAVE_S = 60.0


class StillUp(HitchpostError):
    """Raised when the hub does not end."""


@click.command("down")
def command() -> None:
    """End the hub. Sessions go on; with on_shutdown = "suspend" in the settings they are ended and suspended."""
    home = open_home()
    lock = os.path.join(home, hubclient.LOCK)
    if files.is_held(lock) is not True:
        click.echo("the hub is not running")
        return
    try:
        pid, start, boot = files.read_bytes(lock).decode().split()
    except (OSError, ValueError):
        raise StillUp("the hub is starting; try again") from None
    if boot != files.boot_id() or files.process_start(int(pid)) != int(start):
        raise StillUp(f"{lock} is held by a process that it does not name; see hitch doctor")
    send(int(pid), signal.SIGTERM)
    deadline = time.monotonic() + LEAVE_S
    told = time.monotonic() + 1
    while files.is_held(lock) is True:
        if time.monotonic() > deadline:
            raise StillUp(f"the hub (pid {pid}) does not end within {LEAVE_S:g} s")
        if time.monotonic() > told:
            say("waiting for the hub to end")
            told += 5
        time.sleep(0.02)
    click.echo("the hub is down")
