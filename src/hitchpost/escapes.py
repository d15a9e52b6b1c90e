"""Escape sequences in a terminal's output: what they look like, and which of them a replay must leave out."""

from __future__ import annotations

import re

STRING = rb"\x1b[P\]X^_](?:[^\x07\x1b]|\x1b(?!\\))*(?:\x07|\x1b\\)"
CSI = rb"\x1b\[[0-?]*[ -/]*[@-~]"
SEQUENCE = re.compile(STRING + rb"|" + CSI + rb"|\x1b[ -/]*[0-OQ-WYZ\\`-~]|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")
UNFINISHED = re.compile(
    rb"(?:\x1b(?:\[[0-?]*[ -/]*|[ -/]*|[P\]X^_](?:[^\x07\x1b]|\x1b(?!\\))*)|[\xc0-\xff][\x80-\xbf]{0,2})\Z"
)
MODE = re.compile(rb"\x1b\[(?:\?(?P<key>[0-9]+)[hl]|[><=][0-9;]*u)")
ALTERNATE = re.compile(rb"\x1b\[\?(?:1049|1047|47)[hl]")

QUESTION = re.compile(
    rb"\x1b\[[>=?]?[0-9;]*c"  # device attributes
    rb"|\x1b\[\??[0-9;]*n"  # status, cursor position
    rb"|\x1b\[>[0-9;]*q"  # version
    rb"|\x1b\[\?[0-9;]*\$p|\x1b\[[0-9;]*\$p"  # modes
    rb"|\x1b\[\?u"  # keyboard flags
    rb"|\x1b\[\?[0-9;]*[Sm]"  # graphics, key options
    rb"|\x1b\[(?:1[1-9]|2[01])(?:;[0-9]*)*t"  # window, title
    rb"|\x1b\[[0-9;]*x|\x1b\[[0-9;]*(?:\*y|\$w|\$u|&w|'\|)"
    rb"|\x1bZ|\x05"
)
"""What makes a terminal answer, apart from strings."""


def harmless(data: bytes) -> bytes:
    """``data`` without questions, clipboard and other strings that a terminal acts upon; titles and links stay."""
    return SEQUENCE.sub(_kept, data)


def _kept(match: re.Match[bytes]) -> bytes:
    found = match.group()
    if found[:1] == b"\x1b" and found[1:2] in b"P]X^_":
        is_title = found[1:4] in (b"]0;", b"]1;", b"]2;") and b"?" != found[4:5]
        return found if is_title else b""
    return b"" if QUESTION.fullmatch(found) else found


def safe_cut(data: bytes | bytearray, position: int) -> int:
    """The first place at or behind ``position`` where a line or a sequence begins; negative counts from the end."""
    if position < 0:
        position = max(0, len(data) + position)
    if position == 0:
        return 0
    found = data.find(b"\n", position, position + 65536)
    return found + 1 if found >= 0 else min(position, len(data))
