"""``hitch replay``: a run as it was seen, in this terminal or as a file for others."""

from __future__ import annotations

import os
import stat
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from signal import SIGHUP, SIGTERM, signal

import click

from hitchpost.cli.common import SECONDS, Number, say, session_argument, terminal_size
from hitchpost.errors import HitchpostError, UsageError
from hitchpost.ops.views.find import find, output_of
from hitchpost.store.home import open_home
from hitchpost.terminal import recording
from hitchpost.terminal.sanitize import Harmless


class FileThere(HitchpostError):
    """Raised when an export would overwrite a file."""

    exit_code = 5

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} already exists; choose another file, or use --force")


@click.command("replay")
@session_argument
@click.option("--run", type=int, metavar="N", help="Which run (default: the newest).")
@click.option("--speed", type=Number(0.00001, 1000), default=1.0, show_default=True, metavar="X")
@click.option("--idle-limit", "idle_s", type=SECONDS, metavar="SECONDS", help="Shorten longer pauses to this.")
@click.option(
    "--from", "from_s", type=SECONDS, default=0.0, metavar="SECONDS", help="Start this far into the recording."
)
@click.option("--export", "path", type=click.Path(), metavar="FILE", help="Write asciicast v3 to FILE (- is stdout).")
@click.option("--force", is_flag=True, help="With --export: overwrite FILE.")
def command(
    session: str, run: int | None, speed: float, idle_s: float | None, from_s: float, path: str | None, force: bool
) -> None:
    """Play what a session has shown, at its original pace, or export it. Ctrl-C stops.

    Playing only draws: queries to the terminal, clipboard access and the like are left out. An export has everything.
    """
    check(path, force)
    seen = find(open_home(create=False), session)
    number, folder = output_of(seen, run)
    show(folder, seen.record.name, number, speed=speed, idle_s=idle_s, from_s=from_s, path=path, force=force)


def check(path: str | None, force: bool) -> None:
    if force and path is None:
        raise UsageError("--force needs --export")


def show(
    folder: str,
    name: str,
    run: int,
    *,
    speed: float,
    idle_s: float | None,
    from_s: float,
    path: str | None,
    force: bool,
) -> None:
    """Play the recording in ``folder``, or export it to ``path``."""
    begin = recording.beginning(folder)
    if begin is None:
        raise HitchpostError(f"run {run} of {name} has no recording")
    if path is not None:
        export(recording.asciicast(folder, name), path, force=force)
        return
    cols, rows = terminal_size()
    if sys.stdout.isatty() and (cols < begin.cols or rows < begin.rows):
        say(f"the session's terminal was {begin.cols}x{begin.rows}, this one is {cols}x{rows}")
    harmless = Harmless()
    with _calm_terminal(harmless):
        play(recording.events(folder), begin.at, harmless, _write, speed=speed, idle_s=idle_s, from_s=from_s)


def play(
    events: Iterator[recording.Event],
    begin: float,
    harmless: Harmless,
    write: Callable[[str], None],
    *,
    speed: float = 1.0,
    idle_s: float | None = None,
    from_s: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Write the events when their time has come. Those before ``from_s`` come at once: they make the screen."""
    before = begin + from_s
    due = clock()
    for event in events:
        gap_s = max(0.0, event.at - before)
        before = max(before, event.at)
        due += (gap_s if idle_s is None else min(gap_s, idle_s)) / speed
        if event.code == recording.OUTPUT:
            if (left_s := due - clock()) > 0:
                pause(left_s)
            write(harmless.feed(event.data))


def export(lines: Iterator[str], path: str, *, force: bool) -> None:
    if path == "-":
        for line in lines:
            _write(line)
        return
    if not force:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            raise FileThere(path) from None
        _fill(fd, lines, path)
    elif os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines)
    else:
        temp = f"{path}.{os.getpid()}.tmp"
        _fill(os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), lines, temp)
        os.replace(temp, path)


def _fill(fd: int, lines: Iterator[str], path: str) -> None:
    """Write the whole file, or leave none."""
    try:
        with open(fd, "w", encoding="utf-8") as file:
            file.writelines(lines)
    except BaseException:
        os.unlink(path)
        raise


def _write(text: str) -> None:
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


@contextmanager
def _calm_terminal(harmless: Harmless) -> Iterator[None]:
    """The terminal as a recording needs it: line feeds are only that. Put in order on every way out; Ctrl-C is one."""
    fd = sys.stdout.fileno()
    if not os.isatty(fd):
        try:
            yield
        except KeyboardInterrupt:
            pass
        return
    old = termios.tcgetattr(fd)
    new = [*old]
    new[1] &= ~termios.OPOST
    new[3] &= ~(termios.ECHO | termios.ICANON)
    for number in (SIGTERM, SIGHUP):
        signal(number, lambda number, _: sys.exit(128 + number))
    try:
        termios.tcsetattr(fd, termios.TCSADRAIN, new)
        yield
    except KeyboardInterrupt:
        pass
    finally:
        _write(harmless.restore() + "\r\n")
        termios.tcsetattr(fd, termios.TCSAFLUSH, old)
