from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitchpost.cli.keys import ANSWER, DETACH, INPUT, LONG_WAIT_S, SHORT_WAIT_S, Keyboard, parse_detach_key
from hitchpost.errors import BadSettings

LEAVE = [(DETACH, b"")]


def keyboard(key: str = "ctrl-b d") -> Keyboard:
    return Keyboard(parse_detach_key(key))


def typed(*reads: bytes, key: str = "ctrl-b d") -> list[tuple[str, bytes]]:
    """What a keyboard makes of ``reads``; neighbours of one kind are joined, as the agent sees them."""
    keys = keyboard(key)
    joined: list[tuple[str, bytes]] = []
    for kind, data in [found for read in reads for found in keys.feed(read)] + keys.flush():
        if joined and joined[-1][0] == kind:
            joined[-1] = (kind, joined[-1][1] + data)
        else:
            joined.append((kind, data))
    return joined


@pytest.mark.parametrize(
    "reads",
    [
        [b"\x02d"],
        [b"\x02", b"d"],
        [b"\x02D"],
        [b"\x1b[98;5ud"],
        [b"\x1b[98;5u", b"\x1b[100u"],
        [b"\x1b[98;5u\x1b[98;5:3u\x1b[57442;1:3u\x1b[100u"],
        [b"\x1b[98;5:1u", b"\x1b[98;5:2u", b"\x1b[98;5:3u", b"\x1b[100;1:1u"],
        [b"\x1b[98;5u", b"\x1b[100;;100u"],
        [b"\x1b[98;5u", b"\x1b[100:68;2u"],
        [b"\x1b[98;69u", b"\x1b[100;65u"],
        [b"\x1b[1080::98;5u", b"\x1b[1074::100u"],
        [b"\x1b[27;5;98~", b"d"],
        [b"\x1b", b"[9", b"8;5u", b"\x1b[10", b"0u"],
        [b"\x02", b"\x1b[I", b"d"],
        [b"\x02", b"\x1b[?62c", b"d"],
        [b"\x02", b"\x1b[<35;10;10M", b"d"],
    ],
)
def test_the_detach_key_is_found_however_it_is_sent(reads: list[bytes]) -> None:
    assert typed(*reads)[-1:] == LEAVE
    assert b"98" not in b"".join(data for _, data in typed(*reads))


@pytest.mark.parametrize(
    ("reads", "passed"),
    [
        ([b"\x02\x02"], b"\x02"),
        ([b"\x02", b"\x02", b"d"], b"\x02d"),
        ([b"\x1b[98;5u\x1b[98;5:3u\x1b[98;5u"], b"\x1b[98;5u"),
        ([b"\x02c"], b"\x02c"),
        ([b"\x02", b"\x1b[A"], b"\x02\x1b[A"),
        ([b"\x02\x04"], b"\x02\x04"),
        ([b"\x02", b"\x1b"], b"\x02\x1b"),
        ([b"\x1b[98;13ud"], b"\x1b[98;13ud"),
        ([b"\x1b[98;7u", b"d"], b"\x1b[98;7ud"),
        ([b"bd", b"\x1b[98u\x1b[100u"], b"bd\x1b[98u\x1b[100u"),
        ([b"\x1b[98;5:3ud"], b"\x1b[98;5:3ud"),
        ([b"\x1b[200~\x02d\x1b[201~"], b"\x1b[200~\x02d\x1b[201~"),
        ([b"\x1b[200~\x02", b"d", b"\x1b[20", b"1~"], b"\x1b[200~\x02d\x1b[201~"),
        ([b"\x1b[M\x02d "], b"\x1b[M\x02d "),
        ([b"\x1bOA\x1bb\x1b\x1b[C"], b"\x1bOA\x1bb\x1b\x1b[C"),
        (["日本".encode(), b"\x03\x1a"], "日本\x03\x1a".encode()),
    ],
)  # fmt: skip
def test_everything_else_reaches_the_agent_as_it_was_typed(reads: list[bytes], passed: bytes) -> None:
    assert typed(*reads) == [(INPUT, passed)]


def test_a_paste_that_is_over_no_longer_hides_the_detach_key() -> None:
    assert typed(b"\x1b[200~\x02d\x1b[201~\x02d") == [(INPUT, b"\x1b[200~\x02d\x1b[201~"), *LEAVE]


