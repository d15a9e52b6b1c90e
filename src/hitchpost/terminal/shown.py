"""What a terminal has shown, as lines of text: what was overwritten is gone, what was scrolled away or cleared stays.

A spinner is one line. Of a program that takes the whole screen, each screen is there that it cleared or left.
"""

from __future__ import annotations

import codecs
import re
import unicodedata

from hitchpost.terminal.plaintext import escape_turning
from hitchpost.terminal.sequences import Kind, Splitter

TAB = 8
MOST_COLUMNS, MOST_ROWS, MOST_REPEATED = 1000, 1000, 1000
LONGEST_LINE = 100_000
_FLOOD = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f]*")
"""Text with nothing in it but line ends and tabs."""
_NUMBERS = re.compile(r"\x1b\[([?>=<]?)([0-9;]*)([@-~])")
_GRAPHICS = str.maketrans("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")
_JOINERS = "\u200b\u200c\u200d\ufe0e\ufe0f"
_ALTERNATE = ("47", "1047", "1049")


class _Row:
    """``wraps``: its text goes on in the next row. ``told``: as it is, it has been told already."""

    __slots__ = ("cells", "told", "wraps")

    def __init__(self) -> None:
        self.cells: list[str] = []
        self.wraps = self.told = False

    def text(self) -> str:
        return "".join(self.cells)


