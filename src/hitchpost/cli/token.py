"""``hitch token``: who may ask the hub over TCP, scripts with a token and browsers that are signed in."""

from __future__ import annotations

from dataclasses import asdict

import click

from hitchpost.cli.common import json_option, print_json
from hitchpost.errors import NoSuchToken
from hitchpost.state.home import open_home
from hitchpost.text import table, visible


@click.group("token")
def command() -> None:
    """Tokens for scripts (Authorization: Bearer TOKEN), and browsers that are signed in."""


@command.command("create")
@click.option("--name", default="", help="What it is for.")
@click.option("--role", type=click.Choice(["owner", "viewer"]), default="owner", show_default=True)
def create(name: str, role: str) -> None:
    """Make a token and print it, once: only its digest is kept."""
    from hitchpost.api.tokens import create_bearer

    click.echo(create_bearer(open_home(), name, role))


@command.command("ls")
@json_option
def ls(as_json: bool) -> None:
    """List tokens and signed-in browsers."""
    from hitchpost.api.tokenfile import TokenFile

    found = TokenFile(open_home()).all()
    if as_json:
        print_json([asdict(one) for one in found])
        return
    rows = [("ID", "KIND", "NAME", "ROLE", "CREATED", "EXPIRES")]
    rows += [(one.id, one.kind, visible(one.name), one.role, one.created_at[:19], one.expires_at[:19]) for one in found]
    click.echo("\n".join(table(rows)))


@command.command("rm")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
def rm(ids: tuple[str, ...]) -> None:
    """Take tokens back, or sign browsers out: what ID names is not let in any more."""
    from hitchpost.api.tokenfile import TokenFile

    kept = TokenFile(open_home())
    for one in ids:
        if one not in {known.id for known in kept.all()}:
            raise NoSuchToken(one)
        kept.remove(one)
