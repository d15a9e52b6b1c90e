"""Text that we print ourselves: control characters are made visible, so no name can rewrite the screen."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    T = TypeVar("T")

COLOURS = {"green": "32", "red": "31", "yellow": "33", "blue": "34", "orange": "38;5;208", "violet": "35", "grey": "90"}


def visible(text: str, *, keep_newlines: bool = False) -> str:
    """``text`` with every control, format and surrogate character written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or (keep_newlines and letter == "\n") else _escape(letter) for letter in text
    )


def readable(value: T) -> T:
    """``value`` with what is not UTF-8 as escapes, in its texts, lists and objects alike: JSON cannot carry it."""
    return _readable(value)  # type: ignore[return-value]


def _readable(value: object) -> object:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_readable(key): _readable(item) for key, item in value.items()}
    return [*map(_readable, value)] if isinstance(value, list | tuple) else value


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


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the columns two spaces apart."""
    return side_by_side(list(zip(*rows, strict=True)))


def side_by_side(columns: Sequence[Sequence[str]], padded_already: Sequence[int] = ()) -> list[str]:
    """``table``, of its columns. Formatting whole lines makes no text for each cell, and thousands of lines fast."""
    forms, filled = [], []
    for place, cells in enumerate(columns):
        if place in padded_already:
            form = "%s"
        elif _is_narrow("".join(cells)):
            form = f"%-{max(map(len, cells))}s"
        else:
            form, cells = "%s", padded(cells)
        forms.append(form)
        filled.append(cells)
    return [line.rstrip() for line in map("  ".join(forms).__mod__, zip(*filled, strict=True))]


def padded(cells: Sequence[str]) -> list[str]:
    """The cells of a column, each as wide as the widest."""
    widths = list(map(width, cells))
    size = max(widths)
    return [cell + " " * (size - wide) for cell, wide in zip(cells, widths, strict=True)]