def test_nothing_behind_the_detach_key_counts() -> None:
    assert typed(b"ls\x02drm -rf\r") == [(INPUT, b"ls"), *LEAVE]


@pytest.mark.parametrize(
    "answer",
    [
        b"\x1b[?62;22c",
        b"\x1b[>1;10;0c",
        b"\x1b[12;40R",
        b"\x1b[?12;40R",
        b"\x1b[0n",
        b"\x1b[?997;1n",
        b"\x1b[?2026;2$y",
        b"\x1b[4;1$y",
        b"\x1b[?5u",
        b"\x1b[8;24;80t",
        b"\x1b[48;24;80;0;0t",
        b"\x1b[>4;2m",
        b"\x1bP>|ghostty 1.2\x1b\\",
        b"\x1bP1+r544e=78\x1b\\",
        b"\x1b]11;rgb:0000/0000/0000\x1b\\",
        b"\x1b]4;1;rgb:00/00/00\x07",
        b"\x1b]52;c;aGk=\x1b\\",
        b"\x1b_Gi=1;OK\x1b\\",
        b"\x1b[?1;0;256S",
    ],
)
def test_answers_of_the_terminal_are_told_from_keys(answer: bytes) -> None:
    assert typed(b"a" + answer + b"b") == [(INPUT, b"a"), (ANSWER, answer), (INPUT, b"b")]
    for cut in range(1, len(answer)):
        assert typed(answer[:cut], answer[cut:]) == [(ANSWER, answer)]


@pytest.mark.parametrize(
    "key",
    [b"\x1b[I", b"\x1b[O", b"\x1b[A", b"\x1b[1;5A", b"\x1b[15~", b"\x1bOR", b"\x1b[97u", b"\x1b[<0;1;1M", b"\x1b[1;2S",
     b"\x1b[1;1:3A", b"\x1b[Z", b"\x1bP", b"\x1b]", b"\x1b", b"\x1b["],
)  # fmt: skip
def test_keys_mouse_and_focus_are_no_answers(key: bytes) -> None:
    assert typed(key) == [(INPUT, key)]


def test_the_escape_key_is_passed_on_after_a_short_wait() -> None:
    keys = keyboard()
    assert keys.feed(b"\x1b") == []
    assert keys.patience_s == SHORT_WAIT_S
    assert keys.flush() == [(INPUT, b"\x1b")]
    assert keys.patience_s is None


def test_the_end_of_a_paste_is_waited_for_however_long_it_takes() -> None:
    keys = keyboard()
    assert keys.feed(b"\x1b[200~abc\x1b[20") == [(INPUT, b"\x1b[200~abc")]
    assert keys.patience_s is None
    assert keys.feed(b"1~\x02d") == [(INPUT, b"\x1b[201~"), *LEAVE]


def test_an_answer_that_comes_in_pieces_is_waited_for_longer() -> None:
    keys = keyboard()
    for begun in (b"\x1b]11;rgb:00", b"\x1bP>|tm", b"\x1b[?62", b"\x1b[12;"):
        assert keys.feed(begun) == []
        assert keys.patience_s == LONG_WAIT_S
        keys.flush()


@given(st.lists(st.binary(max_size=12), max_size=8))
def test_no_byte_is_lost_or_made_up(reads: list[bytes]) -> None:
    keys = Keyboard(parse_detach_key("ctrl-] ctrl-^"))
    data = b"".join(reads).replace(b"\x1d", b"").replace(b"u", b"").replace(b"~", b"")
    found = keys.feed(data[: len(data) // 2]) + keys.feed(data[len(data) // 2 :]) + keys.flush()
    assert b"".join(piece for _, piece in found) == data


def test_a_single_key_detaches_at_once() -> None:
    assert typed(b"ab\x1dcd", key="ctrl-]") == [(INPUT, b"ab"), *LEAVE]
    assert typed(b"\x1b[93;5u", key="ctrl-]") == LEAVE
    assert typed(b"\x02d", key="ctrl-]") == [(INPUT, b"\x02d")]


@pytest.mark.parametrize("text", ["", "ctrl-b d e", "ctrl-bd", "alt-x", "ctrl-ä", "ctrl-1"])
def test_a_detach_key_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(BadSettings, match="expected detach_key to be one key or two"):
        parse_detach_key(text)


def test_the_detach_key_can_be_read_aloud() -> None:
    assert " ".join(map(str, parse_detach_key("ctrl-b d"))) == "Ctrl-B D"
