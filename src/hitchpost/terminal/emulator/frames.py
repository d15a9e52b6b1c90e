"""What an emulator and its owner say to each other.

Orders go over a socket of packets: FORK with cols and rows (2 bytes each) and, as a descriptor, the socket of the new
screen; END with a pid. The answers are a pid, and how that process ended. NO_EMULATOR comes instead when there is none.

A screen's own socket is a stream of frames as ``wire`` has them. FEED and RESIZE are not answered. Every other kind is
answered by GOOD with the answer, or BAD with the reason.
"""

from __future__ import annotations

FORK, END, NO_EMULATOR = b"F", b"E", b"N"

FEED = b"f"  # bytes of the stream, cut anywhere
RESIZE = b"z"  # 2 bytes columns, 2 bytes rows
SNAPSHOT = b"s"  # 1 byte: with history or without; the answer is the bytes
LINES = b"l"  # left, top, columns, rows, 2 bytes each; for each line 4 bytes of length, then the line
TEXT = b"t"  # 1 byte: rows that go on in the next one joined, or as they are; the answer is UTF-8
CURSOR = b"c"  # 2 bytes column, 2 bytes row
ALTERNATE = b"a"  # 1 byte
INPUT_MODES = b"m"  # bytes

GOOD, BAD = b"+", b"-"

MOST_FEED_BYTES = 1 << 20
MOST_ANSWER_BYTES = 64 << 20


def pack(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(2, "big") for number in numbers)


def unpack(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


def pack_lines(lines: list[bytes]) -> bytes:
    return b"".join(len(line).to_bytes(4, "big") + line for line in lines)


def unpack_lines(data: bytes) -> list[bytes]:
    lines = []
    at = 0
    while at < len(data):
        begin = at + 4
        at = begin + int.from_bytes(data[at:begin], "big")
        lines.append(data[begin:at])
    return lines
