"""``hitch attach``."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import termios
import time
from datetime import UTC, datetime

import click

from hitchpost import settings, wire
from hitchpost.cli import stale
from hitchpost.cli.attachment import DETACHED, ENDED, KILLED, Attachment
from hitchpost.cli.bells import Bells
from hitchpost.cli.common import session_argument, terminal_size
from hitchpost.cli.keys import Keyboard, detach_keys, in_words
from hitchpost.cli.terminal import say
from hitchpost.errors import FAILURES, KeeperSilent, NoSuchSession, Refused, UsageError
from hitchpost.model import run as runs
from hitchpost.model.record import ARCHIVED
from hitchpost.model.status import is_stale, lives_on, status
from hitchpost.ops.sessions.recover import RECOVERY, recover
from hitchpost.ops.sessions.takeover import NotTakenOver
from hitchpost.ops.views.advice import noted, way_on
from hitchpost.ops.views.find import find
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.runtimes import base
from hitchpost.runtimes.link import TIMEOUT_S, Link, NoKeeper, Silent
from hitchpost.store import runfiles
from hitchpost.store.session import Session
from hitchpost.terminal import output
from hitchpost.terminal.emulators import Emulators, NoEmulator
from hitchpost.terminal.screen import Losses, RunScreen
from hitchpost.text import visible

FAILURE, SIGNALLED = 1, 128
RETRY_S = 0.02
REPORT_EVERY_S = 1.0


@click.command("attach")
@session_argument
@click.option("--read-only", is_flag=True, help="Only watch: nothing you type reaches the session.")
def command(session: str, read_only: bool) -> None:
    """Enter a session's terminal. Ctrl-B D leaves it running; Ctrl-B twice types one Ctrl-B.

    Inside tmux, Ctrl-\\ twice leaves it. The setting detach_key changes these keys. The session takes the size of the
    terminal that was typed in last.
    """
    from hitchpost.store.home import open_home

    home = open_home()
    with Emulators() as emulators:
        sys.exit(_enter(home, find(home, session), emulators, read_only))


def _enter(home: str, seen: Observation, emulators: Emulators, read_only: bool) -> int:
    _load_for(seen, emulators)
    seen = recover(home, seen.record.id, actor=RECOVERY)
    if _own_client(seen, read_only) is not None:
        return attach_to(home, seen.record.id, emulators, read_only)
    if is_stale(seen.facts):
        if not stale.ask(home, seen):
            return 0
        seen = recover(home, seen.record.id, actor=RECOVERY)
    if lives_on(seen.facts):
        raise NotTakenOver(seen.record)
    if seen.facts.keeper_alive is False or seen.facts.state == runs.CREATED:
        output_in = "" if seen.record.record == ARCHIVED else f"hitch logs {seen.record.word} shows its output, "
        raise Refused(
            f"{seen.record.name} is not running: {_label(seen)}{noted(seen.record)}", output_in + way_on(seen)
        )
    return attach_to(home, seen.record.id, emulators, read_only)


def _load_for(seen: Observation, emulators: Emulators) -> None:
    """An emulator takes long to load: it does while the rest is looked at."""
    if not base.load(seen.record.runtime).has_own_screen and os.isatty(0):
        try:
            emulators.start()
        except NoEmulator:
            return  # as with every other screen that has none


def attach_to(home: str, session_id: str, emulators: Emulators, read_only: bool = False) -> int:
    """Enter the terminal of a session that runs, or that ran a moment ago: then its last screen and status are shown.

    Returns the exit code. Raises ``UsageError`` without a terminal, ``KeeperSilent`` when the keeper does not answer.
    """
    if not (os.isatty(0) and os.isatty(1)):
        raise UsageError(
            "attach needs a terminal as its input and output",
            f"hitch logs -f {observe(home, session_id).record.word} follows without one",
        )
    if os.environ.get(wire.SESSION_MARK) == session_id:
        raise Refused("this terminal is inside that session; attach from another one")
    seen = recover(home, session_id, actor=RECOVERY)
    if (client := _own_client(seen, read_only)) is not None:
        return _run_client(home, seen, client)
    keys = detach_keys(settings.load().detach_key, os.environ)
    link = _connect(home, seen, read_only)
    if link is None:
        return _show_end(recover(home, session_id, actor=RECOVERY), emulators)
    name = seen.record.name
    leaves = f"{in_words(keys)} leaves it running"
    say(f"[attached to {name}; {leaves}]")
    _mark_seen(seen)
    with link:
        folder = os.path.join(seen.run_folder, wire.OUTPUT)
        bells = Bells(home, session_id)
        visit = Attachment(link, folder, emulators, Keyboard(keys), read_only=read_only, bells=bells)
        visit.title = f"{name}: {leaves}"
        visit.hint = f"Attached to {name}. {leaves}"
        visit.on_report = lambda: _mark_seen(seen)
        try:
            outcome = visit.run()
        finally:
            bells.close()
            _mark_seen(seen)
    if outcome == DETACHED:
        say(f"[detached from {name}; hitch attach {seen.record.word} comes back]")
        return 0
    if outcome == KILLED:
        return SIGNALLED + visit.signal
    if outcome == ENDED and visit.event is not None:
        state, reason = visit.event["state"], visit.event["reason"]
        words = _label(recover(home, session_id, actor=RECOVERY)) if seen.facts.has_sandbox else _words(state, reason)
        say(f"[{name}: {words}]")
        return 0
    return _show_loss(home, seen)


def _mark_seen(seen: Observation) -> None:
    """Somebody has the session before their eyes. Not being able to write that down is no reason to see less."""
    try:
        Session(seen.folder, actor="cli").mark_seen()
    except FAILURES:
        return


def _own_client(seen: Observation, read_only: bool) -> base.OwnClient | None:
    """The runtime's own way in, such as tmux's client. Raises ``Refused`` when it does not answer."""
    try:
        return base.load(seen.record.runtime).attach_command(seen.folder, seen.facts.run, read_only)
    except Refused as silent:
        raise Refused(f"cannot enter {seen.record.name}: {silent}") from None


def _run_client(home: str, seen: Observation, client: base.OwnClient) -> int:
    """The runtime's own client, in this terminal."""
    name = seen.record.name
    before = termios.tcgetattr(0)
    twice = ", pressed twice inside your own tmux" if os.environ.get("TMUX") else ""
    say(f"[attached to {name}; its tmux's prefix (Ctrl-B, unless you changed it{twice}), then D, leaves it running]")
    try:
        code = _watched(seen, subprocess.Popen(client.argv, cwd=seen.folder, env=client.env))
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
    try:
        now = recover(home, seen.record.id, actor=RECOVERY)
    except NoSuchSession:
        say(f"[{name} was removed]")
        return FAILURE
    if now.facts.keeper_alive is True:
        say(f"[detached from {name}; hitch attach {seen.record.word} comes back]")
    else:
        say(f"[{name}: {_label(now)}]")
    return FAILURE if code else 0


