"""What the keeper reads out of the agent's output: status reports, queries that need an answer, paste mode.

It never changes the bytes. Sequences may be cut anywhere between two reads.
"""

from __future__ import annotations

from binascii import a2b_base64

from hitchpost.model.attention import plain

ESC = b"\x1b"
REPORT = b"]7501;"
LONGEST_REPORT = 4096
STATES = (b"idle", b"working", b"blocked", b"done", b"error", b"clear")

ANSWERS: dict[bytes, bytes] = {
    b"[c": b"\x1b[?62;22c",
    b"[0c": b"\x1b[?62;22c",
    b"[>c": b"\x1b[>1;10;0c",
    b"[>0c": b"\x1b[>1;10;0c",
    b"[>q": b"\x1bP>|hitchpost\x1b\\",
    b"[>0q": b"\x1bP>|hitchpost\x1b\\",
    b"[5n": b"\x1b[0n",
    b"[6n": b"\x1b[1;1R",
}
"""Queries with a fixed answer, given when no client owns the terminal. The cursor of a terminal that nobody looks at is
at its top left: programs wait for an answer at their start, when that is where it is."""

PASTE_ON, PASTE_OFF = b"[?2004h", b"[?2004l"
WATCHED = (*ANSWERS, REPORT, PASTE_ON, PASTE_OFF)


class Scanner:
    """Feed it every byte; it calls back in the order of the stream."""

    def __init__(self) -> None:
        self.bracketed_paste = False
        self._carry = b""

    def feed(self, data: bytes) -> list[tuple[str, bytes]]:
        """What was found, in order: ("answer", bytes to send back), ("query", b"") or ("report", fields)."""
        if self._carry:
            data = self._carry + data
            self._carry = b""
        elif ESC not in data:
            return []
        parts = data.split(ESC)
        found: list[tuple[str, bytes]] = []
        last = len(parts) - 1
        for position, part in enumerate(parts):
            if position == 0 or not part.startswith(WATCHED):
                continue
            if part.startswith(REPORT):
                body, bell, _ = part[len(REPORT) :].partition(b"\a")
                ended = bell or (position < last and parts[position + 1].startswith(b"\\"))
                if ended and len(REPORT) + len(body) <= LONGEST_REPORT:
                    found.append(("query", b"") if body == b"?" else ("report", body))
                continue
            if part.startswith(PASTE_ON):
                self.bracketed_paste = True
            elif part.startswith(PASTE_OFF):
                self.bracketed_paste = False
            else:
                found.extend(("answer", answer) for query, answer in ANSWERS.items() if part.startswith(query))
        self._carry = self._unfinished(parts)
        return found

    @staticmethod
    def _unfinished(parts: list[bytes]) -> bytes:
        """The end of the data when it may be the beginning of something watched."""
        if len(parts) < 2:
            return b""
        part = parts[-1]
        if part == b"" and len(parts) > 2 and _open_report(parts[-2]):
            return ESC + parts[-2] + ESC
        if _open_report(part) or any(watched.startswith(part) and watched != part for watched in WATCHED):
            return ESC + part
        return b""


def _open_report(part: bytes) -> bool:
    return part.startswith(REPORT) and b"\a" not in part and len(part) <= LONGEST_REPORT


def parse_report(body: bytes) -> dict[str, str] | None:
    """The fields of an OSC 7501 report; None when its state is none of the protocol's words. Texts are untrusted."""
    fields: dict[str, str] = {}
    for item in body.split(b":"):
        key, equals, value = item.partition(b"=")
        if equals:
            fields[key.decode("ascii", "replace")] = value.decode("utf-8", "replace")
    if fields.get("state", "").encode() not in STATES:
        return None
    message = _text(fields.pop("msg", ""))
    return {**fields, "message": message} if message else fields


def _text(encoded: str) -> str:
    """The text of a field in Base64, without control characters; empty when it is none."""
    try:
        text = a2b_base64(encoded.encode()).decode("utf-8", "replace")
    except ValueError:
        return ""
    return plain(text)
