"""The last line that an agent has printed, for people: read from the end of its log, so it costs the same for any log.

Only of programs that print line after line. One that draws its screen has no last line: the lowest row of a screen is a
border, a hint or a clock.
"""

from __future__ import annotations

import os
import re

from hitchpost import wire
from hitchpost.model.attention import plain
from hitchpost.store import files
from hitchpost.terminal.output import segments

TAIL_BYTES = 4096
LONGEST = 200
_CLEARED = re.compile(rb"\x1b\[H\x1b\[2?J|\x1b\[2J\x1b\[H")
_DRAWN = re.compile(rb"\x1b\[[0-9;]*[ABEFHLMSTdfr]|\x1b\[\?(?:47|1047|1049)h|\x1b[M78]")
"""It goes to places on the screen: nobody knows which of them is the last line."""
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[0-OQ-WYZ`-~])")
_UNFINISHED = re.compile(rb"\x1b.*", re.DOTALL)


def last_line(output_folder: str) -> str:
    """One line of printable text, not too long; empty where there is none."""
    for start in reversed(segments(output_folder)):
        try:
            fd = files.open_file(os.path.join(output_folder, wire.segment_name(start)))
        except files.NoFile:
            continue
        try:
            size = os.fstat(fd).st_size
            tail = os.pread(fd, TAIL_BYTES, max(0, size - TAIL_BYTES))
        finally:
            os.close(fd)
        if tail:
            return line_in(tail, is_whole=size <= TAIL_BYTES)
    return ""


def line_in(tail: bytes, *, is_whole: bool = True) -> str:
    """Where it is not whole, it may begin within a line, a letter or a sequence: that line does not count."""
    if not is_whole:
        tail = re.sub(rb"^[^\r\n]*", b"", tail)
    tail = _CLEARED.split(tail)[-1]
    if _DRAWN.search(tail):
        return ""
    text = _UNFINISHED.sub(b"", _SEQUENCE.sub(b"", tail)).decode("utf-8", "ignore")
    for line in reversed(re.split(r"[\r\n]", text)):
        if any(letter.isalnum() for letter in line):
            text = plain(_without_erased(line))
            return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return ""


def _without_erased(line: str) -> str:
    """A spinner goes back over its own letters."""
    if "\b" not in line:
        return line
    kept: list[str] = []
    for letter in line:
        if letter != "\b":
            kept.append(letter)
        elif kept:
            kept.pop()
    return "".join(kept)
