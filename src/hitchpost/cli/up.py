"""``hitch up``: start the hub, or say where it is."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import click

from hitchpost import hubclient, wire
from hitchpost.cli.common import json_option, print_json, say
from hitchpost.errors import HitchpostError
from hitchpost.state import files
from hitchpost.state.home import open_home

READY_S = 20.0
LAST_BYTES = 64 * 1024


class UpFailed(HitchpostError):
    """Raised when the hub does not come up."""


@click.command("up")
@click.option("--host", default="127.0.0.1", show_default=True, help="A loopback address to listen on.")
@click.option("--port", default=8750, show_default=True, type=click.IntRange(0, 65535), help="0 picks a free one.")
@click.option("--foreground", is_flag=True, help="Stay, for service managers; logs go to standard error.")
@json_option
def command(host: str, port: int, foreground: bool, as_json: bool) -> None:
    """Start the hub in the background and print a URL that signs you in. Run again, it prints a fresh URL."""
    hubclient.check_host(host)
    home = open_home()
    if foreground:
        os.execv(sys.executable, [sys.executable, "-m", "hitchpost.api", host, str(port)])
    started = None
    if not hubclient.is_up(home):
        started = _start(home, host, port)
    answer = _launch(home, started)
    if as_json:
        print_json(answer)
    else:
        click.echo(f"the hub is up: {answer['launch_url']}")
        say("the link works once, within a minute; hitch up prints another")


def _start(home: str, host: str, port: int) -> subprocess.Popen[bytes]:
    log = os.open(
        os.path.join(home, hubclient.LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "hitchpost.api", host, str(port)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=_environment(home),
            start_new_session=True,
        )
    finally:
        os.close(log)


def _environment(home: str) -> dict[str, str]:
    """Ours, without what marks the processes of a session: a hub that is started inside one does not end with it."""
    ours = {name: text for name, text in os.environ.items() if os.fsencode(name) not in wire.MARKS}
    return ours | {wire.HUB_MARK: os.path.join(home, hubclient.LOCK)}


def _launch(home: str, started: subprocess.Popen[bytes] | None) -> dict[str, str]:
    """The hub's answer, once it is there. Its own words when it has ended, unless another serves the home by then."""
    deadline = time.monotonic() + READY_S
    while True:
        try:
            found: dict[str, str] = hubclient.ask(home, "POST", "/api/launch-code", timeout_s=hubclient.ANSWERS_S)
            return found
        except hubclient.SilentHub:
            if started is None or time.monotonic() > deadline:
                raise
        except hubclient.NoHub:
            ended = not hubclient.is_up(home) and (started is None or started.poll() is not None)
            if ended or time.monotonic() > deadline:
                raise UpFailed(f"the hub did not come up; {_last_words(home)}") from None
            time.sleep(0.02)


def _last_words(home: str) -> str:
    path = os.path.join(home, hubclient.LOG)
    try:
        lines = files.read_ends(path, 0, LAST_BYTES).decode("utf-8", "replace").strip().splitlines()
    except OSError:
        lines = []
    return f"its last words: {lines[-1]}" if lines else f"see {path}"
