"""``hitch up``: start the hub, or say where it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import click

from hitchpost import settings as config
from hitchpost import wire
from hitchpost.agents import catalog
from hitchpost.cli import links
from hitchpost.cli.common import json_option, print_json, say
from hitchpost.errors import MALFORMED, HitchpostError, UsageError
from hitchpost.hub import client as hub_client
from hitchpost.hub.address import Address
from hitchpost.ops.sessions import environment
from hitchpost.store import files
from hitchpost.store.home import is_copy, open_home

READY_S = 20.0
LAST_BYTES = 64 * 1024


class UpFailed(HitchpostError):
    """Raised when the hub does not come up."""


@click.command("up")
@click.option("--host", help="The address to listen on; 127.0.0.1 unless set. Any but loopback needs TLS.")
@click.option("--port", type=click.IntRange(0, 65535), help="8750 unless set; 0 picks a free one.")
@click.option("--tls-cert", metavar="FILE", help="The certificate chain (PEM); the hub then speaks HTTPS only.")
@click.option("--tls-key", metavar="FILE", help="The certificate's private key (PEM).")
@click.option(
    "--public-url",
    "urls",
    multiple=True,
    metavar="URL",
    help="A URL that leads to the hub from elsewhere: a tunnel, a proxy, a name. Links use the first; can be repeated.",
)
@click.option(
    "--fleet",
    metavar="ADDRESS",
    help="Be one of a fleet's hubs: postgresql://… is the database that they share; HITCHPOST_FLEET unless set.",
)
@click.option(
    "--kube-context", metavar="NAME", help="With --fleet: the context of the kubeconfig, unless its current one."
)
@click.option("--open", "opens", is_flag=True, help="Also open the page in a browser.")
@click.option(
    "--foreground", is_flag=True, help="Stay in the foreground, for service managers; logs go to standard error."
)
@click.option(
    "--keep-env",
    "keep",
    multiple=True,
    metavar="NAME",
    help="Also pass this variable to the sessions that the hub starts.",
)
@json_option
def command(
    host: str | None,
    port: int | None,
    tls_cert: str | None,
    tls_key: str | None,
    urls: tuple[str, ...],
    fleet: str | None,
    kube_context: str | None,
    opens: bool,
    foreground: bool,
    keep: tuple[str, ...],
    as_json: bool,
) -> None:
    """Start the hub in the background and print a URL that signs you in. Run it again for a new URL.

    By default only this machine can reach it. For other machines and phones, give it a certificate, or a public URL of
    a tunnel or proxy that leads to it: docs/remote.md has recipes. The settings host, port, tls_cert, tls_key and
    public_urls are used where an option is not given.

    Sessions that the page starts get only a login's environment, plus what --keep-env and `pass_env` name.

    With --fleet the home is a copy of what the fleet's hubs share, so it needs a folder of its own (HITCHPOST_HOME).
    """
    named = (host, port, tls_cert, tls_key, urls or None)
    address = _address(named)
    home = open_home()
    kept = _kept(keep)
    database = _database(home, fleet)
    if kube_context is not None:
        if not database:
            raise UsageError("--kube-context needs --fleet")
        os.environ[environment.KUBE_CONTEXT] = kube_context
    if foreground:
        os.execve(sys.executable, _program(address), _environment(home, kept, database))
    started = None
    if not hub_client.is_up(home):
        started = _start(home, address, kept, database)
        _tell_left_out(kept)
    elif keep or fleet or any(value is not None for value in named):
        say(
            "the hub is already running, and these options take effect only when it starts; "
            "hitch down ends it, sessions keep running"
        )
    answer = _launch(home, started)
    if opens:
        links.open_page(home, answer["launch_url"])
    if as_json:
        print_json(answer)
    else:
        click.echo(f"the hub is up: {answer['launch_url']}")
        links.show_code(answer["launch_url"])
        say("the link works once, within a minute; hitch up prints another, hitch link makes one that lasts longer")


def _address(named: tuple[str | None, int | None, str | None, str | None, tuple[str, ...] | None]) -> Address:
    """What the options say, else the settings. Raises ``UsageError``."""
    settings = config.load()
    usual = (
        settings.host,
        settings.port,
        os.path.expanduser(settings.tls_cert),
        os.path.expanduser(settings.tls_key),
        settings.public_urls,
    )
    values: list[Any] = [default if value is None else value for value, default in zip(named, usual, strict=True)]
    return Address(*values).checked()


def _database(home: str, named: str | None) -> str:
    """The address of the fleet's database; empty on one machine. Raises ``UsageError``."""
    database = (named or os.environ.get(environment.FLEET, "")).strip()  # a Secret made of a file has a line's end
    if database and not database.startswith(("postgresql://", "postgres://")):
        raise UsageError("expected --fleet to be like postgresql://user@host/name")
    if not database and is_copy(home) and not hub_client.is_up(home):
        raise UsageError(f"{home} is a hub's copy of a fleet: pass --fleet, or name another folder in HITCHPOST_HOME")
    return database


