"""``hitch attach`` to a session of a hub elsewhere. What the terminal needs is the same as for one on this machine."""

from __future__ import annotations

import os
import sys

import click

from hitchpost import settings, wire
from hitchpost.cli.attach import FAILURE, SIGNALLED
from hitchpost.cli.attachment import DETACHED, ENDED, KILLED, Attachment
from hitchpost.cli.common import terminal_size
from hitchpost.cli.keys import Keyboard, detach_keys, in_words
from hitchpost.cli.remote.hub import Found, RemoteHub
from hitchpost.cli.remote.stand_in import StandIn
from hitchpost.cli.terminal import say
from hitchpost.errors import Refused, UsageError
from hitchpost.hub.client import HubRefused
from hitchpost.model.record import ARCHIVED, NOTES
from hitchpost.terminal.emulators import Emulators, NoEmulator
from hitchpost.text import visible


def command(hub: RemoteHub, session: str, read_only: bool) -> None:
    sys.exit(attach_to(hub, hub.find(session), read_only=read_only))


def attach_to(hub: RemoteHub, found: Found, *, read_only: bool, is_new: bool = False) -> int:
    """Enter the session's terminal. Returns the exit code. Raises ``UsageError`` without a terminal, ``Refused``.

    Of a session that ``is_new`` and has ended already, its last screen and its status are shown.
    """
    if not is_new:
        _refuse_what_does_not_run(hub, found)
    if not (os.isatty(0) and os.isatty(1)):
        without = hub.advice(f"hitch logs -f {found.word} follows without one")
        raise UsageError("attach needs a terminal as its input and output", without)
    if os.environ.get(wire.SESSION_MARK) == found.id:
        raise Refused("this terminal is inside that session; attach from another one")
    if is_new and not found.session["live"]:
        if text := hub.get(f"{found.path}/screen")["text"].rstrip():
            click.echo(visible(text, keep_newlines=True))
        return _show_end(hub, found, seen=True)
    keys = detach_keys(settings.load().detach_key, os.environ)
    leaves = f"{in_words(keys)} leaves it running"
    with Emulators() as emulators:
        try:
            emulators.start()  # it takes long to load: it does while the hub is asked
        except NoEmulator:
            pass  # as with every other screen that has none
        with StandIn(hub, found, size=terminal_size(), read_only=read_only) as run:
            say(f"[attached to {found.name}; {leaves}]")
            visit = Attachment(run.link, run.folder, emulators, Keyboard(keys), read_only=read_only, bells=run.sounds)
            visit.title = run.sounds.title = f"{found.name}: {leaves}"
            visit.hint = f"Attached to {found.name}. {leaves}"
            outcome = visit.run()
    if outcome == KILLED:
        return SIGNALLED + visit.signal
    if outcome == DETACHED:
        back = hub.advice(f"hitch attach {found.word} comes back")
        say(f"[detached from {found.name}; {back}]")
        return 0
    return _show_end(hub, found, seen=outcome == ENDED)


def _refuse_what_does_not_run(hub: RemoteHub, found: Found) -> None:
    session = found.session
    if session["live"]:
        return
    note = NOTES.get(session["record"], "")
    output_in = "" if session["record"] == ARCHIVED else hub.advice(f"hitch logs {found.word} shows its output, ")
    what = f"{found.name} is not running: {session['label']}{f' ({note})' if note else ''}"
    raise Refused(what, output_in + found.way_on)


def _show_end(hub: RemoteHub, found: Found, *, seen: bool) -> int:
    """The run has ended (``seen``), or the hub has no more to say of it."""
    try:
        now = hub.now(found)
    except HubRefused as refused:
        if refused.status != 404:
            raise
        say(f"[{found.name} was removed]")
        return FAILURE
    if not seen and now["live"] and now["run"] == found.session["run"]:
        back = hub.advice(f"hitch attach {found.word} comes back")
        say(f"[lost the connection to {found.name}, which is still running; {back}]")
        return FAILURE
    say(f"[{found.name}: {now['label']}]")
    end = now["exit"]
    return 0 if end is not None and (end["code"] is not None or end["signal"] is not None) else FAILURE
