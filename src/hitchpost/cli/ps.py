"""``hitch ps``: the table of ADR 31. Standard library only: it must answer like a shell builtin."""

from __future__ import annotations

import os
import sys
import time

from hitchpost.text import COLOURS, table, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.ops.listing import Row

HEADER = ("SESSION", "NAME", "DESCRIPTION", "AGENT", "WORKSPACE", "STATUS", "IN STATUS", "TOTAL TIME")
STATUS_COLUMN = 5
HOUR_S, DAY_S = 3600, 86400
LONGEST_DESCRIPTION = 40
HUB_ANSWERS_S = 1.0
FLAGS = ("--all", "-a", "--json", "--watch", "-w")


def understands(arguments: list[str]) -> bool:
    """Whether the fast path can take these arguments; the others go to click for help and errors."""
    return all(argument in FLAGS for argument in arguments)


def main(arguments: list[str]) -> int:
    import gc

    from hitchpost.errors import HitchpostError

    everything = "--all" in arguments or "-a" in arguments
    try:
        if "--watch" in arguments or "-w" in arguments:
            from hitchpost.cli.watch import watch

            return watch(everything)
        gc.disable()  # this process ends before there is anything to collect
        text = as_json(everything) if "--json" in arguments else as_table(everything, colour=sys.stdout.isatty())
    except HitchpostError as error:
        print(f"hitch: {visible(str(error))}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"hitch: {error.filename or 'the system'}: {os.strerror(error.errno or 0)}", file=sys.stderr)
        return 1
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        pass
    sys.stderr.flush()
    os._exit(0)  # nothing is open: taking thousands of rows apart again would only cost time


def as_json(everything: bool) -> str:
    """A list, one session on each line."""
    from hitchpost.ops.listing import listing
    from hitchpost.state.home import open_home

    home = open_home(create=False)
    told = from_hub(home, f"/api/sessions?all={everything}")
    if told is not None:
        return told.decode()
    rows = listing(home, everything=everything)
    return "[\n" + ",\n".join([row.text for row in rows]) + "\n]\n" if rows else "[]\n"


def as_table(everything: bool, *, colour: bool) -> str:
    from hitchpost.ops.listing import listing
    from hitchpost.state.home import open_home

    home = open_home(create=False)
    rows = rows_from_hub(home, everything)
    if rows is None:
        rows = listing(home, everything=everything)
    return "\n".join(as_lines(rows, colour=colour)) + "\n"


def rows_from_hub(home: str, everything: bool) -> list[Row] | None:
    from hitchpost.ops.listing import Row

    told = from_hub(home, f"/api/sessions/lines?all={everything}")
    if told is None:
        return None
    return [Row(line.split("\t"), None) for line in told.decode("ascii").split("\n") if line]


def from_hub(home: str, path: str) -> bytes | None:
    """The hub's answer, when one is there and answers at once: it knows all of it already."""
    from _socket import AF_UNIX, SOCK_STREAM, socket

    from hitchpost.shortpath import ShortPath

    asked = socket(AF_UNIX, SOCK_STREAM)
    asked.settimeout(HUB_ANSWERS_S)
    try:
        with ShortPath(home, "hub.sock") as short:
            asked.connect(short)
        asked.send(f"GET {path} HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n".encode())
        parts = []
        while part := asked.recv(1 << 20):
            parts.append(part)
    except OSError:
        return None
    finally:
        asked.close()
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    whole = b"\r\ncontent-length: %d\r\n" % len(body) in head.lower() + b"\r\n"
    return body if whole and head.startswith(b"HTTP/1.1 200 ") else None


def as_lines(rows: list[Row], *, colour: bool, now_s: float | None = None) -> list[str]:
    """The table, its header first."""
    from hitchpost.model.durations import duration
    from hitchpost.state.index import COLOUR, text_of

    now = int(time.time() if now_s is None else now_s)
    days: dict[int, str] = {}  # beyond a day only days and hours are said: thousands of old sessions share few texts
    lines: list[tuple[str, ...]] = [HEADER]
    for row in rows:
        session, _, _, number, name, since, total, _, description, agent, place, label = row.fields
        seconds = now - int(since)
        in_status = days.get(seconds // HOUR_S)
        if in_status is None:
            in_status = duration(seconds)
            if seconds >= DAY_S:
                days[seconds // HOUR_S] = in_status
        if number == "0":
            number = session
        if len(description) > LONGEST_DESCRIPTION or "\\" in f"{name}{description}{agent}{place}{label}":
            texts = (name, description, agent, place, label)
            name, description, agent, place, label = (visible(text_of(text)) for text in texts)
            description = shortened(description)
        lines.append((number, name, description, agent, place, label, in_status, total))
    paint = ["", *(COLOURS.get(row.fields[COLOUR], "") for row in rows)] if colour else None
    return table(lines, paint, STATUS_COLUMN)


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_DESCRIPTION else text[: LONGEST_DESCRIPTION - 1] + "…"


def __getattr__(name: str) -> object:
    """The click command, made only when help or an error needs it."""
    if name == "command":
        from hitchpost.cli.ps_help import command

        return command
    raise AttributeError(name)