def _watched(seen: Observation, client: subprocess.Popen[bytes]) -> int:
    """The client's exit code. Meanwhile somebody looks at the session, whatever it reports."""
    over, report = os.pidfd_open(client.pid), None
    try:
        while True:
            now = runfiles.read_report(seen.run_folder)
            if now != report or report is None:
                _mark_seen(seen)
            report = now
            if select.select([over], [], [], REPORT_EVERY_S)[0]:
                return client.wait()
    finally:
        _mark_seen(seen)
        os.close(over)


def _connect(home: str, seen: Observation, read_only: bool) -> Link | None:
    """A connection to the run's keeper; None when the run is over."""
    deadline = time.monotonic() + TIMEOUT_S
    cols, rows = terminal_size()
    while True:
        try:
            return Link.connect(seen.run_folder, role="attach", cols=cols, rows=rows, read_only=read_only)
        except Silent:
            raise KeeperSilent(seen.record.name, TIMEOUT_S) from None
        except NoKeeper:
            if recover(home, seen.record.id, actor=RECOVERY).facts.keeper_alive is False:
                return None
            if time.monotonic() > deadline:
                raise KeeperSilent(seen.record.name, TIMEOUT_S) from None
            time.sleep(RETRY_S)


def _show_end(seen: Observation, emulators: Emulators) -> int:
    folder = os.path.join(seen.run_folder, wire.OUTPUT)
    screen = RunScreen(folder, emulators, Losses())
    screen.advance(output.bounds(folder)[1])
    text = screen.text().rstrip()
    screen.close()
    if text.strip():
        click.echo(visible(text, keep_newlines=True))
    click.echo(f"[{visible(seen.record.name)}: {visible(_label(seen))}]")
    return 0


def _show_loss(home: str, seen: Observation) -> int:
    """The connection ended without a word. Say what is known of the run; its end may have been written down."""
    name = seen.record.name
    try:
        now = recover(home, seen.record.id, actor=RECOVERY)
    except NoSuchSession:
        say(f"[{name} was removed]")
        return FAILURE
    if now.facts.run == seen.facts.run and now.facts.keeper_alive is not False:
        say(f"[lost the connection to {name}, which is still running; hitch attach {seen.record.word} comes back]")
        return FAILURE
    say(f"[{name}: {_label(now)}]")
    seen_end = now.facts.exit is not None and now.facts.exit.error is None
    return 0 if seen_end else FAILURE


def _label(seen: Observation) -> str:
    return status(seen.facts, datetime.now(UTC)).label


def _words(state: str, reason: str) -> str:
    return f"{state}: {reason}" if state in (runs.FAILED, runs.ORPHANED) else state
