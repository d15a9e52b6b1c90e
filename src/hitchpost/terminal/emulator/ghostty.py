"""A screen on libghostty-vt, the emulator of the Ghostty terminal.

It is a native library that reads what agents write: only the processes of this package may load it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from hitchpost.terminal.emulator.library import GhosttyError, Terminal, check, ffi, init_sized, lib
from hitchpost.terminal.sanitize import LINKS

HISTORY_BYTES = 32 << 20
LONGEST_CONTINUATION = 64 * 1024
SKIP_STRING = b"\x1b]99999;"
MODE = re.compile(rb"\x1b\[\??([0-9]+)[hl]")
ALTERNATE_MODES = (1049, 1047, 47)
LEFT_OUT = {b"3", b"40", b"66", b"1048", b"2026", *(str(mode).encode() for mode in ALTERNATE_MODES)}
"""Modes that are set otherwise, that would clear the terminal, or that would freeze it until the stream goes on."""
ENTER_ALTERNATE = b"\x1b[?1049h\x1b[0m\x1b[2J"
CURSOR_SHAPES = {0: 5, 1: 1, 2: 3}
LINK, NO_LINK = b"\x1b]8;;%s\x1b\\", b"\x1b]8;;\x1b\\"
LINK_BEGINS = b"]8;"
OPEN_LINK = re.compile(rb"\x1b\]8;([\w=:.-]*);([^\x00-\x1f\x7f]*)\x1b\\")
LONGEST_LINK = 2048
LINKED_LINES = 1000
MOST_LINK_WORK = 200_000
LINK_WORK = 50
"""To look for links takes time: they are kept in so many lines of the history, and of these and of the screen as far as
the work goes, counted in cells that are looked at. A change from one link to another is as much work as some cells."""
CLUSTERS = 2027
"""The mode in which a letter made of several (👩‍💻, a flag) takes the columns of one. Agents count so without asking
for it, as Ghostty does, and move the cursor by what they have counted."""


class GhosttyScreen:
    can_paint = True

    def __init__(self, cols: int, rows: int, history_lines: int) -> None:
        self._terminal = Terminal(cols, rows, scrollback=history_lines)
        self._fed, self._has_links, self._link_work = b"", False, 0
        self._set("SCROLLBACK_MAX_BYTES", "size_t", HISTORY_BYTES)
        self._set("CONTINUATION_MAX_BYTES", "size_t", LONGEST_CONTINUATION)
        self._set("KITTY_IMAGE_STORAGE_LIMIT", "uint64_t", 0)
        for option in ("MODE_DEFAULT", "MODE"):
            self._set(option, "GhosttyTerminalModeConfig", (CLUSTERS, True))

    @property
    def cols(self) -> int:
        """As the terminal has it: a program may have asked for another number."""
        return int(self._get("cols"))

    @property
    def rows(self) -> int:
        return int(self._get("rows"))

    def feed(self, data: bytes) -> None:
        self._terminal.feed(data)
        self._has_links = self._has_links or LINK_BEGINS in data or LINK_BEGINS in self._fed + data[:2]
        self._fed = data[-2:]

    def resize(self, cols: int, rows: int) -> None:
        self._terminal.resize(cols, rows)

    def close(self) -> None:
        self._terminal.close()

    def on_reply(self, tell: Callable[[bytes], None] | None) -> None:
        self._terminal.on_reply(tell)

    def text(self, *, unwrap: bool = False) -> str:
        whole = self._select((0, 0), (self.cols - 1, self.rows - 1))
        return str(self._terminal._format_sel(whole, unwrap=unwrap))

    def cursor(self) -> tuple[int, int]:
        return self._get("cursor_x"), self._get("cursor_y")

    def alternate(self) -> bool:
        return bool(self._get("active_screen", "GhosttyTerminalScreen") == lib.GHOSTTY_TERMINAL_SCREEN_ALTERNATE)

    def lines(self, left: int, top: int, cols: int, rows: int) -> list[bytes]:
        right, bottom = min(left + cols, self.cols) - 1, min(top + rows, self.rows)
        return [self._format(self._select((left, row), (right, row))) for row in range(top, bottom)]

    def snapshot(self, *, history: bool = True) -> bytes:
        if not self.alternate():
            return self._own_snapshot(history)
        return self._below(history) + ENTER_ALTERNATE + self._own_snapshot(history=False)

    def input_modes(self) -> bytes:
        wanted = {b"1", b"2004"}
        modes = [mode for mode in self._modes() if MODE.fullmatch(mode)[1] in wanted]  # type: ignore[index]
        return b"".join((*modes, self._keypad(), self._extra("keyboard"), self._keyboard_flags()))

    def _own_snapshot(self, history: bool, settings: bool = True) -> bytes:
        """The snapshot of the screen that is shown, on a terminal that shows the same one of its two."""
        parts = []
        self._link_work = MOST_LINK_WORK
        if history and (scrolled := self._get("scrollback_rows", "size_t")):
            # as many line ends as the screen has rows push all of it out of sight, whatever its length
            parts += [*self._past(scrolled), b"\x1b[0m", b"\r\n" * (self._blank_end(scrolled, self.rows) + self.rows)]
        self._link_work = MOST_LINK_WORK
        for row, line in enumerate(self.lines(0, 0, self.cols, self.rows), 1):
            if line:
                parts.append(b"\x1b[%dH%s" % (row, self._with_links(row - 1) or line))
        if not settings:
            return b"".join((*parts, self._place_cursor(), self._extra("style"), self._open_link()))
        parts += [self._title(), self._tab_stops(), *self._modes(), self._extra("scrolling_region"), self._keypad()]
        parts += [self._extra("keyboard"), self._cursor_shape(), self._place_cursor()]
        parts += [self._extra("style"), self._open_link(), self._extra("charsets"), self._keyboard_flags()]
        return b"".join((*parts, self._continuation()))

    def _past(self, scrolled: int) -> Iterator[bytes]:
        """The history, without the blank lines at its end. A line that has links stands between the others."""
        begin, before = 0, b""
        for row in range(max(0, scrolled - LINKED_LINES), scrolled) if self._has_links else ():
            if not (line := self._with_links(row, "screen")):
                continue
            if row > begin:
                yield before + self._format(self._select((0, begin), (self.cols - 1, row - 1), "screen"), unwrap=True)
                before = b"\r\n" * self._blank_end(row, row - begin - 1) + self._line_end(row - 1)
            yield before + line
            begin, before = row + 1, self._line_end(row)
        if begin < scrolled:
            rest = self._format(self._select((0, begin), (self.cols - 1, scrolled - 1), "screen"), unwrap=True)
            yield before + rest if rest else b""

    def _line_end(self, row: int) -> bytes:
        return b"" if self._row_has(lib.GHOSTTY_ROW_DATA_WRAP, row, "screen") else b"\r\n"

    def _row_has(self, what: int, row: int, tag: str) -> bool:
        found, has = ffi.new("GhosttyRow*"), ffi.new("bool*")
        check(lib.ghostty_grid_ref_row(self._terminal.ref(0, row, tag), found), "grid_ref_row")
        check(lib.ghostty_row_get(found[0], what, has), "row_get")
        return bool(has[0])

    def _with_links(self, row: int, tag: str = "active") -> bytes:
        """A line with its links, which the formatter leaves out; empty when it has none."""
        if not self._has_links or not self._row_has(lib.GHOSTTY_ROW_DATA_HYPERLINK, row, tag):
            return b""
        if self._link_work < self.cols * (LINK_WORK + 1):
            return b""
        parts: list[bytes] = []
        places = list(self._link_changes(row, tag))
        self._link_work -= self.cols + len(places) * LINK_WORK
        for (begin, link), (end, _) in zip(places, (*places[1:], (self.cols, b"")), strict=True):
            text = self._format(self._select((begin, row), (end - 1, row), tag))
            parts += [b"\x1b[%dG" % (begin + 1) if begin else b"", LINK % link + text + NO_LINK if link else text]
        return b"".join(parts)

    def _link_changes(self, row: int, tag: str) -> Iterator[tuple[int, bytes]]:
        """From which column on which link holds, or none.

        The last column is empty where a wide letter did not fit. Nothing shows whether it belongs to a link.
        """
        size, buffer = ffi.new("size_t*"), ffi.new("uint8_t[]", LONGEST_LINK)
        cell, last = self._terminal.ref(0, row, tag), None
        end = self.cols - 1
        for cell.x in range(self.cols):
            failed = lib.ghostty_grid_ref_hyperlink_uri(cell, buffer, LONGEST_LINK, size)
            raw = b"" if failed else ffi.unpack(ffi.cast("char*", buffer), size[0])
            if cell.x == end and raw and self._wide_part(cell) == lib.GHOSTTY_CELL_WIDE_SPACER_HEAD:
                raw = b""
            if raw != last:
                yield cell.x, _safe_link(raw)
            last = raw

    def _open_link(self) -> bytes:
        """The link that what is written next belongs to."""
        found = OPEN_LINK.fullmatch(self._extra("hyperlink")) if self._has_links else None
        return found.group() if found is not None and _safe_link(found[2]) else b""

    def _below(self, history: bool) -> bytes:
        """The snapshot of the normal screen, which the alternate one covers; empty when it cannot be had.

        The emulator cannot copy every screen: not in the middle of a very long string, nor some wide letters.
        """
        try:
            below = self._leave_alternate()
        except GhosttyError:
            return b""
        try:
            return below._own_snapshot(history, settings=False)
        finally:
            below.close()

    def _blank_end(self, end: int, most: int) -> int:
        """How many blank lines, which the formatter leaves out, are before a line of the history; at most so many."""
        for count in range(min(end, most)):
            row = end - 1 - count
            if self._format(self._select((0, row), (self.cols - 1, row), "screen")):
                return count
        return min(end, most)

    def _leave_alternate(self) -> GhosttyScreen:
        """A copy of this screen after the program has left the alternate screen."""
        data, size = ffi.new("uint8_t**"), ffi.new("size_t*")
        check(lib.ghostty_snapshot_encode_alloc(self._terminal._t[0], ffi.NULL, data, size), "snapshot_encode")
        decoder = ffi.new("GhosttySnapshotDecoder*")
        copy = GhosttyScreen(self.cols, self.rows, 0)
        try:
            check(lib.ghostty_snapshot_decoder_new_buf(ffi.NULL, decoder, data[0], size[0]), "snapshot_decoder_new")
            try:
                decoded = ffi.new("GhosttyTerminal*")
                check(lib.ghostty_snapshot_decoder_decode(decoder[0], decoded), "snapshot_decode")
            finally:
                lib.ghostty_snapshot_decoder_free(decoder[0])
        finally:
            lib.ghostty_free(ffi.NULL, data[0], size[0])
        copy._adopt(decoded)
        copy._has_links = self._has_links
        # CAN first: the program may be in the middle of a sequence
        copy.feed(b"\x18" + b"".join(b"\x1b[?%dl" % mode for mode in ALTERNATE_MODES if self._terminal.mode(mode)))
        return copy

    def _adopt(self, decoded: Any) -> None:
        import weakref

        self._terminal.close()
        self._terminal._t = decoded
        self._terminal._free = weakref.finalize(self._terminal, lib.ghostty_terminal_free, decoded[0])

    def _modes(self) -> list[bytes]:
        found = [match.group() for match in MODE.finditer(self._extra("modes"))]
        return [mode for mode in found if MODE.fullmatch(mode)[1] not in LEFT_OUT]  # type: ignore[index]

    def _keypad(self) -> bytes:
        return b"\x1b=" if self._terminal.mode(66) else b""

    def _keyboard_flags(self) -> bytes:
        flags = self._get("kitty_keyboard_flags", "uint8_t")
        return b"\x1b[>%du" % flags if flags else b""

    def _title(self) -> bytes:
        title = self._get("title", "GhosttyString")
        text = ffi.buffer(title.ptr, title.len)[:].decode("utf-8", "replace") if title.len else ""
        return f"\x1b]2;{''.join(filter(str.isprintable, text))}\x1b\\".encode() if text else b""

    def _tab_stops(self) -> bytes:
        default = b"\x1b[3g" + b"".join(b"\x1b[%dG\x1bH" % (column + 1) for column in range(8, self.cols, 8))
        found = self._extra("tabstops")
        return b"" if found in (default, default + b"\x1b[H") else found

    def _cursor_shape(self) -> bytes:
        state = ffi.new("GhosttyRenderState*")
        check(lib.ghostty_render_state_new(ffi.NULL, state), "render_state_new")
        try:
            check(lib.ghostty_render_state_update(state[0], self._terminal._t[0]), "render_state_update")
            shape, blinks = ffi.new("GhosttyRenderStateCursorVisualStyle*"), ffi.new("bool*")
            lib.ghostty_render_state_get(state[0], lib.GHOSTTY_RENDER_STATE_DATA_CURSOR_VISUAL_STYLE, shape)
            lib.ghostty_render_state_get(state[0], lib.GHOSTTY_RENDER_STATE_DATA_CURSOR_BLINKING, blinks)
        finally:
            lib.ghostty_render_state_free(state[0])
        number = CURSOR_SHAPES.get(shape[0], 1)
        return b"" if number == 1 else b"\x1b[%d q" % (number if blinks[0] else number + 1)

    def _place_cursor(self) -> bytes:
        column, row = self.cursor()
        left = top = 0
        if self._terminal.mode(6):  # places count from the scrolling region
            region = self._extra("scrolling_region")
            if match := re.search(rb"\[([0-9]+);[0-9]*r", region):
                top = int(match[1]) - 1
            if match := re.search(rb"\[([0-9]+);[0-9]*s", region):
                left = int(match[1]) - 1
        place = b"\x1b[%d;%dH" % (row - top + 1, column - left + 1)
        if not self._get("cursor_pending_wrap", "bool"):
            return place
        # only a letter in the last column makes the next one wrap
        is_tail = self._wide_part(self._terminal.ref(column, row)) == lib.GHOSTTY_CELL_WIDE_SPACER_TAIL
        begin = column - 1 if column and is_tail else column
        letter = self._format(self._select((begin, row), (column, row))) or b" "
        link = next((link for start, link in reversed([*self._links(row)]) if start <= begin), b"")
        return b"\x1b[%d;%dH%s" % (row - top + 1, begin - left + 1, LINK % link + letter + NO_LINK if link else letter)

    def _links(self, row: int) -> Iterator[tuple[int, bytes]]:
        if self._has_links and self._row_has(lib.GHOSTTY_ROW_DATA_HYPERLINK, row, "active"):
            yield from self._link_changes(row, "active")

    def _wide_part(self, place: Any) -> int:
        """Which part of a wide letter a cell holds, if any."""
        cell, wide = ffi.new("GhosttyCell*"), ffi.new("GhosttyCellWide*")
        check(lib.ghostty_grid_ref_cell(place, cell), "grid_ref_cell")
        check(lib.ghostty_cell_get(cell[0], lib.GHOSTTY_CELL_DATA_WIDE, wide), "cell_get")
        return int(wide[0])

    def _continuation(self) -> bytes:
        """The sequence that the stream is in the middle of."""
        if self._get("vt_ground", "bool"):
            return b""
        size, buffer = ffi.new("size_t*"), ffi.new("uint8_t[]", LONGEST_CONTINUATION)
        if lib.ghostty_terminal_continuation_buf(self._terminal._t[0], buffer, LONGEST_CONTINUATION, size):
            return SKIP_STRING  # too long to keep, so it is a string: its rest must not show up as text
        return bytes(ffi.buffer(buffer, size[0])[:])

    def _extra(self, name: str) -> bytes:
        """What the formatter adds for one of its options, before or behind the text."""
        cell = self._select((0, 0), (0, 0))
        bare, whole = self._format(cell), self._format(cell, extra=name)
        return whole.removesuffix(bare) if name in ("modes", "tabstops") else whole.removeprefix(bare)

    def _select(self, begin: tuple[int, int], end: tuple[int, int], tag: str = "active") -> Any:
        selection = init_sized("GhosttySelection")
        selection.start = self._terminal.ref(*begin, tag)[0]
        selection.end = self._terminal.ref(*end, tag)[0]
        return selection

    def _format(self, selection: Any, *, unwrap: bool = False, extra: str = "") -> bytes:
        options = init_sized("GhosttyFormatterTerminalOptions")
        options.emit, options.unwrap, options.selection = lib.GHOSTTY_FORMATTER_FORMAT_VT, unwrap, selection
        if extra:
            setattr(options.extra.screen if extra in ("style", "charsets", "hyperlink") else options.extra, extra, True)
        formatter, data, size = ffi.new("GhosttyFormatter*"), ffi.new("uint8_t**"), ffi.new("size_t*")
        check(
            lib.ghostty_formatter_terminal_new(ffi.NULL, formatter, self._terminal._t[0], options[0]), "formatter_new"
        )
        try:
            check(lib.ghostty_formatter_format_alloc(formatter[0], ffi.NULL, data, size), "format")
            found = bytes(ffi.buffer(data[0], size[0])[:]) if size[0] else b""
            if data[0]:
                lib.ghostty_free(ffi.NULL, data[0], size[0])
        finally:
            lib.ghostty_formatter_free(formatter[0])
        return found

    def _get(self, key: str, kind: str = "uint16_t") -> Any:
        return self._terminal.get(key, kind)

    def _set(self, option: str, kind: str, value: object) -> None:
        key = getattr(lib, f"GHOSTTY_TERMINAL_OPT_{option}")
        check(lib.ghostty_terminal_set(self._terminal._t[0], key, ffi.new(f"{kind}*", value)), f"set {option}")


def _safe_link(link: bytes) -> bytes:
    """Empty unless the link may be offered to a person."""
    text = link.decode("utf-8", "replace")
    return link if text.isprintable() and text.lower().startswith(LINKS) else b""