def _program(address: Address) -> list[str]:
    """-P: modules are not looked for in the current folder, which may be an agent's."""
    return [sys.executable, "-P", "-m", "hitchpost.hub", *address.words]


def _start(home: str, address: Address, kept: tuple[str, ...], database: str) -> subprocess.Popen[bytes]:
    log = os.open(
        os.path.join(home, hub_client.LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    try:
        return subprocess.Popen(
            _program(address),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=_environment(home, kept, database),
            start_new_session=True,
        )
    finally:
        os.close(log)


def _kept(named: tuple[str, ...]) -> tuple[str, ...]:
    for name in named:
        if name not in os.environ:
            raise UsageError(f"expected --keep-env to name a variable that is set, but got {name!r}")
    return (*named, *config.load().pass_env)


def _tell_left_out(kept: tuple[str, ...]) -> None:
    """What an agent may miss when the page starts it."""
    here = environment.of_hub(os.environ, kept)
    wanted = {name: agents for name, agents in catalog.variables().items() if name in os.environ and name not in here}
    if wanted:
        left = ", ".join(f"{name} ({', '.join(agents)})" for name, agents in wanted.items())
        say(f"sessions that the page starts do not get {left}; pass them with --keep-env NAME or the setting pass_env")


def _environment(home: str, kept: tuple[str, ...], database: str) -> dict[str, str]:
    """Without what marks the processes of a session: a hub that is started inside one does not end with it.

    The database's address is a secret, and stands in no argument.
    """
    ours = {wire.HUB_MARK: os.path.join(home, hub_client.LOCK)}
    if database:
        ours |= {name: os.environ[name] for name in environment.OF_CLUSTER if name in os.environ}
        ours[environment.FLEET] = database
    return environment.of_hub(os.environ, kept) | ours


def _launch(home: str, started: subprocess.Popen[bytes] | None) -> dict[str, str]:
    """The hub's answer, once it is there. Its own words when it has ended, unless another serves the home by then."""
    deadline = time.monotonic() + READY_S
    while True:
        try:
            found: dict[str, str] = hub_client.ask(home, "POST", "/api/launch-code", timeout_s=hub_client.ANSWERS_S)
            return found
        except hub_client.SilentHub as error:
            waits = started is not None or isinstance(error, hub_client.UnreachedHub)
            if not waits or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        except hub_client.NoHub:
            ended = not hub_client.is_up(home) and (started is None or started.poll() is not None)
            if ended or time.monotonic() > deadline:
                raise UpFailed(f"the hub did not come up; {_last_words(home)}") from None
            time.sleep(0.02)


def _last_words(home: str) -> str:
    path = os.path.join(home, hub_client.LOG)
    try:
        lines = files.read_ends(path, 0, LAST_BYTES).decode("utf-8", "replace").strip().splitlines()
    except OSError:
        lines = []
    if not lines:
        return f"see {path}"
    try:
        return f"its last words: {json.loads(lines[-1])['event']}"
    except MALFORMED:
        return f"its last words: {lines[-1]}"
