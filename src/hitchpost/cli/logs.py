"""``hitch logs``: what a run has shown, as text, or what it has written, as it is."""

from __future__ import annotations

import re
import select
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import click

from hitchpost import wire
from hitchpost.cli.common import complete_sessions, json_option, print_json, say
from hitchpost.errors import FAILURES, HitchpostError, KeeperSilent, NoSuchRun, UsageError
from hitchpost.model.status import lives_on
from hitchpost.ops.sessions.takeover import take_over
from hitchpost.ops.views.find import find, output_of
from hitchpost.ops.views.wait import link_to
from hitchpost.runtimes.link import TIMEOUT_S, Link, NoKeeper, Silent, exit_event
from hitchpost.store import records
from hitchpost.store.home import open_home, run_folder
from hitchpost.terminal import output
from hitchpost.terminal.plaintext import Plain
from hitchpost.terminal.shown_output import last_lines, shown_pieces
from hitchpost.text import visible

ONE_LINE_S = 2.0


class NoMatch(HitchpostError):
    """Raised when no line matches what is looked for."""

    def __init__(self) -> None:
        super().__init__("no line matches")


@click.command("logs")
@click.argument("session", required=False, shell_complete=complete_sessions)
@click.option("-f", "--follow", is_flag=True, help="Keep printing what comes until the run ends, or Ctrl-C.")
@click.option("--run", type=int, metavar="N", help="Which run (default: the newest).")
@click.option(
    "--tail", type=click.IntRange(min=0), metavar="LINES", help="Only the last lines that were shown, or match."
)
@click.option("--raw", is_flag=True, help="The raw bytes, with everything they do to your terminal.")
@click.option(
    "--grep", "pattern", metavar="PATTERN", help="Print lines that match a regular expression, of SESSION or of all."
)
@json_option
def command(
    session: str | None,
    follow: bool,
    run: int | None,
    tail: int | None,
    raw: bool,
    pattern: str | None,
    as_json: bool,
) -> None:
    """Print what a session has shown, as text: what was overwritten, such as a spinner, is there once.

    Of a program that takes the whole screen, the screens are printed that it cleared or left.
    """
    check(session, follow, tail, raw, pattern, as_json)
    home = open_home(create=False)
    if pattern is not None:
        grep(pattern, _outputs(home, session, run), tail)
        return
    seen = find(home, session or "")
    number, folder = output_of(seen, run)
    end = max(output.bounds(folder)[1], output.told_end(folder))
    if as_json:
        print_json({"session": seen.record.id, "run": number, **gathered(folder, end, tail)})
        return

    def followed(reader: output.Reader, printer: Printer) -> int:
        if lives_on(seen.facts) and number == seen.facts.run:
            take_over(home, seen, "recovery")
        return _follow(run_folder(seen.folder, number), seen.record.name, reader, printer)

    show(folder, end, tail=tail, raw=raw, follow=followed if follow else None)


def check(session: str | None, follow: bool, tail: int | None, raw: bool, pattern: str | None, as_json: bool) -> None:
    """Raises ``UsageError`` for options that do not fit together."""
    if as_json and (follow or raw):
        raise UsageError("--json prints one object and cannot be combined with --follow or --raw")
    if pattern is not None and (follow or raw or as_json):
        raise UsageError("--grep cannot be combined with --follow, --raw or --json")
    if pattern is None and session is None:
        raise UsageError("which session? name one, or use --grep PATTERN to look in all of them")


def show(folder: str, end: int, *, tail: int | None, raw: bool, follow: Follow | None) -> None:
    """Print what the log has up to ``end``; then, with ``follow``, what comes until the run's end."""
    start = output.tail_offset(folder, tail) if raw and tail is not None else 0
    with output.Reader(folder, start) as reader:
        printer = Printer(raw=raw)
        try:
            if raw:
                printer.show(reader, end)
            else:
                reader.offset = max(reader.offset, _print_shown(folder, end, tail))
            if follow is not None:
                end = follow(reader, printer)
            printer.finish(reader.offset, end)
        except KeyboardInterrupt:
            sys.exit(0)


class Printer:
    """Writes what comes to standard output, and gaps to standard error."""

    def __init__(self, *, raw: bool) -> None:
        self._plain = None if raw else Plain()

    def show(self, reader: output.Reader, end: int | None = None) -> None:
        """Everything that is there; no further than ``end``, when an end is given that a flood could outrun."""
        while end is None or reader.offset < end:
            chunk = reader.read()
            if chunk.lost:
                self.finish(0, chunk.lost)
            if not chunk.data:
                return
            self._write(chunk.data if self._plain is None else self._plain.feed(chunk.data).encode())
            sys.stdout.buffer.flush()

    def finish(self, offset: int, end: int) -> None:
        """Nothing comes any more before the offset ``end``: what is missing there is lost."""
        if self._plain is not None:
            self._write(self._plain.finish().encode())
        sys.stdout.buffer.flush()
        if offset < end:
            _tell_gap(end - offset)

    @staticmethod
    def _write(data: bytes) -> None:
        sys.stdout.buffer.write(data)


Follow = Callable[[output.Reader, Printer], int]
"""Prints what comes, until the run has ended; the offset where its log ends."""


def _tell_gap(lost: int) -> None:
    say(f"[… {output.gap_text(lost)} …]")


