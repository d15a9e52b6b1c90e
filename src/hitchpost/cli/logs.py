"""``hitch logs``: what a run has written, as text or as it is."""

from __future__ import annotations

import select
import sys

import click

from hitchpost import wire
from hitchpost.cli.common import json_option, print_json, say, session_argument
from hitchpost.errors import KeeperSilent, UsageError
from hitchpost.model.status import lives_on
from hitchpost.ops.sessions.takeover import take_over
from hitchpost.ops.views.find import find, output_of
from hitchpost.ops.views.wait import link_to
from hitchpost.runtimes.link import TIMEOUT_S, Link, NoKeeper, Silent, exit_event
from hitchpost.store.home import open_home, run_folder
from hitchpost.terminal import output
from hitchpost.terminal.plaintext import Plain


@click.command("logs")
@session_argument
@click.option("-f", "--follow", is_flag=True, help="Keep printing until the run ends, or Ctrl-C.")
@click.option("--run", type=int, metavar="N", help="Which run (default: the newest).")
@click.option("--tail", type=click.IntRange(min=0), metavar="LINES", help="Only the last lines.")
@click.option("--raw", is_flag=True, help="The raw bytes, with everything they do to your terminal.")
@json_option
def command(session: str, follow: bool, run: int | None, tail: int | None, raw: bool, as_json: bool) -> None:
    """Print what a session has written, without colours and other control sequences."""
    if as_json and (follow or raw):
        raise UsageError("--json prints one object and cannot be combined with --follow or --raw")
    home = open_home(create=False)
    seen = find(home, session)
    number, folder = output_of(seen, run)
    start = 0 if tail is None else output.tail_offset(folder, tail)
    end = max(output.bounds(folder)[1], output.told_end(folder))
    with output.Reader(folder, start) as reader:
        if as_json:
            print_json({"session": seen.record.id, "run": number, **_gathered(reader, end)})
            return
        printer = Printer(raw=raw)
        try:
            printer.show(reader, end)
            if follow:
                if lives_on(seen.facts) and number == seen.facts.run:
                    take_over(home, seen, "recovery")
                end = _follow(run_folder(seen.folder, number), seen.record.name, reader, printer)
            printer.finish(reader.offset, end)
        except KeyboardInterrupt:
            sys.exit(0)


class Printer:
    """Writes chunks to standard output, and gaps to standard error."""

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
            say(f"[… {output.gap_text(end - offset)} …]")

    @staticmethod
    def _write(data: bytes) -> None:
        sys.stdout.buffer.write(data)


def _gathered(reader: output.Reader, end: int) -> dict[str, object]:
    plain = Plain()
    texts = []
    first: int | None = None
    gaps = []
    while reader.offset < end and (chunk := reader.read()).data:
        first = chunk.offset if first is None else first
        if chunk.lost:
            texts.append(plain.finish())
            gaps.append(output.counted(chunk.lost))
        texts.append(plain.feed(chunk.data))
    texts.append(plain.finish())
    gaps.append(output.counted(max(0, end - reader.offset)))
    end = max(end, reader.offset)
    lost = None if None in gaps else sum(filter(None, gaps))
    return {"first": end if first is None else first, "end": end, "lost": lost, "text": "".join(texts)}


def _follow(run_folder: str, name: str, reader: output.Reader, printer: Printer) -> int:
    """Until the run has ended: its keeper says so, or is gone. Returns the offset where the log ends."""
    while (link := link_to(run_folder, name)) is not None:
        try:
            with link:
                end = _follow_link(link, reader, printer)
        except Silent:
            raise KeeperSilent(name, TIMEOUT_S) from None
        if end is not None:
            printer.show(reader)
            return end
    end = output.told_end(reader.folder)
    printer.show(reader)
    return end


def _follow_link(link: Link, reader: output.Reader, printer: Printer) -> int | None:
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