class Shown:
    """A filter over the log's bytes. Characters and sequences may be cut anywhere between two calls.

    On the normal screen a line end goes to the first column: most programs mean that, whatever their terminal's mode.
    """

    def __init__(self, cols: int = 80, rows: int = 24) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._splitter = Splitter()
        self._out: list[str] = []
        self._begun = 0
        self._last_screen = ""
        self.cols, self.height = cols, rows
        self._main: tuple[list[_Row], int, int] | None = None
        self._rows: list[_Row] = []
        self._x = self._y = 0
        self._clear_state()

    def feed(self, data: bytes) -> str:
        """The lines that are final: nothing that comes can change them any more."""
        text = self._decoder.decode(data)
        if self._is_flood(text):
            self._flood(text)
        else:
            for kind, token in self._splitter.feed(text):
                self._token(kind, token)
        return self._taken()

    def resize(self, cols: int, rows: int) -> str:
        """The terminal has another size from here on. What does not fit any more is scrolled away."""
        self.cols, self.height = min(max(cols, 1), MOST_COLUMNS), min(max(rows, 1), MOST_ROWS)
        self._fit()
        self._top, self._bottom = 0, self.height - 1
        return self._taken()

    def _fit(self) -> None:
        while len(self._rows) > self.height:
            self._scroll_away()
            self._y = max(0, self._y - 1)
        self._move(self._x, self._y)

    def _move(self, x: int, y: int) -> None:
        """A place that was kept may be outside of the screen by now, if that has become smaller."""
        self._x, self._y = min(x, self.cols), min(y, self.height - 1)

    def finish(self) -> str:
        """What is on the screen, when nothing more comes or bytes are missing here."""
        for kind, token in (*self._splitter.feed(self._decoder.decode(b"", final=True)), *self._splitter.finish()):
            self._token(kind, token)
        self._decoder.reset()
        if self._main is not None:
            self._leave_alternate()
        last = max((place for place, row in enumerate(self._rows) if row.text().strip()), default=-1)
        is_ended = self._y > last
        del self._rows[last + 1 :]
        self._tell_rows()
        if not is_ended and self._out and last >= 0:
            self._out[-1] = self._out[-1].removesuffix("\n")
        self._clear_state()
        return self._taken()

    def _taken(self) -> str:
        text, self._out = "".join(self._out), []
        return text

    def _clear_state(self) -> None:
        self._rows = [_Row()]
        self._x = self._y = 0
        self._top, self._bottom = 0, self.height - 1
        self._saved = (0, 0)
        self._wraps_lines = True
        self._graphics = False
        self._last_letter = " "

    # telling ----------------------------------------------------------------------------------------------------

    def _tell(self, row: _Row) -> None:
        if row.told:
            return
        row.told = True
        text = row.text()
        self._begun += len(text)
        if row.wraps and self._begun < LONGEST_LINE:
            self._out.append(escape_turning(text))
        else:
            self._begun = 0
            self._out.append(escape_turning(text.rstrip()) + "\n")

    def _tell_rows(self) -> None:
        for row in self._rows:
            self._tell(row)

    def _tell_screen(self) -> None:
        """A whole screen, unless it is empty, or the one that was told last."""
        lines = [escape_turning(row.text().rstrip()) for row in self._rows]
        text = "\n".join(lines).strip("\n")
        if text and text != self._last_screen:
            self._last_screen = text
            self._out.append(text + "\n")

    def _scroll_away(self) -> None:
        """The first row leaves the screen at its top."""
        row = self._rows.pop(0)
        if self._main is None:
            self._tell(row)

    # floods -----------------------------------------------------------------------------------------------------

    def _is_flood(self, text: str) -> bool:
        """Whether there is nothing but lines, more than fit on the screen: most of them need not be drawn."""
        plain = self._main is None and (self._top, self._bottom) == (0, self.height - 1) and not self._graphics
        at_end = self._y == len(self._rows) - 1 and self._x >= len(self._rows[-1].cells)
        if not (plain and at_end and not self._splitter.has_rest) or text.count("\n") < 2 * self.height:
            return False
        return _FLOOD.fullmatch(text.replace("\r\n", "\n")) is not None

    def _flood(self, text: str) -> None:
        first, *lines = text.replace("\r\n", "\n").split("\n")
        self._write(first.expandtabs(TAB) if not self._x else first.replace("\t", " "))
        self._tell_rows()
        cut = len(lines) - self.height
        told = [escape_turning(line.expandtabs(TAB).rstrip()) for line in lines[:cut]]
        self._out += [f"{line}\n" for line in told]
        self._rows, self._x, self._y = [_Row()], 0, 0
        for number, line in enumerate(lines[cut:]):
            if number:
                self._line_feed()
            self._write(line.expandtabs(TAB))

    # drawing ----------------------------------------------------------------------------------------------------

    def _token(self, kind: Kind, text: str) -> None:
        if kind is Kind.TEXT:
            self._write(text.translate(_GRAPHICS) if self._graphics else text)
        elif kind is Kind.CONTROL:
            self._control(text)
        elif kind is Kind.CSI:
            self._csi(text)
        elif kind is Kind.ESCAPE:
            self._escape(text)

    def _row(self) -> _Row:
        while self._y >= len(self._rows):
            self._rows.append(_Row())
        return self._rows[self._y]

    def _write(self, text: str) -> None:
        cells = list(text) if text.isascii() else _cells(text)
        if cells and _has_no_width(cells[0][:1]):
            self._join(cells.pop(0))
        if cells:
            self._last_letter = cells[-1] or self._last_letter
        at = 0
        while at < len(cells):
            if self._x >= self.cols:
                if self._wraps_lines:
                    self._row().wraps = True
                    self._line_feed()
                else:  # what does not fit is written over the last column, and only its end stays
                    self._x, at = self.cols - 1, len(cells) - 1
            row = self._row()
            end = at + self.cols - self._x
            # a wide letter does not fit; into one column it never would
            splits = end < len(cells) and cells[end] == "" and self._wraps_lines and self.cols > 1
            part = cells[at : end - splits]
            if len(row.cells) < self._x:
                row.cells += [" "] * (self._x - len(row.cells))
            row.cells[self._x : self._x + len(part)] = part
            row.told = False
            self._x += len(part) + splits
            at += len(part)

    def _join(self, letters: str) -> None:
        """Letters without a width belong to the cell before the cursor."""
        cells = self._row().cells
        if 0 < self._x <= len(cells):
            cells[self._x - 1] += letters

    def _line_feed(self, *, keeps_column: bool = False) -> None:
        if not keeps_column:
            self._x = 0
        if self._y == self._bottom:
            self._scroll_up(1)
        elif self._y < self.height - 1:
            self._y += 1
        self._row()

    def _scroll_up(self, count: int) -> None:
        for _ in range(min(count, self.height)):
            if self._top == 0 and self._rows:
                self._scroll_away()
            elif self._top < len(self._rows):
                del self._rows[self._top]
            if self._bottom < len(self._rows) + 1:
                self._rows.insert(min(self._bottom, len(self._rows)), _Row())

    def _scroll_down(self, count: int) -> None:
        for _ in range(min(count, self.height)):
            if self._bottom < len(self._rows):
                del self._rows[self._bottom]
            self._rows.insert(min(self._top, len(self._rows)), _Row())

    def _control(self, letter: str) -> None:
        if letter in "\n\x0b\x0c":
            self._line_feed(keeps_column=self._main is not None)
        elif letter == "\r":
            self._x = 0
        elif letter == "\b":
            self._x = max(0, min(self._x, self.cols - 1) - 1)
        elif letter == "\t":
            self._x = min(self.cols - 1, (self._x // TAB + 1) * TAB)

    def _escape(self, text: str) -> None:
        if text in ("\x1b(0", "\x1b(B"):
            self._graphics = text.endswith("0")
        elif text == "\x1b7":
            self._saved = (self._x, self._y)
        elif text == "\x1b8":
            self._move(*self._saved)
        elif text in ("\x1bD", "\x1bE"):
            self._line_feed(keeps_column=text.endswith("D"))
        elif text == "\x1bM":
            if self._y == self._top:
                self._scroll_down(1)
            else:
                self._y = max(0, self._y - 1)
        elif text == "\x1bc":
            self._erase_all()
            self._x = self._y = 0

    def _csi(self, text: str) -> None:
        found = None if text[-1] == "m" else _NUMBERS.fullmatch(text)
        if found is None:
            return
        mark, listed, letter = found.groups()
        if mark == "?":
            if letter in "hl":
                self._mode(listed.split(";"), letter == "h")
            return
        if mark:
            return
        numbers = [int(number[:6] or 0) for number in listed.split(";")]
        first, count = numbers[0], max(1, numbers[0])
        match letter:
            case "A" | "F":
                self._y = max(self._top if self._y >= self._top else 0, self._y - count)
                self._x = 0 if letter == "F" else self._x
            case "B" | "E" | "e":
                self._y = min(self._bottom if self._y <= self._bottom else self.height - 1, self._y + count)
                self._x = 0 if letter == "E" else self._x
            case "C" | "a":
                self._x = min(self.cols - 1, self._x + count)
            case "D":
                self._x = max(0, min(self._x, self.cols - 1) - count)
            case "G" | "`":
                self._x = min(self.cols, count) - 1
            case "d":
                self._y = min(self.height, count) - 1
            case "H" | "f":
                self._y = min(self.height, count) - 1
                self._x = min(self.cols, max(1, numbers[1] if len(numbers) > 1 else 1)) - 1
            case "J":
                self._erase_display(first)
            case "K":
                self._erase_line(first)
            case "L" | "M":
                self._shift_lines(letter, min(count, self.height))
            case "P":
                del self._changed().cells[self._x : self._x + count]
            case "@":
                row = self._changed()
                row.cells[self._x : self._x] = [" "] * min(count, self.cols)
                del row.cells[self.cols :]
            case "X":
                row = self._changed()
                end = min(self._x + count, len(row.cells))
                row.cells[self._x : end] = [" "] * max(0, end - self._x)
            case "S":
                self._scroll_up(count)
            case "T":
                self._scroll_down(count)
            case "b":
                self._write(self._last_letter * min(count, MOST_REPEATED))
            case "r":
                bottom = numbers[1] if len(numbers) > 1 and numbers[1] else self.height
                self._top, self._bottom = count - 1, min(bottom, self.height) - 1
                if self._top >= self._bottom:
                    self._top, self._bottom = 0, self.height - 1
                self._x = self._y = 0
            case "s":
                self._saved = (self._x, self._y)
            case "u":
                self._move(*self._saved)

    def _changed(self) -> _Row:
        row = self._row()
        row.told = row.wraps = False
        self._x = min(self._x, self.cols - 1)
        return row

    def _erase_line(self, how: int) -> None:
        row = self._changed()
        if how == 0:
            del row.cells[self._x :]
        elif how == 1:
            end = min(self._x + 1, len(row.cells))
            row.cells[:end] = [" "] * end
        else:
            row.cells.clear()

    def _erase_display(self, how: int) -> None:
        if how == 2 or (how == 0 and (self._x, self._y) == (0, 0)):
            self._erase_all()
        elif how == 0:
            self._erase_line(0)
            del self._rows[self._y + 1 :]
        elif how == 1:
            self._erase_line(1)
            for row in self._rows[: self._y]:
                row.cells.clear()

    def _erase_all(self) -> None:
        """What was shown until now is told, because it is gone from now on."""
        if self._main is not None:
            self._tell_screen()
        else:
            last = max((place for place, row in enumerate(self._rows) if row.text().strip()), default=-1)
            del self._rows[last + 1 :]
            self._tell_rows()
        self._rows = [_Row()]

    def _shift_lines(self, letter: str, count: int) -> None:
        self._row()
        if not self._top <= self._y <= self._bottom:
            return
        self._x = 0
        for _ in range(count):
            if letter == "L":
                if self._bottom < len(self._rows):
                    del self._rows[self._bottom]
                self._rows.insert(self._y, _Row())
            elif self._y < len(self._rows):
                del self._rows[self._y]
                if self._bottom <= len(self._rows):
                    self._rows.insert(self._bottom, _Row())

    def _mode(self, numbers: list[str], is_set: bool) -> None:
        if "7" in numbers:
            self._wraps_lines = is_set
        if any(number in _ALTERNATE for number in numbers):
            if is_set and self._main is not None:
                self._erase_all()
            elif is_set and self._main is None:
                last = max((place for place, row in enumerate(self._rows) if row.text().strip()), default=-1)
                for row in self._rows[: last + 1]:
                    self._tell(row)
                self._main = (self._rows, self._x, self._y)
                self._saved = (0, 0)
                self._rows = [_Row()]
            elif not is_set and self._main is not None:
                self._leave_alternate()
            elif not is_set:
                self._move(*self._saved)

    def _leave_alternate(self) -> None:
        self._tell_screen()
        assert self._main is not None
        self._rows, self._x, self._y = self._main
        self._main = None
        self._fit()
        self._saved = (self._x, self._y)


def _has_no_width(letter: str) -> bool:
    return letter >= "\u0300" and (unicodedata.combining(letter) != 0 or letter in _JOINERS)


def _cells(text: str) -> list[str]:
    """One for each column: a wide letter has an empty one behind it, and what has no width goes to the one before."""
    cells: list[str] = []
    for letter in text:
        if letter < "\u0300":
            cells.append(letter)
        elif _has_no_width(letter):
            if cells:
                cells[-1] += letter
            else:
                cells.append(letter)
        elif unicodedata.east_asian_width(letter) in "WF":
            cells += (letter, "")
        else:
            cells.append(letter)
    return cells