def _print_shown(folder: str, end: int, tail: int | None) -> int:
    """Returns the offset that was reached."""
    if tail is not None:
        lines, offset = last_lines(folder, end, tail)
        sys.stdout.buffer.write("".join(lines).encode())
        return offset
    offset = 0
    for piece in shown_pieces(folder, end):
        offset = piece.offset
        if piece.lost:
            sys.stdout.buffer.flush()
            _tell_gap(piece.lost)
        sys.stdout.buffer.write(piece.text.encode())
    sys.stdout.buffer.flush()
    return offset


def gathered(folder: str, end: int, tail: int | None) -> dict[str, object]:
    first = output.bounds(folder)[0]
    texts: list[str] = []
    gaps: list[int | None] = []
    offset = 0
    for piece in shown_pieces(folder, end):
        offset = piece.offset
        texts.append(piece.text)
        gaps.append(output.counted(piece.lost))
    gaps.append(output.counted(max(0, end - offset)))
    end = max(end, offset)
    missing = None if None in gaps else sum(filter(None, gaps))
    text = "".join(texts)
    if tail is not None:
        text = "".join(text.splitlines(keepends=True)[-tail:]) if tail else ""
    return {"first": first, "end": end, "lost": missing, "text": text}


def grep(pattern: str, outputs: Iterable[tuple[str, str]], tail: int | None) -> None:
    """Print what matches, with the name of its session, of each run the last ``tail`` lines. Raises ``NoMatch``.

    ``outputs`` are the names of sessions, and the folders of their runs' output.
    """
    try:
        wanted = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{visible(pattern)!r} is no regular expression: {error}") from None
    found = False
    with Patience(visible(pattern)) as patience:
        for name, folder in outputs:
            matching = (line for line in _lines(folder) if patience.search(wanted, line))
            for line in matching if tail is None else deque(matching, tail):
                found = True
                sys.stdout.buffer.write(f"{name}: {line}\n".encode())
            sys.stdout.buffer.flush()
    if not found:
        raise NoMatch


def _outputs(home: str, session: str | None, run: int | None) -> Iterator[tuple[str, str]]:
    """The name and the output's folder of each run that is looked at, the oldest first."""
    sessions = records.ids(home) if session is None else [find(home, session).record.id]
    for session_id in sessions:
        try:
            seen = find(home, session_id)
        except FAILURES:
            continue  # it was removed meanwhile, or cannot be read
        for number in range(1, seen.facts.run + 1) if run is None else [run]:
            try:
                yield visible(seen.record.name), output_of(seen, number)[1]
            except NoSuchRun:
                if session is not None and run is not None:
                    raise


def _lines(folder: str) -> Iterator[str]:
    rest = ""
    for piece in shown_pieces(folder, output.bounds(folder)[1]):
        *whole, rest = (rest + piece.text).split("\n")
        yield from whole
    if rest:
        yield rest


class Patience:
    """Some patterns take ages on some lines. ``search`` gives up, with ``UsageError``, after seconds of one line."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._line = self._seen = 0

    def __enter__(self) -> Patience:
        self._before = signal.signal(signal.SIGPROF, self._tick)
        signal.setitimer(signal.ITIMER_PROF, ONE_LINE_S, ONE_LINE_S)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)

    def search(self, pattern: re.Pattern[str], line: str) -> bool:
        self._line += 1
        found = pattern.search(line) is not None
        self._line += 1
        return found

    def _tick(self, *_: object) -> None:
        """An odd number: a search goes on. The same one as the last time: for too long."""
        if self._line % 2 and self._line == self._seen:
            raise UsageError(f"{self._pattern!r} takes more than {ONE_LINE_S:g} s on one line; use a simpler pattern")
        self._seen = self._line


def _follow(run_folder: str, name: str, reader: output.Reader, printer: Printer) -> int:
    """Until the run has ended: its keeper says so, or is gone. Returns the offset where the log ends."""
    while (link := link_to(run_folder, name)) is not None:
        try:
            with link:
                end = follow_link(link, reader, printer)
        except Silent:
            raise KeeperSilent(name, TIMEOUT_S) from None
        if end is not None:
            printer.show(reader)
            return end
    end = output.told_end(reader.folder)
    printer.show(reader)
    return end


def follow_link(link: Link, reader: output.Reader, printer: Printer) -> int | None:
    """Until the keeper tells of the end: the offset where the log ends; None when it has dropped us."""
    # the log can reach further than anybody can read: a gap at its end must not be asked about again and again
    reached = 0
    while not link.closed:
        printer.show(reader)
        reached = max(reached, reader.offset)
        try:
            link.follow(reached)
        except NoKeeper:
            pass  # its last words can be there all the same
        frames = _next_frames(link)
        for kind, payload in frames:
            if kind == wire.POKE:
                reached = max(reached, int.from_bytes(payload, "big"))
        if event := exit_event(frames):
            return int(event["end"])
    return None


def _next_frames(link: Link) -> list[tuple[bytes, bytes]]:
    """Wait for the keeper. A reader of our output that goes away meanwhile is noticed without writing to it."""
    if frames := link.frames(0):
        return frames
    ready = select.poll()
    ready.register(link.fileno(), select.POLLIN)
    ready.register(sys.stdout.fileno(), 0)
    if any(fd == sys.stdout.fileno() for fd, _ in ready.poll()):
        raise BrokenPipeError
    return link.frames(0)
