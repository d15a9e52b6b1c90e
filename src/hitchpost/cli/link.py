"""``hitch link``: a link that signs a browser or a phone in."""

from __future__ import annotations

import click

from hitchpost.cli import links
from hitchpost.cli.common import json_option, print_json, say
from hitchpost.cli.people import complete_users
from hitchpost.errors import UsageError
from hitchpost.hub import client as hub_client
from hitchpost.model.durations import duration, seconds_of
from hitchpost.store.home import open_home
from hitchpost.text import visible

LONGEST_S = 86400.0


@click.command("link")
@click.option(
    "--for", "lasts", default="10m", show_default=True, metavar="DURATION", help="How long the link can be used."
)
@click.option("--user", default=None, metavar="NAME", shell_complete=complete_users, help="Whom it signs in.")
@click.option(
    "--role",
    type=click.Choice(["owner", "member", "viewer"]),
    default="owner",
    help="What it allows at most.",
    show_default=True,
)
@click.option(
    "--session", "sessions", multiple=True, metavar="SESSION", help="Limit it to this session; can be repeated."
)
@click.option(
    "--qr/--no-qr",
    default=None,
    help="Print a QR code. By default: in a terminal, if other machines can open the link.",
)
@json_option
def command(lasts: str, user: str | None, role: str, sessions: tuple[str, ...], qr: bool | None, as_json: bool) -> None:
    """Print a link that signs one browser in, also as a QR code for a phone's camera.

    It works once. A viewer can look but not change anything. With --user, it is for what that person may do.
    The hub has to be reachable from where the link is opened: docs/remote.md has recipes for SSH, Tailscale and nginx.
    """
    from hitchpost.ops.views.find import resolve

    seconds = seconds_of(lasts)
    if seconds is None or not 0 < seconds <= LONGEST_S:
        got = visible(lasts[:80])
        raise UsageError(f"expected --for to be a duration of at most a day, such as 10m or 2h, but got {got!r}")
    home = open_home()
    wish = {
        "user": user,
        "role": role,
        "sessions": [resolve(home, name) for name in sessions] or None,
        "lasts_s": seconds,
    }
    answer = hub_client.ask(home, "POST", "/api/launch-code", wish, timeout_s=hub_client.ANSWERS_S)
    if as_json:
        print_json(answer)
        return
    click.echo(answer["launch_url"])
    if qr:
        links.print_code(answer["launch_url"])
    elif qr is None:
        links.show_code(answer["launch_url"])
    say(f"it works once, within {duration(seconds)}")
    if links.is_only_here(answer["launch_url"]):
        say("only this machine can open it, and no phone: docs/remote.md says how to reach the hub from elsewhere")
