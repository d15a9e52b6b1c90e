"""What the keeper and its clients share: frames on the control socket, and the names of a run's files.

A frame is a 4-byte length (big endian, of the payload), one byte of kind, and the payload. Terminal output does not
travel here: it is in the log, and the keeper tells followers how far the log reaches.
"""

from __future__ import annotations

from hitchpost import lightjson
from hitchpost.errors import HitchpostError

VERSION = 1
HEADER_BYTES = 5
MAX_PAYLOAD_BYTES = 4 * 1024 * 1024
MOST_TEXT_BYTES = 512 * 1024

# client to keeper
HELLO = b"H"  # JSON: v, role, cols, rows, read_only. First, once
INPUT = b"I"  # bytes that a person typed; makes the client the owner of the size
ANSWER = b"A"  # bytes with which the client's terminal answered a query; dropped unless the client owns the size
RESIZE = b"Z"  # 2 bytes columns, 2 bytes rows
FOLLOW = b"F"  # 8 bytes offset: tell me once, as soon as the log reaches further than this
REQUEST = b"Q"  # JSON: id, op, and the operation's fields

# keeper to client
WELCOME = b"W"  # JSON: v, session, run, state, cols, rows, first, end
POKE = b"P"  # 8 bytes: the offset that the log reaches to
EVENT = b"E"  # JSON: event, and its fields
REPLY = b"R"  # JSON: id, ok, and the answer

# a run's files
HUNG_UP = "hung_up"
"""Beside the exit status of an agent in a container: its terminal was gone when it ended."""
RUN, EXIT, EXIT_STATUS, INTENT, ATTENTION = "run.json", "exit.json", "exit_status", "intent.json", "attention.json"
KEEPER_LOCK, SOCKET, KEEPER_LOG, OUTPUT, TIMES = "keeper.lock", "ctl.sock", "keeper.log", "output", "times.bin"
TMUX_SOCKET, START_SOCKET = "tmux.sock", "start.sock"
IN_PANE = "pane"
BOX, INSIDE = "box.json", "inside"  # of a session: its container, and the folder that the container shares with us
POD = "pod.json"  # of a session: its pod, as its cluster told last
FROZEN = "frozen.json"  # of a session: somebody holds its container still, or was killed while it did
SHARED = "/hitchpost/run"  # that folder, in the container
PROGRAMS = "/hitchpost/bin"  # our own programs there
SPARES = (".spare-exit", ".spare-status", ".spare-state", ".spare-intent")

WATCHER = "watcher"
"""The role of the process that knows the agent."""

UNCOUNTED = 1
"""The bytes of a gap in the log that stands for output of which nobody knows how much it was."""

# times.bin: one byte of kind, 8 bytes of microseconds since 1970, 8 bytes of value, all big endian
TIME_RECORD_BYTES = 17
AT_OFFSET = b"o"  # value: the log reached this offset
AT_SIZE = b"z"  # value: columns << 32 | rows
AT_GAP = b"g"  # value: the offset where bytes were lost
AT_INPUT = b"i"  # value: somebody typed, and after that the log reached this offset
AT_EXIT = b"x"  # value: the exit code as a shell gives it, or 1 << 32 when nobody knows

SESSION_MARK, RUN_MARK, KEEPER_MARK = "HITCHPOST_SESSION", "HITCHPOST_RUN", "HITCHPOST_KEEPER"
TMUX_MARK, HOME_MARK, HUB_MARK = "HITCHPOST_TMUX", "HITCHPOST_HOME_ID", "HITCHPOST_HUB"
MARKS = tuple(mark.encode() for mark in (SESSION_MARK, RUN_MARK, KEEPER_MARK, TMUX_MARK, HOME_MARK, HUB_MARK))


class BadFrame(HitchpostError):
    """Raised when the other side of a socket does not speak this protocol."""

    http_status = 502
    code = "bad_frame"


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(4, "big") + kind + payload


def hello(role: str, cols: int, rows: int, *, read_only: bool = False) -> bytes:
    """The first frame of a client."""
    said = {"v": VERSION, "role": role, "cols": cols, "rows": rows, "read_only": read_only}
    return frame(HELLO, lightjson.dumps(said).encode())


def follow(offset: int) -> bytes:
    return frame(FOLLOW, offset.to_bytes(8, "big"))


def resize(cols: int, rows: int) -> bytes:
    return frame(RESIZE, cols.to_bytes(2, "big") + rows.to_bytes(2, "big"))


def request(number: int, op: str, **fields: object) -> bytes:
    return frame(REQUEST, lightjson.dumps({"id": number, "op": op, **fields}).encode())


def take_frames(buffer: bytearray) -> list[tuple[bytes, bytes]]:
    """Remove the complete frames from the front of ``buffer`` and return them as (kind, payload)."""
    frames = []
    start = 0
    while len(buffer) - start >= HEADER_BYTES:
        size = int.from_bytes(buffer[start : start + 4], "big")
        if size > MAX_PAYLOAD_BYTES:
            raise BadFrame(f"expected a frame of at most {MAX_PAYLOAD_BYTES} bytes, but got one of {size}")
        end = start + HEADER_BYTES + size
        if len(buffer) < end:
            break
        frames.append((bytes(buffer[start + 4 : start + 5]), bytes(buffer[start + HEADER_BYTES : end])))
        start = end
    del buffer[:start]
    return frames


def segment_name(offset: int) -> str:
    """A log segment is named by the offset of its first byte. A gap is where one ends before the next begins."""
    return f"{offset:020d}.log"


def segment_offset(name: str) -> int | None:
    stem, _, ending = name.partition(".")
    return int(stem) if ending == "log" and len(stem) == 20 and stem.isdigit() and stem.isascii() else None


def time_record(kind: bytes, at_us: int, value: int) -> bytes:
    return kind + at_us.to_bytes(8, "big") + value.to_bytes(8, "big")


def untypable(text: bytes) -> str | None:
    """Why a prompt cannot be typed, whoever reads it; None when it can."""
    if any((byte < 32 and byte not in b"\t\n") or byte == 127 for byte in text):
        return "the text holds control characters; only tab and newline can be sent"
    if len(text) > MOST_TEXT_BYTES:
        return f"the text has {len(text)} bytes, at most {MOST_TEXT_BYTES} can be typed at once"
    return None


def join_texts(texts: list[bytes]) -> bytes:
    """Texts without NUL bytes (arguments, environment), each ended by one."""
    return b"".join(text + b"\0" for text in texts)


def split_texts(blob: bytes) -> list[bytes]:
    return blob.split(b"\0")[:-1]
