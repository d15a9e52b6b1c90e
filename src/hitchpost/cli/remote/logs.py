"""``hitch logs`` of a hub elsewhere: the log is copied, and read here as any other."""

from __future__ import annotations

from collections.abc import Iterator

from hitchpost.cli.common import print_json
from hitchpost.cli.logs import Printer, check, follow_link, gathered, grep, show
from hitchpost.cli.remote.copies import OutputCopy
from hitchpost.cli.remote.hub import Found, RemoteHub
from hitchpost.cli.remote.stand_in import StandIn
from hitchpost.errors import FAILURES
from hitchpost.hub.client import HubRefused
from hitchpost.model import run as runs
from hitchpost.terminal import output
from hitchpost.terminal.shown_output import TAIL_BYTES, last_lines
from hitchpost.text import visible


def command(
    hub: RemoteHub,
    session: str | None,
    follow: bool,
    run: int | None,
    tail: int | None,
    raw: bool,
    pattern: str | None,
    as_json: bool,
) -> None:
    check(session, follow, tail, raw, pattern, as_json)
    if pattern is not None:
        grep(pattern, _outputs(hub, session, run), tail)
        return
    found = hub.find(session or "")
    with OutputCopy(hub, found, run) as copy:
        if tail is None or as_json:
            copy.fetch()
        else:
            _fetch_end(copy, tail, raw=raw)
        end = max(copy.end, copy.told_end)
        if as_json:
            print_json({"session": found.id, "run": copy.run, **gathered(copy.folder, end, tail)})
            return
        is_live = copy.run == found.session["run"] and found.session["state"] not in runs.TERMINAL

        def followed(reader: output.Reader, printer: Printer) -> int:
            with StandIn(hub, found, size=(80, 24), read_only=True, start=copy.end, folder=copy.folder) as stand_in:
                reached = follow_link(stand_in.link, reader, printer)
            printer.show(reader)
            return reader.offset if reached is None else reached

        show(copy.folder, end, tail=tail, raw=raw, follow=followed if follow and is_live else None)


def _fetch_end(copy: OutputCopy, tail: int, *, raw: bool) -> None:
    """As much of the end as the last lines need: of a long log a little, seldom all of it."""
    start = max(copy.first, copy.end - TAIL_BYTES)
    copy.fetch(start)
    if start == copy.first:
        return
    if raw:
        has_all = output.tail_offset(copy.folder, tail) > start
    else:
        has_all = len(last_lines(copy.folder, copy.end, tail)[0]) >= tail
    if not has_all:
        copy.fetch()


def _outputs(hub: RemoteHub, session: str | None, run: int | None) -> Iterator[tuple[str, str]]:
    """The name and the output's folder of each run that is looked at, the oldest first."""
    rows = hub.get("/api/sessions", all=True) if session is None else [hub.find(session).session]
    for row in sorted(rows, key=lambda row: str(row["id"])):
        found = Found(row, row["id"], "", [])
        for number in range(1, row["run"] + 1) if run is None else [run]:
            try:
                with OutputCopy(hub, found, number) as copy:
                    copy.fetch()
                    yield visible(row["name"]), copy.folder
            except HubRefused:
                if session is not None and run is not None:
                    raise
            except FAILURES:
                if session is not None:
                    raise
