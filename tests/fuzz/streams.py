"""Made-up terminal output: what programs write, what none should, and everything cut, repeated and mixed.

A stream is a list of pieces: bytes, or a size as (columns, rows) that the terminal takes there. The same seed gives the
same stream.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from random import Random

Piece = bytes | tuple[int, int]

NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 23, 24, 25, 79, 80, 81, 255, 256, 1000, 9999, 32767, 65535, 65536)
HUGE = (1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 10**30)
SIDES = (1, 1, 2, 2, 3, 5, 10, 24, 40, 80, 200, 500)
MODES = (
    *(1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 20, 25, 40, 45, 47, 66, 67, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015),
    *(1016, 1035, 1036, 1039, 1045, 1047, 1048, 1049, 2004, 2026, 2027, 2031, 2048, 5522),
)
FINALS = b"@ABCDEFGHIJKLMPSTXZ`abcdefghilmnpqrstuvwxyz{|}~"
LETTERS = (
    *(
        "a",
        "Z",
        " ",
        "-",
        "é",
        "ß",
        "日",
        "本",
        "👍",
        "👍🏽",
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "e\u0301",
        "a" + "\u0300" * 40,
        "\u200d",
        "\ufe0f",
        "\u200b",
    ),
    *(
        "\u0600",
        "א",
        "\u202e",
        "\u2028",
        "\U000e0001",
        "\U0010ffff",
        "\ufffe",
        "\ud7ff",
        "ﷺ",
        "𒐫",
        "\u1100\u1161\u11a8",
    ),
)
BROKEN = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xf0\x9f\x91", b"\x80", b"\x9b31m")
ENDS = (b"\x07", b"\x1b\\", b"\x1b\\", b"\x9c", b"\x18", b"\x1a", b"", b"\x1b[m")


class Maker:
    """Makes streams from a seed."""

    def __init__(self, seed: int | str) -> None:
        self.random = Random(seed)
        self.kinds = (
            *((self.text, 6), (self.csi, 8), (self.sgr, 3), (self.modes, 4), (self.move, 4), (self.escape, 3)),
            *((self.osc, 3), (self.link, 4), (self.colours, 2), (self.dcs, 2), (self.picture, 2), (self.broken, 2)),
            *((self.flood, 1), (self.controls, 3), (self.keyboard, 1), (self.endless, 1)),
        )

    def stream(self, pieces: int = 60) -> list[Piece]:
        made: list[Piece] = []
        while len(made) < pieces:
            if self.random.random() < 0.12:
                made.append(self.size())
                continue
            (kind,) = self.random.choices([kind for kind, _ in self.kinds], [weight for _, weight in self.kinds])
            piece = kind()
            if self.random.random() < 0.15:
                piece = self.mutated(piece)
            made += [piece] * (self.random.choice((2, 3, 30)) if self.random.random() < 0.05 else 1)
        return made

    def size(self) -> tuple[int, int]:
        return self.random.choice(SIDES), self.random.choice(SIDES)

    def number(self) -> int:
        return self.random.choice(HUGE) if self.random.random() < 0.05 else self.random.choice(NUMBERS)

    def numbers(self, most: int = 4) -> bytes:
        count = self.random.choice((40, 300)) if self.random.random() < 0.03 else self.random.randint(0, most)
        mark = b":" if self.random.random() < 0.15 else b";"
        return mark.join(b"%d" % self.number() if self.random.random() < 0.9 else b"" for _ in range(count))

    def word(self, most: int = 20) -> bytes:
        return "".join(self.random.choices(LETTERS, k=self.random.randint(0, most))).encode("utf-8", "replace")

    def end(self) -> bytes:
        return self.random.choice(ENDS)

    def text(self) -> bytes:
        return self.word(120)

    def flood(self) -> bytes:
        line = self.random.choice(
            (b"y\r\n", b"0123456789" * 30, self.word(30) + b"\r\n", self.sgr() + b"x", b"\n", b"\t")
        )
        return line * self.random.choice((10, 300, 3000))

    def csi(self) -> bytes:
        private = self.random.choice((b"", b"", b"", b"?", b">", b"=", b"<"))
        between = self.random.choice((b"", b"", b"", b"", b" ", b"$", b"!", b'"', b"'", b"*", b"#"))
        return b"\x1b[" + private + self.numbers() + between + bytes([self.random.choice(FINALS)])

    def sgr(self) -> bytes:
        colour = self.random.choice(
            (b"0", b"1", b"4:3", b"7", b"8", b"38;5;%d", b"48;2;%d;1;2", b"58:2::%d:3:4", b"21")
        )
        return b"\x1b[" + (colour % self.number() if b"%" in colour else colour) + b"m"

    def modes(self) -> bytes:
        chosen = b";".join(b"%d" % self.random.choice(MODES) for _ in range(self.random.randint(1, 3)))
        return (
            b"\x1b["
            + self.random.choice((b"?", b"?", b"?", b""))
            + chosen
            + self.random.choice((b"h", b"h", b"l", b"s", b"r", b"$p"))
        )

    def move(self) -> bytes:
        shape = self.random.choice(
            (
                b"\x1b[%d;%dH",
                b"\x1b[%d;%dr",
                b"\x1b[%d;%ds",
                b"\x1b[%dX\x1b[%dP",
                b"\x1b[%dL\x1b[%dM",
                b"\x1b[%dS\x1b[%dT",
                b"\x1b[%d@\x1b[%db",
            )
        )
        return shape % (self.number(), self.number())

    def escape(self) -> bytes:
        return self.random.choice(
            (
                b"\x1b7",
                b"\x1b8",
                b"\x1bD",
                b"\x1bE",
                b"\x1bM",
                b"\x1bc",
                b"\x1b#8",
                b"\x1b(0",
                b"\x1b)B",
                b"\x1bN",
                b"\x1bO",
                b"\x1bH",
                b"\x1b=",
                b"\x1b>",
                b"\x1bn",
                b"\x1b|",
                b"\x1bZ",
                b"\x0e",
                b"\x0f",
                b"\x1b[!p",
                b"\x1b[2J",
                b"\x1b[3J",
                b"\x1b[22J",
                b"\x1b[K",
                b"\x1b[?J",
                b'\x1b[1"q',
                b"\x1b[?1049h",
                b"\x1b[?1049l",
                b"\x1b[?47h",
                b"\x1b[?47l",
            ),
        )

    def controls(self) -> bytes:
        return bytes(self.random.choices(b"\r\n\n\n\t\x08\x0b\x0c\x05\x00\x07\x7f", k=self.random.randint(1, 30)))

    def osc(self) -> bytes:
        number = self.random.choice(
            (0, 1, 2, 4, 5, 7, 9, 10, 11, 12, 21, 22, 52, 66, 104, 110, 133, 777, 1337, 3008, 5522, 7501, self.number())
        )
        body = self.random.choice(
            (
                self.word(),
                b"?",
                b"file://host/" + self.word(),
                b"c;" + base64.b64encode(self.word()),
                b"A;cl=m",
                b"C",
                b"D;%d" % self.number(),
                b"#ffffff",
                b"4;1;50",
                b"notify;a;b",
                b"s=2:w=3;" + self.word(),
                b"P;" + self.word(),
                b"L;aid=" + self.word(),
            )
        )
        return b"\x1b]%d;" % number + body + self.end()

    def colours(self) -> bytes:
        pairs = [b"%d;" % self.number() + self.random.choice((b"?", b"rgb:11/22/33", b"red", b"#123456", b"rgb:", b""))]
        return b"\x1b]4;" + b";".join(pairs * self.random.choice((1, 1, 300, 5000))) + self.end()

    def link(self) -> bytes:
        address = self.random.choice(
            (b"", b"http://x/", b"https://" + b"y" * self.random.choice((10, 2000, 5000)), self.word())
        )
        params = self.random.choice((b"", b"id=1", b"id=" + self.word(), b"id=%d" % self.number(), b"a=b:id="))
        opened = b"\x1b]8;" + params + b";" + address + self.random.choice((b"\x07", b"\x1b\\", self.end()))
        return opened + self.word() + self.random.choice((b"", b"\x1b]8;;\x1b\\", b"\r\n" * self.random.randint(1, 40)))

    def dcs(self) -> bytes:
        body = self.random.choice(
            (
                b"+q544e",
                b"$qm",
                b'$q"p',
                b"1000p",
                b"=1s",
                b"q#0;2;0;0;0~-",
                b"0;1|17/41",
                b"tmux;\x1b\x1b[c",
                self.word(),
            )
        )
        return (
            self.random.choice((b"\x1bP", b"\x1bX", b"\x1b^", b"\x1b_"))
            + body * self.random.choice((1, 1, 50))
            + self.end()
        )

    def picture(self) -> bytes:
        keys = {
            b"a": b"tTpdqfac",
            b"f": b"",
            b"t": b"dfst",
            b"d": b"aAiIcCnNpPqQrRxXyYzZ",
            b"U": b"01",
            b"o": b"z",
            b"C": b"01",
        }
        chosen = []
        for key in self.random.sample(
            [*keys, b"s", b"v", b"i", b"I", b"p", b"c", b"r", b"x", b"y", b"w", b"h", b"X", b"Y", b"z", b"m", b"q"], 6
        ):
            values = keys.get(key, b"")
            chosen.append(key + b"=" + (bytes([self.random.choice(values)]) if values else b"%d" % self.number()))
        data = base64.b64encode(self.random.randbytes(self.random.choice((0, 3, 12, 300, 5000))))
        return (
            b"\x1b_G"
            + b",".join(chosen)
            + b";"
            + data
            + self.end()
            + self.random.choice((b"", "\U0010eeee\u0305\u0305".encode()))
        )

    def keyboard(self) -> bytes:
        return b"\x1b[" + self.random.choice((b">", b"<", b"=", b"?")) + self.numbers(2) + b"u"

    def broken(self) -> bytes:
        return b"".join(self.random.choices(BROKEN, k=self.random.randint(1, 10)))

    def endless(self) -> bytes:
        """A string that does not end, or ends late."""
        begin = self.random.choice(
            (b"\x1b]4;", b"\x1b]52;c;", b"\x1b]0;", b"\x1bP+q", b"\x1b_G", b"\x1b[", b"\x1b]8;;", b"\x1bPq")
        )
        return (
            begin
            + self.random.choice((b"A", b"1;", b"0", b";", b":")) * self.random.choice((100, 5000, 70_000, 300_000))
            + self.end()
        )

    def mutated(self, piece: bytes) -> bytes:
        if not piece:
            return piece
        at = self.random.randrange(len(piece))
        how = self.random.randrange(5)
        if how == 0:
            return piece[:at]
        if how == 1:
            return piece[:at] + bytes([piece[at] ^ 1 << self.random.randrange(8)]) + piece[at + 1 :]
        if how == 2:
            return piece[:at] + self.random.randbytes(self.random.randint(1, 8)) + piece[at:]
        if how == 3:
            return piece[at:]
        return piece[:at] + self.escape() + piece[at:]


def read_stream(path: Path) -> list[Piece]:
    """A stream from a file: a list of texts (each letter a byte), [text, how often], and [columns, rows]."""
    stream: list[Piece] = []
    for item in json.loads(path.read_text()):
        if isinstance(item, str):
            stream.append(item.encode("latin-1"))
        elif isinstance(item[0], str):
            stream.append(item[0].encode("latin-1") * item[1])
        else:
            stream.append((item[0], item[1]))
    return stream
