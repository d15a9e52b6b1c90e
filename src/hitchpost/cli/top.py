"""``hitch top``, and ``hitch`` alone in a terminal."""

from __future__ import annotations

import sys

import click

from hitchpost.errors import HitchpostError, UsageError
from hitchpost.store.home import open_home


class NoDashboard(HitchpostError):
    """Raised when what draws the dashboard is not installed."""

    def __init__(self) -> None:
        super().__init__("the dashboard is not installed", "install hitchpost[tui], or use hitch ps")


@click.command("top")
def command() -> None:
    """Show every session at a glance, those that need you first, and act on them with single keys.

    `?` lists the keys. It needs no hub.
    """
    try:
        from hitchpost.tui.app import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "rich"):
            raise
        raise NoDashboard from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("top needs a terminal as its input and output", "hitch ps lists sessions without one")
    run(open_home())
