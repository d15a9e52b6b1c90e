"""Text that we print ourselves: control characters are made visible, so no name can rewrite the screen."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

COLOURS = {"green": "32", "red": "31", "yellow": "33", "blue": "34", "grey": "90"}


def visible(text: str, *, keep_newlines: bool = False) -> str:
    """``text`` with every control, format and surrogate character written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or (keep_newlines and letter == "\n") else _escape(letter) for letter in text
    )


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def painted(text: str, colour: str, *, on: bool) -> str:
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if on and colour in COLOURS else text


def width(text: str) -> int:
    """How many columns ``text`` takes. Wide letters take two, combining ones none."""
    if _is_narrow(text):
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text
    )


def _is_narrow(text: str) -> bool:
    """Whether each letter surely takes one column. The mark of a shortened text does, and is in many."""
    return text.isascii() or text.replace("…", "").isascii()


def table(rows: Sequence[tuple[str, ...]], paint: list[str] | None = None, column: int = 0) -> list[str]:
    """Lines with the columns two spaces apart. ``paint`` are the colour codes of ``column``, one for each row."""
    columns = list(zip(*rows, strict=True))
    is_narrow = [_is_narrow("".join(cells)) for cells in columns]
    widths = [max(map(len if narrow else width, cells)) for cells, narrow in zip(columns, is_narrow, strict=True)]
    if all(is_narrow) and paint is None:
        line = "  ".join([f"%-{size}s" for size in widths[:-1]] + ["%s"])
        if all(columns[-1]):
            return list(map(line.__mod__, rows))
        return [(line % row).rstrip() for row in rows]
    last = len(widths) - 1
    lines = []
    for number, row in enumerate(rows):
        cells = [
            cell if position == last else cell + " " * (widths[position] - width(cell))
            for position, cell in enumerate(row)
        ]
        if paint is not None and paint[number]:
            cells[column] = f"\x1b[{paint[number]}m{cells[column]}\x1b[0m"
        lines.append("  ".join(cells).rstrip())
    return lines
