"""The table of ``hitch ps``, for the command and for the hub. Column by column: thousands of rows in few steps."""

from __future__ import annotations

from hitchpost.model.durations import duration
from hitchpost.store.index import ALL_FIELDS, text_of
from hitchpost.text import COLOURS, padded, side_by_side, visible

HEADER = ("SESSION", "NAME", "DESCRIPTION", "AGENT", "WORKSPACE", "STATUS", "IN STATUS", "TOTAL TIME")
STATUS = HEADER.index("STATUS")
HOUR_S, DAY_S = 3600, 86400
LONGEST_DESCRIPTION = 40


def as_table(lines: list[str], *, colour: bool, now_s: float) -> bytes:
    """The table, ready to be printed. Each session is given by its line, as in the index."""
    fields = "\t".join(lines).split("\t") if lines else []
    parts = [fields[place::ALL_FIELDS] for place in range(ALL_FIELDS)]
    ids, _, _, numbers, names, since, totals, colours, _, *texts = parts
    if "0" in numbers:
        numbers = [id if number == "0" else number for id, number in zip(ids, numbers, strict=True)]
    names, descriptions, agents, places, labels = map(_shown, (names, *texts))
    in_status, totals = _durations(since, now_s), _totals(totals, now_s)
    cells = (numbers, names, _shortened(descriptions), agents, places, labels, in_status, totals)
    columns = [[word, *column] for word, column in zip(HEADER, cells, strict=True)]
    if colour:
        codes = ["", *(COLOURS.get(name, "") for name in colours)]
        columns[STATUS] = [
            f"\x1b[{code}m{cell}\x1b[0m" if code else cell
            for code, cell in zip(codes, padded(columns[STATUS]), strict=True)
        ]
    return ("\n".join(side_by_side(columns, padded_already=(STATUS,) if colour else ())) + "\n").encode()


def _shortened(texts: list[str]) -> list[str]:
    most = LONGEST_DESCRIPTION
    return [text if len(text) <= most else text[: most - 1] + "…" for text in texts]


def _shown(fields: list[str]) -> list[str]:
    """Texts as they can be printed. A field without a backslash is one already."""
    return fields if "\\" not in "".join(fields) else [visible(text_of(field)) for field in fields]


def _totals(totals: list[str], now_s: float) -> list[str]:
    """Those that still grow are worked out now."""
    if "@" not in "".join(totals):
        return totals
    return [duration(now_s - float(total[1:])) if total[0] == "@" else total for total in totals]


def _durations(since: list[str], now: float) -> list[str]:
    """Beyond a day only days and hours are said: thousands of old sessions share few texts."""
    known: dict[float, str] = {}

    def text(seconds: float) -> str:
        found = duration(seconds)
        if seconds >= DAY_S:
            known[seconds // HOUR_S] = found
        return found

    return [known.get((now - began) // HOUR_S) or text(now - began) for began in map(float, since)]
