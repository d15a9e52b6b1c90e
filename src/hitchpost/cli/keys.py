"""What a terminal sends: keys, pastes, and its own answers to queries. Finds the detach key among them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hitchpost.errors import BadSettings

INPUT, ANSWER, DETACH = "input", "answer", "detach"

SHORT_WAIT_S, LONG_WAIT_S = 0.05, 0.5
LONGEST_STRING = 1 << 20
SHIFT, CTRL, LOCKS = 1, 4, 64 | 128
PRESS, REPEAT, RELEASE = 1, 2, 3
MODIFIER_KEYS = range(57441, 57455)
USUAL, IN_TMUX = "ctrl-b d", "ctrl-\\ ctrl-\\"
PASTE_BEGIN, PASTE_END = b"\x1b[200~", b"\x1b[201~"

SEQUENCE = re.compile(
    rb"\x1b\[M[\s\S]{3}"  # a mouse event of the oldest kind: its bytes may be anything
    rb"|\x1b\[(?!M)[0-?]*[ -/]*[@-~]"
    rb"|\x1bO[ -~]"
    rb"|\x1b[P\]X^_](?:[^\x07\x1b\x18\x1a]|\x1b(?!\\))*(?:\x07|\x1b\\|[\x18\x1a])"
    rb"|\x1b(?![\[OP\]X^_\x1b])[\s\S]",
)
ANSWER_CSI = re.compile(rb"\x1b\[(?:[?>=].*|[0-9;]*(?:[cntx]|\$y)|[0-9]+;[0-9]+R)")
KITTY_KEY = re.compile(rb"\x1b\[([0-9]+)(?::[0-9]*)?(?::([0-9]+))?(?:;([0-9]*)(?::([0-9]+))?)?(?:;[0-9:]*)?u")
XTERM_KEY = re.compile(rb"\x1b\[27;([0-9]+);([0-9]+)~")
LIKELY_ANSWER = re.compile(rb"\x1b(?:\[[?>=]|\[[0-9]+;|\][0-9]|P[0-9!>]|_G)")


@dataclass(frozen=True, slots=True)
class Key:
    """A letter or sign by its code, alone or with Ctrl. Shift does not matter."""

    code: int
    ctrl: bool

    @property
    def byte(self) -> bytes:
        return bytes([self.code & 0x1F if self.ctrl else self.code])

    def __str__(self) -> str:
        letter = chr(self.code).upper()
        return f"Ctrl-{letter}" if self.ctrl else letter

    def event(self, token: bytes) -> int:
        """Whether ``token`` presses, repeats or releases this key; 0 when it is something else."""
        if len(token) == 1:
            return PRESS if token in (self.byte, self.byte if self.ctrl else self.byte.upper()) else 0
        if match := XTERM_KEY.fullmatch(token):
            codes, modifiers, event = {int(match[2])}, int(match[1]) - 1, PRESS
        elif match := KITTY_KEY.fullmatch(token):
            # the third code is the key's place on a Latin keyboard, for those who type in another script
            codes = {int(code) for code in (match[1], match[2]) if code}
            modifiers, event = int(match[3] or 1) - 1, int(match[4] or PRESS)
        else:
            return 0
        if not codes & {self.code, ord(chr(self.code).upper())}:
            return 0
        return event if modifiers & ~(SHIFT | LOCKS) == (CTRL if self.ctrl else 0) else 0


def parse_detach_key(text: str) -> tuple[Key, ...]:
    """One key or two, such as ``ctrl-b d`` or ``ctrl-]``. Raises ``BadSettings``."""
    keys = []
    for word in text.lower().split():
        sign = word.removeprefix("ctrl-")
        if (
            len(sign) != 1
            or not "!" <= sign <= "~"
            or (sign != word and not "`" <= sign <= "z" and sign not in "[\\]^_")
        ):
            break
        keys.append(Key(ord(sign), sign != word))
    else:
        if 1 <= len(keys) <= 2:
            return tuple(keys)
    raise BadSettings(f"expected detach_key to be one key or two, such as 'ctrl-b d' or 'ctrl-]', but got {text!r}")


def detach_keys(setting: str, env: Mapping[str, str]) -> tuple[Key, ...]:
    """Those of the setting, else the usual ones: others inside tmux, which takes Ctrl-B for itself."""
    return parse_detach_key(setting or (IN_TMUX if env.get("TMUX") else USUAL))


def in_words(keys: tuple[Key, ...]) -> str:
    return " ".join(map(str, keys))


class Keyboard:
    """Sorts what the terminal sends. Of a detach key of two different keys, the first typed twice is passed on once."""

    def __init__(self, detach: tuple[Key, ...]) -> None:
        self._first, self._last = (detach[0] if len(detach) == 2 else None), detach[-1]
        self._held = b""
        self._armed = b""
        self._pasting = False
        self._found: list[tuple[str, bytes]] = []

    @property
    def patience_s(self) -> float | None:
        """How long the rest of what has begun may take, before ``flush``. None: nothing has, or it is sure to come."""
        if not self._held or self._pasting:
            return None
        return LONG_WAIT_S if LIKELY_ANSWER.match(self._held) else SHORT_WAIT_S

    def feed(self, data: bytes) -> list[tuple[str, bytes]]:
        """What the bytes are, in order. Stops at the detach key: nothing behind it counts."""
        data, self._held = self._held + data, b""
        at = 0
        while at < len(data):
            at = self._paste(data, at) if self._pasting else self._one(data, at)
            if self._found and self._found[-1][0] == DETACH:
                break
            if self._held:
                break
        return self._take()

    def flush(self) -> list[tuple[str, bytes]]:
        """Take what has begun for what it is: the Escape key, or Alt with another."""
        held, self._held = self._held, b""
        if held and self._armed:
            self._put(INPUT, self._armed)
            self._armed = b""
        self._put(INPUT, held)
        return self._take()

    def _take(self) -> list[tuple[str, bytes]]:
        found, self._found = self._found, []
        return found

    def _put(self, kind: str, data: bytes) -> None:
        if self._found and self._found[-1][0] == kind:
            self._found[-1] = (kind, self._found[-1][1] + data)
        elif data or kind == DETACH:
            self._found.append((kind, data))

    def _paste(self, data: bytes, at: int) -> int:
        end = data.find(PASTE_END, at)
        if end >= 0:
            self._pasting = False
            end += len(PASTE_END)
        else:
            begun = next((size for size in range(len(PASTE_END) - 1, 0, -1) if data.endswith(PASTE_END[:size])), 0)
            end = max(at, len(data) - begun)
            self._held = data[end:]
        self._put(INPUT, data[at:end])
        return end

    def _one(self, data: bytes, at: int) -> int:
        """Take the next token; hold what is not complete."""
        if data[at] != 0x1B:
            return self._text(data, at)
        match = SEQUENCE.match(data, at)
        if match is not None:
            self._token(match.group())
            return match.end()
        if data[at : at + 2] == b"\x1b\x1b":
            self._token(b"\x1b")
            return at + 1
        if len(data) - at > LONGEST_STRING:
            self._put(ANSWER, data[at:])
        else:
            self._held = data[at:]
        return len(data)

    def _text(self, data: bytes, at: int) -> int:
        if self._armed:
            self._token(data[at : at + 1])
            return at + 1
        watched = self._first or self._last
        signs = {watched.byte, watched.byte if watched.ctrl else watched.byte.upper()}
        ends = [end for sign in (b"\x1b", *signs) if (end := data.find(sign, at)) >= 0]
        end = min(ends, default=len(data))
        if end == at:
            self._token(data[at : at + 1])
            return at + 1
        self._put(INPUT, data[at:end])
        return end

    def _token(self, token: bytes) -> None:
        if token == PASTE_BEGIN:
            self._pasting = True
        elif is_answer(token):
            self._put(ANSWER, token)
            return
        if self._first is None:
            self._put(*((DETACH, b"") if self._last.event(token) == PRESS else (INPUT, token)))
        elif not self._armed:
            if self._first.event(token) == PRESS:
                self._armed = token
            else:
                self._put(INPUT, token)
        else:
            self._second(self._first, token)

    def _second(self, first: Key, token: bytes) -> None:
        """A token behind the first key of the detach key."""
        again = first.event(token)
        if again in (REPEAT, RELEASE):
            return
        if self._last.event(token) == PRESS:
            self._armed = b""
            self._put(DETACH, b"")
        elif again == PRESS:
            self._armed = b""
            self._put(INPUT, token)
        elif _is_no_key(token):
            self._put(INPUT, token)
        else:
            self._put(INPUT, self._armed + token)
            self._armed = b""


def is_answer(token: bytes) -> bool:
    """Whether the terminal sent this by itself, as the answer to a query. Keys, mouse and focus are none."""
    if token[1:2] == b"[":
        return ANSWER_CSI.fullmatch(token) is not None
    return len(token) > 2 and token[1:2] in b"P]X^_"


def _is_no_key(token: bytes) -> bool:
    """Mouse, focus, Shift and its like, or a key that goes up: they may come between two keys."""
    if token in (b"\x1b[I", b"\x1b[O") or token.startswith((b"\x1b[<", b"\x1b[M")):
        return True
    match = KITTY_KEY.fullmatch(token)
    return match is not None and (int(match[1]) in MODIFIER_KEYS or match[4] == b"3")
