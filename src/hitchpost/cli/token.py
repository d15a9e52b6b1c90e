"""``hitch token``: tokens for scripts that ask the hub over TCP."""

from __future__ import annotations

import click

from hitchpost.state.home import open_home


@click.group("token")
def command() -> None:
    """Tokens for scripts: Authorization: Bearer TOKEN."""


@command.command("create")
@click.option("--name", default="", help="What it is for.")
@click.option("--role", type=click.Choice(["owner", "viewer"]), default="owner", show_default=True)
def create(name: str, role: str) -> None:
    """Make a token and print it, once: only its digest is kept."""
    from hitchpost.api.tokens import create_bearer

    click.echo(create_bearer(open_home(), name, role))
