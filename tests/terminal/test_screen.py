from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hitchpost import wire
from hitchpost.terminal.emulator import ghostty
from hitchpost.terminal.emulator.ghostty import LINK_WORK, MOST_LINK_WORK, NO_LINK, GhosttyScreen
from hitchpost.terminal.emulators import Emulators
from hitchpost.terminal.screen import Losses, PlainScreen, RunScreen, Screen

COLS, ROWS = 40, 10

STREAMS = {
    "text": b"hello\r\nworld",
    "nothing": b"",
    "colours": b"\x1b[1;31mred\x1b[0m x \x1b[48;5;20mbg\x1b[K\r\n\x1b[38;2;1;2;3;4mrgb\x1b[58;5;9m",
    "wide letters": "日本語 é👍🏽 e\u0301 x".encode(),
    "a full-screen program": b"vi\r\n\x1b[?1049h\x1b[2J\x1b[5;5Halt\x1b[?25l\x1b[?2004h\x1b[?1000h\x1b[?1006h\x1b[>5u",
    "a full-screen program over history": b"".join(b"line %d\r\n" % n for n in range(40)) + b"\x1b[?1049h\x1b[Htop",
    "a scrolling region": b"top\r\n\x1b[3;8r\x1b[5;1Hin",
    "places relative to a region": b"\x1b[3;8r\x1b[?6h\x1b[2;2Hq",
    "margins": b"\x1b[?69h\x1b[5;20s\x1b[?6h\x1b[3;3Hq",
    "history": b"".join(b"line %d\r\n" % n for n in range(40)),
    "history that ends blank": b"".join(b"line %d\r\n" % n for n in range(40)) + b"\r\n" * 15 + b"x",
    "a cursor that wraps next": b"\x1b[31m" + b"y" * COLS,
    "a wide letter that wraps next": b"y" * (COLS - 2) + "日".encode(),
    "keys and keypad": b"\x1b[?1h\x1b=\x1b[>4;2m",
    "a line drawing set": b"\x1b(0lqqk",
    "a cursor shape": b"\x1b[5 q",
    "a title": b"\x1b]0;one\x07\x1b]2;two\x07",
    "tab stops": b"\x1b[3g\x1b[1;5H\x1bH",
    "insert mode": b"\x1b[4habc\x1b[20h",
    "focus and paste": b"\x1b[?1004h\x1b[?2004h\x1b[?1003h",
    "a sequence cut in two": b"abc\x1b[3",
    "a letter cut in two": "ab日".encode()[:-1],
}


def opened(data: bytes) -> GhosttyScreen:
    screen = GhosttyScreen(COLS, ROWS, 1000)
    screen.feed(data)
    return screen


def looks(screen: GhosttyScreen) -> dict[str, object]:
    """Everything that one can see of a screen, or that changes how it goes on."""
    return {
        "text": screen.text(),
        "lines": screen.lines(0, 0, COLS, ROWS),
        "cursor": screen.cursor(),
        "alternate": screen.alternate(),
        "modes": screen._modes(),
        "input modes": screen.input_modes(),
        "pending wrap": screen._get("cursor_pending_wrap", "bool"),
        "style": screen._extra("style"),
        "region": screen._extra("scrolling_region"),
        "charsets": screen._extra("charsets"),
        "cursor shape": screen._cursor_shape(),
        "title": screen._title(),
        "tabs": screen._tab_stops(),
        "continuation": screen._continuation(),
        "links": [list(screen._link_changes(row, "active")) for row in range(ROWS)],
        "open link": screen._open_link(),
    }


@pytest.mark.ids("F73")
@pytest.mark.parametrize("name", STREAMS)
def test_a_snapshot_shows_the_same_on_another_screen(name: str) -> None:
    first = opened(STREAMS[name])
    second = opened(first.snapshot())
    assert looks(second) == looks(first)
    assert second._terminal.contents() == first._terminal.contents()


@pytest.mark.parametrize("name", STREAMS)
def test_the_stream_goes_on_behind_a_snapshot(name: str) -> None:
    rest = b"1m more\r\n\x1b[?1049l\x1b[mend"
    first = opened(STREAMS[name])
    second = opened(first.snapshot())
    first.feed(rest)
    second.feed(rest)
    assert (second.text(), second.cursor()) == (first.text(), first.cursor())


