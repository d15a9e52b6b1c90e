"""``hitch ps``: the table of ADR 31. Standard library only: it must answer like a shell builtin."""

from __future__ import annotations

import os
import sys

from hitchpost.cli.text import COLOURS, table, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from hitchpost.ops.listing import Row

HEADER = ["SESSION", "NAME", "DESCRIPTION", "AGENT", "WORKSPACE", "STATUS", "IN STATUS", "TOTAL TIME"]
STATUS_COLUMN = 5
HOUR_S, DAY_S = 3600, 86400
LONGEST_DESCRIPTION = 40
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
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


def as_json(everything: bool) -> str:
    """A list, one session on each line."""
    from hitchpost.ops.listing import listing
    from hitchpost.state.home import open_home

    rows = listing(open_home(create=False), everything=everything)
    return "[\n" + ",\n".join([row.text for row in rows]) + "\n]\n" if rows else "[]\n"


def as_table(everything: bool, *, colour: bool) -> str:
    from hitchpost.ops.listing import listing
    from hitchpost.state.home import open_home

    rows = listing(open_home(create=False), everything=everything)
    return "\n".join(as_lines(rows, colour=colour)) + "\n"


def as_lines(rows: list[Row], *, colour: bool) -> list[str]:
    """The table, its header first."""
    from hitchpost.model.durations import duration

    days: dict[int, str] = {}  # beyond a day only days and hours are said: thousands of old sessions share few texts
    lines: list[Sequence[str]] = [HEADER]
    for row in rows:
        number, name, description, agent, place, label = row.cells if row.is_plain else map(visible, row.cells)
        if len(description) > LONGEST_DESCRIPTION:
            description = shortened(description)
        in_status_s = row.in_status_s
        if in_status_s < DAY_S:
            in_status = duration(in_status_s)
        elif (hours := int(in_status_s) // HOUR_S) in days:
            in_status = days[hours]
        else:
            in_status = days[hours] = duration(in_status_s)
        lines.append((number, name, description, agent, place, label, in_status, row.total))
    paint = ["", *(COLOURS.get(row.colour, "") for row in rows)] if colour else None
    return table(lines, paint, STATUS_COLUMN)


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_DESCRIPTION else text[: LONGEST_DESCRIPTION - 1] + "…"


def __getattr__(name: str) -> object:
    """The click command, made only when help or an error needs it."""
    if name == "command":
        from hitchpost.cli.ps_help import command

        return command
    raise AttributeError(name)
