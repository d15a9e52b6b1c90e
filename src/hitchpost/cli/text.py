"""Text that we print ourselves: control characters are made visible, so no name can rewrite the screen."""

from __future__ import annotations

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
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text
    )


def table(rows: list[list[str]], paint: list[str] | None = None, column: int = 0) -> list[str]:
    """Lines with the columns two spaces apart. ``paint`` are the colour codes of ``column``, one for each row."""
    widths = [max(map(width, cells)) for cells in zip(*rows, strict=True)]
    lines = []
    last = len(widths) - 1
    for number, row in enumerate(rows):
        cells = []
        for position, cell in enumerate(row):
            padded = cell if position == last else cell + " " * (widths[position] - width(cell))
            if paint is not None and position == column and paint[number]:
                padded = f"\x1b[{paint[number]}m{padded}\x1b[0m"
            cells.append(padded)
        lines.append("  ".join(cells).rstrip())
    return lines
