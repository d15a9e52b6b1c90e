"""``hitch user``: the people who share a hub, their roles, and how much each may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from hitchpost.cli.common import json_option, print_json
from hitchpost.cli.people import People, complete_users, people
from hitchpost.text import table, visible

ROLES = ("owner", "member", "viewer")
KINDS = ("sessions", "cpu", "memory", "storage")
user_argument = click.argument("name", shell_complete=complete_users)


def quota_options(function: Callable[..., None]) -> Callable[..., None]:
    options = (
        click.option("--sessions", metavar="N", help="How many sessions of theirs may run at once; none: any number."),
        click.option("--cpu", metavar="AMOUNT", help="Processors of their pods together, such as 4 or 500m."),
        click.option("--memory", metavar="AMOUNT", help="Memory of their pods together, such as 8Gi."),
        click.option("--storage", metavar="AMOUNT", help="Volumes of their sessions together, such as 100Gi."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.group("user")
def command() -> None:
    """The people who share a hub. Without any, there is one owner: you.

    An owner may do everything. A member sees and drives sessions of their own. A viewer looks at all sessions and
    changes nothing. They sign in with a link (`hitch link --user NAME`), with tokens (`hitch token create --user
    NAME`), or through an authenticating proxy (docs/people.md).
    """


@command.command("add", short_help="Add somebody.")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), default="member", show_default=True)
@quota_options
@json_option
def add(name: str, role: str, as_json: bool, **quota: str | None) -> None:
    """Add somebody. NAME is a word such as anna, or an address such as anna@example.org, if a proxy signs people in."""
    do_add(people(), name, role, as_json, **quota)


@command.command("set", short_help="Change somebody's role or limits.")
@user_argument
@click.option("--role", type=click.Choice(ROLES))
@quota_options
@json_option
def change(name: str, role: str | None, as_json: bool, **quota: str | None) -> None:
    """Change somebody's role or limits. Within two seconds, what they may no longer do has ended.

    A limit counts from the next start on: nothing that runs is stopped.
    """
    do_set(people(), name, role, as_json, **quota)


@command.command("ls", short_help="List people, and what they use.")
@json_option
def ls(as_json: bool) -> None:
    """List people, with what each uses and may use. What is used, only a hub knows."""
    do_ls(people(), as_json)


@command.command("rm", short_help="Remove people, with their tokens and sign-ins.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_users)
def rm(names: tuple[str, ...]) -> None:
    """Remove people. Their tokens and sign-ins end within two seconds; their sessions stay, and owners see them."""
    do_rm(people(), names)


def do_add(people: People, name: str, role: str, as_json: bool, **quota: str | None) -> None:
    _tell(people.add(name, role, _given(quota)), as_json)


def do_set(people: People, name: str, role: str | None, as_json: bool, **quota: str | None) -> None:
    _tell(people.change(name, role, _given(quota)), as_json)


def do_ls(people: People, as_json: bool) -> None:
    found = people.users()
    if as_json:
        print_json(found)
        return
    rows = [("NAME", "ROLE", *map(str.upper, KINDS), "CREATED")]
    for person in found:
        rows.append((visible(person["name"]), person["role"], *_amounts(person), person["created_at"][:19]))
    click.echo("\n".join(table(rows)))


def do_rm(people: People, names: tuple[str, ...]) -> None:
    for name in names:
        ended = people.remove(name)
        click.echo(f"{visible(name)}: removed, with {ended} tokens and sign-ins")


def _given(quota: dict[str, str | None]) -> dict[str, object]:
    return {kind: text for kind, text in quota.items() if text is not None}


def _tell(person: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(person)
        return
    limits = ", ".join(f"{kind} {most}" for kind, most in person["quota"].items()) or "no limits"
    click.echo(f"{visible(person['name'])}: {person['role']}, {limits}")


def _amounts(person: dict[str, Any]) -> list[str]:
    """What is used, of what is allowed."""
    used, quota = person["used"] or {}, person["quota"]
    return [f"{used.get(kind, '-')}/{quota[kind]}" if kind in quota else str(used.get(kind, "-")) for kind in KINDS]
