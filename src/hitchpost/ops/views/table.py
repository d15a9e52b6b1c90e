"""The table of ``hitch ps``, for the command and for the hub. Column by column: thousands of rows in few steps."""

from __future__ import annotations

from hitchpost.model.durations import duration
from hitchpost.store.index import ALL_FIELDS, text_of
from hitchpost.text import COLOURS, padded, side_by_side, visible
from hitchpost.text import width as text_width

HEADER = (
    *("SESSION", "NAME", "OWNER", "DESCRIPTION", "AGENT", "NODE"),
    *("WORKSPACE", "STATUS", "IN STATUS", "TOTAL TIME"),
)
STATUS, NODE, OWNER = "STATUS", "NODE", "OWNER"
HOUR_S, DAY_S = 3600, 86400
LONGEST_DESCRIPTION = 40
APART = 2
SHORTENED = {"DESCRIPTION": 12, "NAME": 10, "WORKSPACE": 10, NODE: 10, OWNER: 10}
"""What is cut in a narrow terminal, and the width that each keeps."""
DROPPED = ("DESCRIPTION", "TOTAL TIME", "WORKSPACE", "AGENT", "IN STATUS", NODE, OWNER)
"""What is left out where that is not enough, in this order. The number, the name and the status always stay."""


def as_table(lines: list[str], *, colour: bool, now_s: float, width: int = 0) -> bytes:
    """The table, ready to be printed. Each session is given by its line, as in the index.

    It is made to fit ``width`` columns of a terminal, as far as the status allows; 0 for all of it.
    """
    fields = "\t".join(lines).split("\t") if lines else []
    parts = [fields[place::ALL_FIELDS] for place in range(ALL_FIELDS)]
    ids, _, _, numbers, names, owners, since, totals, colours, _, *texts = parts
    if "0" in numbers:
        numbers = [id if number == "0" else number for id, number in zip(ids, numbers, strict=True)]
    names, owners, descriptions, agents, nodes, places, labels = map(_shown, (names, owners, *texts))
    in_status, totals = _durations(since, now_s), _totals(totals, now_s)
    cells = (numbers, names, owners, _shortened(descriptions), agents, nodes, places, labels, in_status, totals)
    columns = {word: [word, *column] for word, column in zip(HEADER, cells, strict=True)}
    if not any(nodes):
        del columns[NODE]
    if len(set(owners)) < 2:
        del columns[OWNER]
    if width:
        columns = _fitting(columns, width)
    if colour:
        codes = ["", *(COLOURS.get(name, "") for name in colours)]
        columns[STATUS] = [
            f"\x1b[{code}m{cell}\x1b[0m" if code else cell
            for code, cell in zip(codes, padded(columns[STATUS]), strict=True)
        ]
    painted = (list(columns).index(STATUS),) if colour else ()
    return ("\n".join(side_by_side(list(columns.values()), padded_already=painted)) + "\n").encode()


def _fitting(columns: dict[str, list[str]], width: int) -> dict[str, list[str]]:
    """First what is empty goes, then long texts are cut, then whole columns go."""
    wide = {word: max(map(text_width, cells)) for word, cells in columns.items()}

    def excess() -> int:
        return sum(wide.values()) + APART * (len(wide) - 1) - width

    if excess() > 0 and not any(columns["DESCRIPTION"][1:]):
        del wide["DESCRIPTION"]
    for word, least in SHORTENED.items():
        if word in wide and excess() > 0:
            wide[word] = max(min(least, wide[word]), wide[word] - excess())
    for word in DROPPED:
        if word in wide and excess() > 0:
            del wide[word]
    return {word: _shortened(columns[word], most) for word, most in wide.items()}


def _shortened(texts: list[str], most: int = LONGEST_DESCRIPTION) -> list[str]:
    return [text if text_width(text) <= most else _cut(text, most - 1) + "…" for text in texts]


def _cut(text: str, most: int) -> str:
    while text_width(text) > most:
        text = text[:-1]
    return text


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
