"""``hitch context``: hubs elsewhere that commands can be for."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from hitchpost.cli.common import json_option, print_json, say
from hitchpost.cli.failing import report
from hitchpost.cli.remote import contexts
from hitchpost.cli.remote.contexts import HERE, Context
from hitchpost.errors import FAILURES, MALFORMED, HitchpostError, UsageError
from hitchpost.hub.address import origin_of
from hitchpost.store import files
from hitchpost.text import table, visible

LONGEST_TOKEN = 1000


def complete_contexts(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in (*contexts.names(), HERE) if name.startswith(incomplete)]


context_argument = click.argument("name", shell_complete=complete_contexts)


@click.group("context")
def command() -> None:
    """Work with hubs of other machines. A context is such a hub, by a name of your own, and your token for it.

    \b
    hitch context add team https://hub.example.org
    hitch --context team ps                       one command for that hub
    hitch context use team                        every command from now on
    hitch context use local                       this machine again

    --context counts most, then the variable HITCHPOST_CONTEXT, then what `hitch context use` has chosen.
    """


@command.command("add", short_help="Add a hub, by a name of your own.")
@click.argument("name")
@click.argument("url")
@click.option("--token-file", metavar="FILE", help="Read the token from a file, or from standard input (-).")
@click.option("--ca-file", metavar="FILE", help="The authorities that sign the hub's certificate (PEM).")
def add(name: str, url: str, token_file: str | None, ca_file: str | None) -> None:
    """Add the hub at URL, after asking it who you are there. Without --token-file, the token is asked for.

    On the machine of the hub, `hitch token create` makes one, for a person with --user NAME. It is kept in a file that
    only you can read.
    """
    origin = origin_of(url, "URL")
    authorities = b"" if ca_file is None else _authorities(ca_file)
    token = _token(token_file)
    made = contexts.add(name, origin, token, authorities)
    try:
        asked = _who(made)
    except BaseException:
        contexts.remove(name)
        raise
    click.echo(f"{name}: {origin}, {asked}")
    say(f"hitch --context {name} ps lists its sessions, hitch context use {name} makes it the usual one")


@command.command("ls")
@json_option
def ls(as_json: bool) -> None:
    """List the contexts. The usual one is marked with *."""
    usual = contexts.current()
    found, code = [], 0
    for name in contexts.names():
        try:
            found.append(_shape(contexts.load(name), usual))
        except FAILURES as error:
            code = report(error)
    if as_json:
        print_json(found)
    else:
        marks = (("*" if one["current"] else "", one["name"], visible(one["url"])) for one in found)
        click.echo("\n".join(table([("", "NAME", "URL"), *marks])))
    sys.exit(code)


@command.command("use", short_help="Make a context the usual one.")
@context_argument
def use(name: str) -> None:
    """Make a context the usual one: commands without --context are for it. `local` is this machine.

    It does not count inside a session, where hitch means the machine of that session.
    """
    contexts.use(name)
    click.echo("commands are for this machine" if name == HERE else f"commands are for {name}")


@command.command("rm")
@click.argument("names", nargs=-1, required=True, shell_complete=complete_contexts)
def rm(names: tuple[str, ...]) -> None:
    """Forget contexts, and their tokens. The tokens themselves are taken back on the machine of the hub."""
    for name in names:
        contexts.remove(name)
        click.echo(f"{visible(name)}: forgotten")


@command.command("show")
@context_argument
@json_option
def show(name: str, as_json: bool) -> None:
    """Show a context, and ask its hub who you are there."""
    context = contexts.load(name)
    shape = _shape(context, contexts.current())
    try:
        words, is_reached = _who(context), True
    except HitchpostError as error:
        words, is_reached = str(error), False
    if as_json:
        print_json({**shape, "reached": is_reached, "words": words})
    else:
        trusted = "its own file" if context.authorities else "those of this machine"
        for key, text in (("name", name), ("url", context.url), ("authorities", trusted), ("hub", words)):
            click.echo(f"{key + ':':<13}{visible(text)}")
    sys.exit(0 if is_reached else 1)


def _shape(context: Context, usual: str) -> dict[str, Any]:
    return {
        "name": context.name,
        "url": context.url,
        "own_authorities": bool(context.authorities),
        "current": context.name == usual,
    }


def _who(context: Context) -> str:
    """Who the token's owner is there, and which hub it is. Raises what keeps it from being asked."""
    from hitchpost.cli.remote.hub import RemoteHub
    from hitchpost.cli.remote.tls import CannotReach

    hub = RemoteHub(context)
    try:
        me, health = hub.get("/api/me"), hub.get("/api/health")
    finally:
        hub.close()
    try:
        of = "" if me["sessions"] is None else f" of {len(me['sessions'])} sessions"
        return visible(f"you are {me['name'] or 'without a name'} there ({me['role']}{of}); hub {health['version']}")
    except MALFORMED as error:
        raise CannotReach(context, error) from None


def _token(path: str | None) -> str:
    if path is None:
        if not sys.stdin.isatty():
            raise UsageError("expected --token-file, because nobody can be asked for the token here")
        text = click.prompt("token", hide_input=True, err=True)
    elif path == "-":
        text = sys.stdin.readline(LONGEST_TOKEN)
    else:
        text = _read(path).decode("utf-8", "replace")
    token = str(text).strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token or len(token) > LONGEST_TOKEN:
        raise UsageError("expected a token of letters, digits and signs, in one line")
    return token


def _authorities(path: str) -> bytes:
    """What a file with certificates has. Raises ``UsageError`` for one that has none."""
    import ssl

    text = _read(path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text.decode())
    except (ssl.SSLError, ValueError):
        raise UsageError(f"expected certificates in {path}, as PEM") from None
    return text


def _read(path: str) -> bytes:
    try:
        return files.read_bytes(os.path.expanduser(path), 1 << 20, follow=True)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
