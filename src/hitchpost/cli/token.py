"""``hitch token``: who may ask the hub over TCP, scripts with a token and browsers that are signed in."""

from __future__ import annotations

import click

from hitchpost.cli.common import json_option, print_json
from hitchpost.cli.people import People, complete_users, people
from hitchpost.errors import UsageError
from hitchpost.text import table, visible

TIMES = ("CREATED", "EXPIRES", "LAST USED")


@click.group("token")
def command() -> None:
    """Tokens for scripts (Authorization: Bearer TOKEN), and signed-in browsers."""


@command.command("create")
@click.option("--name", default="", help="What it is for.")
@click.option("--user", default=None, metavar="NAME", shell_complete=complete_users, help="Whose token it is.")
@click.option(
    "--role",
    type=click.Choice(["owner", "member", "viewer"]),
    default="owner",
    help="What it may do at most.",
    show_default=True,
)
@click.option(
    "--session", "sessions", multiple=True, metavar="SESSION", help="Limit the token to this session; can be repeated."
)
@click.option("--for", "lasts", default="30d", show_default=True, metavar="DURATION", help="Such as 12h, 7d or never.")
def create(name: str, user: str | None, role: str, sessions: tuple[str, ...], lasts: str) -> None:
    """Create a token and print it. It is shown only once: Hitchpost keeps just its digest.

    A viewer can look but not change anything. With --user, the token is for what that person may do, and ends with
    them. With --session, it is for those sessions only: lists and events show it no others, and it cannot create
    sessions.
    """
    do_create(people(), name, user, role, sessions, lasts)


def do_create(people: People, name: str, user: str | None, role: str, sessions: tuple[str, ...], lasts: str) -> None:
    limits = {"sessions": list(sessions) or None, "lasts_s": _seconds(lasts)}
    click.echo(people.new_token({"name": name, "user": user, "role": role, **limits}))


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
    do_ls(people(), as_json)


def do_ls(people: People, as_json: bool) -> None:
    found = people.tokens()
    if as_json:
        print_json(found)
        return
    has_users = any(token["user"] for token in found)
    rows = [("ID", "KIND", "NAME", *(["USER"] if has_users else []), "ROLE", "SESSIONS", *TIMES)]
    for token in found:
        sessions = "all" if token["sessions"] is None else ",".join(token["sessions"])
        ends, used = token["expires_at"][:19] or "never", token["used_at"][:19] or "never"
        whose = [token["user"] or ""] if has_users else []
        name = visible(token["name"])
        rows.append(
            (token["id"], token["kind"], name, *whose, token["role"], sessions, token["created_at"][:19], ends, used)
        )
    click.echo("\n".join(table(rows)))


@command.command("rm")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
def rm(ids: tuple[str, ...]) -> None:
    """Revoke tokens, or sign browsers out."""
    do_rm(people(), ids)


def do_rm(people: People, ids: tuple[str, ...]) -> None:
    for credential_id in ids:
        people.remove_token(credential_id)