PIECES = st.one_of(
    st.text(max_size=60).map(lambda text: "".join(filter(str.isprintable, text)).encode()),
    st.sampled_from(
        [
            b"\r\n", b"\n", b"\t", b"\x08", b"\x1b[K", b"\x1b[J", b"\x1b[2J", b"\x1b[L", b"\x1b[M", b"\x1b[5X",
            b"\x1bM", b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?47h", b"\x1b[?47l", b"\x1b7", b"\x1b8", b"\x1b[2;7r",
            b"\x1b[r", b"\x1b[?6h", b"\x1b[?6l", b"\x1b[?25l", b"\x1b[?25h", b"\x1b[?2004h", b"\x1b[?1002h",
            b"\x1b[>1u", b"\x1b[<u", b"\x1b[44m", b"\x1b[7m", b"\x1b[m", b"\x1b[?7l", b"\x1b[?7h", b"\x1b[?2026h",
            b"\x1b(0", b"\x1b(B", b"\x1b[!p", b"\x1b]8;;http://x\x1b\\", b"\x1b]8;;\x1b\\", b"\x1b[6n", b"\x1b[c",
            b"\x1b]52;c;aGk=\x07", b"\x1b[4;9H", b"\x1b[H", b"\x1bc",
        ]
    ),
)  # fmt: skip


LINKED = b"\x1b]8;;http://x\x1b\\"


@given(st.lists(PIECES, max_size=30).map(b"".join))
@example(b"x" * 28 + "日".encode() + LINKED + b"linked: " + "日".encode())
@example(b"x" * 29 + "日".encode() + LINKED + b"linked: " + "日".encode())
@example(b"x" * 32 + LINKED + b"a link: " + NO_LINK)
def test_any_stream_has_a_snapshot_that_shows_the_same(data: bytes) -> None:
    first = opened(data)
    shown = first.snapshot()
    replies: list[bytes] = []
    second = GhosttyScreen(COLS, ROWS, 1000)
    second.on_reply(replies.append)
    second.feed(shown)
    assert looks(second) == looks(first)
    assert replies == []
    assert b"]52;" not in shown


@pytest.mark.ids("S9")
def test_a_snapshot_asks_nothing_and_leaves_the_clipboard_alone() -> None:
    questions = b"\x1b[c\x1b[>c\x1b[6n\x1b[>q\x1b[?u\x1b[?2026$p\x1b]11;?\x07\x1bP+q544e\x1b\\\x1b[14t\x1b[21t\x05"
    clipboard = b"\x1b]52;c;aGVsbG8=\x07\x1b]52;c;?\x07"
    screen = opened(b"before " + questions + clipboard + b"\x1b]8;;javascript:alert(1)\x1b\\link")
    shown = screen.snapshot()
    replies: list[bytes] = []
    other = GhosttyScreen(COLS, ROWS, 1000)
    other.on_reply(replies.append)
    other.feed(shown)
    assert replies == []
    assert b"]52;" not in shown
    assert b"javascript" not in shown
    assert other.text() == "before link"


def test_links_are_kept_also_in_the_history() -> None:
    link = b"\x1b]8;;%s\x1b\\%s\x1b]8;;\x1b\\"
    rows = [
        b"see " + link % (b"http://x/1", b"one ") + b"\x1b[31mred\x1b[m",
        b"",
        b"",
        link % (b"http://x/2", "漢字 wide".encode()) + b" b",
        b"w" * (COLS - 3) + link % (b"http://x/3", b"over the edge") + b" x",
        b"\x1b[5C" + link % (b"http://x/4", b"far"),
        *[b""] * (ROWS + 3),
        link % (b"http://x/5", b"last"),
        b"",
    ]
    first = opened(b"\r\n".join(rows))
    second = opened(first.snapshot())
    for screen in (first, second):
        scrolled = screen._get("scrollback_rows", "size_t")
        screen._link_work = MOST_LINK_WORK
        found = [screen._with_links(row, "screen") for row in range(scrolled + ROWS)]
        wanted = [
            (at, number) for at, line in enumerate(found) for number in b"12345" if b"http://x/%c" % number in line
        ]
        assert [number for _, number in wanted] == list(b"123345")
        assert [at for at, _ in wanted] == [0, 3, 4, 5, 6, 6 + ROWS + 4]
    assert second._terminal.contents() == first._terminal.contents()
    assert looks(second) == looks(first)


def test_the_work_for_links_is_bounded_and_the_screen_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    line = b"".join(b"\x1b]8;;http://x/%d\x1b\\a" % (column % 2) for column in range(COLS))
    screen = opened(b"\r\n".join([line] * 3 * ROWS))
    monkeypatch.setattr(ghostty, "MOST_LINK_WORK", COLS * (LINK_WORK + 1) * (ROWS + 1))
    shown = opened(screen.snapshot())
    linked = [len(list(shown._link_changes(row, "screen"))) == COLS for row in range(3 * ROWS)]
    assert sum(linked[: 2 * ROWS]) == ROWS + 1
    assert all(linked[2 * ROWS :])
    assert shown._terminal.contents() == screen._terminal.contents()


def test_a_link_cannot_smuggle_sequences_into_a_snapshot() -> None:
    screen = opened(b"\x1b]8;;http://x/\x01\xc2\x9b6n\x1b\\text\x1b]8;;\x1b\\")
    replies: list[bytes] = []
    second = GhosttyScreen(COLS, ROWS, 1000)
    second.on_reply(replies.append)
    second.feed(screen.snapshot())
    assert (second.text(), replies) == ("text", [])
    assert b"\x9b" not in screen.snapshot()


def test_a_title_cannot_smuggle_sequences_into_a_snapshot() -> None:
    screen = opened("\x1b]2;a\x9b5nb\u202ec\x1b\\".encode())
    assert "\x9b" not in screen.snapshot().decode()
    assert "\u202e" not in screen.snapshot().decode()


def test_the_emulator_reads_and_deletes_no_file_for_the_agent(tmp_path: Path) -> None:
    image = tmp_path / "tty-graphics-protocol-image"
    image.write_bytes(b"\xff" * 12)
    replies: list[bytes] = []
    screen = GhosttyScreen(COLS, ROWS, 100)
    screen.on_reply(replies.append)
    for medium in (b"f", b"t"):
        name = base64.b64encode(os.fsencode(image))
        screen.feed(b"\x1b_Ga=t,i=1,f=24,s=2,v=2,t=" + medium + b";" + name + b"\x1b\\")
    assert image.exists()
    assert not any(b";OK" in reply for reply in replies)


def test_replies_come_to_whoever_wants_them() -> None:
    replies: list[bytes] = []
    screen = GhosttyScreen(COLS, ROWS, 10)
    screen.on_reply(replies.append)
    screen.feed(b"ab\x1b[6n")
    screen.on_reply(None)
    screen.feed(b"\x1b[6n")
    assert replies == [b"\x1b[1;3R"]


@pytest.mark.parametrize("letter", ["👩\u200d💻", "🇩🇪", "👍🏽", "日"])
def test_a_letter_made_of_several_takes_the_columns_of_one(letter: str) -> None:
    """An agent that counts so leaves no trace of it when it goes back and writes over it."""
    for before in ("", "\x1bc"):
        screen = opened(f"{before}> {letter}!\x1b[3Dab\x1b[K".encode())
        assert (screen.text().strip(), screen.cursor()) == ("> ab", (4, 0))
        assert opened(screen.snapshot()).cursor() == (4, 0)


def test_a_part_of_the_screen_can_be_painted() -> None:
    screen = opened(b"0123456789\r\n\x1b[31mabcdefghij\x1b[m\r\nlast")
    assert screen.lines(2, 1, 3, 2) == [b"\x1b[0m\x1b[38;5;1mcde\x1b[0m", b"st"]


def test_a_very_long_string_that_is_not_over_does_not_show_up_as_text() -> None:
    first = opened(b"ab\x1b]52;c;" + b"A" * 200_000)
    second = opened(first.snapshot())
    second.feed(b"AAAA\x07cd")
    assert second.text() == "abcd"


def test_the_screen_takes_a_new_size() -> None:
    screen = opened(b"x" * 60)
    screen.resize(80, 5)
    assert (screen.text(), screen.cursor()) == ("x" * 60, (60, 0))
    other = GhosttyScreen(80, 5, 100)
    other.feed(screen.snapshot())
    assert other.text() == "x" * 60


# without the emulator ------------------------------------------------------------------------------------------------


@pytest.fixture
def plain() -> Screen:
    return PlainScreen(COLS, ROWS)


def test_a_plain_screen_shows_the_text(plain: Screen) -> None:
    plain.feed(b"\x1b[1mone\x1b[m\r\ntwo\r\n\x1b]0;t\x07three\x1b[?2004h")
    assert plain.text() == "one\ntwo\nthree"
    assert plain.snapshot() == b"\x1b[1mone\x1b[m\r\ntwo\r\nthree\x1b[?2004h"


@pytest.mark.ids("S9")
def test_a_plain_snapshot_asks_nothing(plain: Screen) -> None:
    plain.feed(
        b"a\x1b[c\x1b[>0c\x1b[6n\x1b[?6n\x1b[>q\x1b[?u\x1b[?1$p\x1b]11;?\x07\x1bP+q54\x1b\\\x1b[21t\x1b[14t\x05\x1bZ\x1b[x"
        b"\x1b]52;c;aGk=\x1b\\\x1b_Gi=1;AA\x1b\\b\x1b[31mc\x1b[8;5;10t"
    )
    replies: list[bytes] = []
    other = GhosttyScreen(COLS, ROWS, 100)
    other.on_reply(replies.append)
    other.feed(plain.snapshot())
    assert replies == []
    assert other.text() == "abc"
    assert b"]52" not in plain.snapshot()


def test_a_plain_screen_keeps_the_end_and_the_modes_that_were_set_before(plain: Screen) -> None:
    plain.feed(b"\x1b[?1049h\x1b[?2004h\x1b[?25l\x1b[>3u")
    for number in range(100_000):
        plain.feed(b"line %d\r\n" % number)
    shown = plain.snapshot()
    assert plain.alternate()
    assert len(shown) < 1_000_000
    other = GhosttyScreen(COLS, ROWS, 100)
    other.feed(shown)
    assert other.alternate()
    assert other.text().splitlines()[-1] == "line 99999"
    assert other.input_modes() == b"\x1b[?2004h\x1b[>3u"
    assert b"\x1b[?25l" in shown


# from the log --------------------------------------------------------------------------------------------------------


def written(folder: Path, *pieces: bytes | tuple[int, int]) -> int:
    """A log of ``pieces``: bytes, and sizes as (columns, rows). Returns its end."""
    folder.mkdir()
    data, times = b"", b""
    for number, piece in enumerate(pieces):
        if isinstance(piece, tuple):
            times += wire.time_record(wire.AT_OFFSET, number, len(data))
            times += wire.time_record(wire.AT_SIZE, number, piece[0] << 32 | piece[1])
        else:
            data += piece
    (folder / wire.segment_name(0)).write_bytes(data)
    (folder / wire.TIMES).write_bytes(times)
    return len(data)


Restore = Callable[..., RunScreen]


@pytest.fixture
def restore() -> Iterator[Restore]:
    with Emulators() as emulators, ExitStack() as opened:

        def restored(folder: Path, end: int, cols: int = 80, rows: int = 24) -> RunScreen:
            screen = opened.enter_context(closing(RunScreen(str(folder), emulators, Losses(), cols, rows)))
            screen.advance(end)
            return screen

        yield restored


def test_the_screen_of_a_run_is_restored_with_the_sizes_that_it_had(restore: Restore, tmp_path: Path) -> None:
    end = written(tmp_path / "output", (20, 5), b"\x1b[5;1Hlow", (30, 8), b"\x1b[8;1Hlower")
    screen = restore(tmp_path / "output", end)
    assert (screen.cols, screen.rows) == (30, 8)
    assert screen.text().split() == ["low", "lower"]
    assert screen.cursor() == (5, 7)


def test_what_comes_behind_the_end_is_not_restored(restore: Restore, tmp_path: Path) -> None:
    written(tmp_path / "output", (20, 5), b"one", b"two", (30, 8), b"three")
    screen = restore(tmp_path / "output", 3)
    assert (screen.text(), screen.cols) == ("one", 20)


def test_a_run_without_a_log_has_an_empty_screen(restore: Restore, tmp_path: Path) -> None:
    screen = restore(tmp_path / "output", 0, 33, 11)
    assert (screen.text(), screen.cols, screen.rows) == ("", 33, 11)


def test_a_gap_in_the_log_does_not_swallow_what_follows(restore: Restore, tmp_path: Path) -> None:
    folder = tmp_path / "output"
    written(folder, (20, 5), b"one\x1b]2;never ended")
    (folder / wire.segment_name(100)).write_bytes(b"two")
    assert restore(folder, 103).text() == "onetwo"
