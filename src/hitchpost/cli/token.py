"""``hitch token``: who may ask the hub over TCP, scripts with a token and browsers that are signed in."""

from __future__ import annotations

import click

from hitchpost.cli.common import json_option, print_json
from hitchpost.errors import NoSuchToken, UsageError
from hitchpost.store.home import open_home
from hitchpost.text import table, visible


@click.group("token")
def command() -> None:
    """Tokens for scripts (Authorization: Bearer TOKEN), and signed-in browsers."""


@command.command("create")
@click.option("--name", default="", help="What it is for.")
@click.option("--role", type=click.Choice(["owner", "viewer"]), default="owner", show_default=True)
@click.option(
    "--session", "sessions", multiple=True, metavar="SESSION", help="Limit the token to this session; can be repeated."
)
@click.option("--for", "lasts", default="30d", show_default=True, metavar="DURATION", help="Such as 12h, 7d or never.")
def create(name: str, role: str, sessions: tuple[str, ...], lasts: str) -> None:
    """Create a token and print it. It is shown only once: Hitchpost keeps just its digest.

    A viewer can look but not change anything. With --session, the token is for those sessions only: lists and events
    show it no others, and it cannot create sessions.
    """
    from datetime import UTC, datetime, timedelta

    from hitchpost.hub.http.tokens import create_bearer
    from hitchpost.ops.views.find import resolve

    home, seconds = open_home(), _seconds(lasts)
    covered = frozenset(resolve(home, session) for session in sessions) if sessions else None
    expires_at = None if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)
    click.echo(create_bearer(home, name, role, covered, expires_at))


def _seconds(text: str) -> float | None:
    """None for a token that lasts until it is taken back."""
    from hitchpost.model.durations import seconds_of
    from hitchpost.settings import YEAR_S

    if text == "never":
        return None
    found = seconds_of(text)
    if found is None or not 0 < found <= 10 * YEAR_S:
        got = visible(text[:80])
        raise UsageError(
            f"expected --for to be never or a duration of at most ten years, such as 12h or 7d, but got {got!r}"
        )
    return found


@command.command("ls")
@json_option
def ls(as_json: bool) -> None:
    """List tokens and signed-in browsers. The last use is accurate to ten minutes."""
    from hitchpost.hub.http.tokenfile import TokenFile

    found = TokenFile(open_home()).all()
    if as_json:
        print_json([credential.shape() for credential in found])
        return
    rows = [("ID", "KIND", "NAME", "ROLE", "SESSIONS", "CREATED", "EXPIRES", "LAST USED")]
    for credential in found:
        sessions = "all" if credential.grant.sessions is None else ",".join(sorted(credential.grant.sessions))
        ends, used = credential.expires_at[:19] or "never", credential.used_at[:19] or "never"
        rows.append(
            (
                credential.id,
                credential.kind,
                visible(credential.name),
                credential.grant.role,
                sessions,
                credential.created_at[:19],
                ends,
                used,
            )
        )
    click.echo("\n".join(table(rows)))


@command.command("rm")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
def rm(ids: tuple[str, ...]) -> None:
    """Revoke tokens, or sign browsers out."""
    from hitchpost.hub.http.tokenfile import TokenFile

    kept = TokenFile(open_home())
    for credential_id in ids:
        if credential_id not in {credential.id for credential in kept.all()}:
            raise NoSuchToken(credential_id)
        kept.remove(credential_id)
