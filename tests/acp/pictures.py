"""Small images, made byte by byte."""

from __future__ import annotations

import zlib
from struct import pack


def png(red: int, green: int, blue: int, side: int = 48) -> bytes:
    """A square of one colour."""
    rows = (b"\0" + bytes((red, green, blue)) * side) * side
    head = pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    made = [pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data)) for kind, data in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(made)
