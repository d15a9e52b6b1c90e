"""What goes over a link between a hub and a pod. Decision 20 says why.

A frame is as on a keeper's socket: 4 bytes with the length of the payload, one byte of kind, and the payload.
"""

from __future__ import annotations

from hitchpost import lightjson, wire
from hitchpost.wire import HEADER_BYTES, MAX_PAYLOAD_BYTES, BadFrame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
POD_BEAT_S, HUB_CUT_S = 1.0, 2.5
"""A pod says something so often; a hub that has heard nothing for so long takes the link for cut."""
HUB_BEAT_S, POD_CUT_S = 5.0, 15.0
"""The other way round it is less urgent, and a hub has many links."""
PART_BYTES = 64 * 1024
"""What is sent at once of a file or of a long reply."""
OUTPUT_PART_BYTES = 256 * 1024
"""What is sent at once of output."""
SLOW_BYTES_S = 256 * 1024
"""So much output in a second goes to a hub at which nobody looks: what people see, but not a flood."""
WINDOW_BYTES = 256 * 1024
"""So much of what a client of a keeper says may be under way to the pod."""

# both ways
BEAT = b"B"  # nothing: I am here
CHANNEL = b"C"  # 4 bytes of channel, then one frame of the keeper's protocol, whole
CLOSE = b"X"  # 4 bytes of channel: it is closed

# hub to pod
HELLO = b"H"  # JSON: v, session, wants, is_slow, and what the hub has. First, once
OPEN = b"O"  # 4 bytes of channel, then the payload of the client's HELLO to the keeper
WANT = b"A"  # JSON: wants, and the lines that the hub has: what it wants from now on
PACE = b"I"  # JSON: is_slow, from now on. Only to a pod that says ``paces``
REQUEST = b"Q"  # JSON: id, op, and the operation's fields

# pod to hub
WELCOME = b"W"  # JSON: v, session, run, kept, paces
FILE = b"S"  # a file, whole: see ``name_bytes``; the flag MORE: another part of the same file follows
PART = b"D"  # what was appended to a file: see ``name_bytes``; 8 bytes of offset, 8 bytes: when, in µs since 1970, or 0
REACHED = b"P"  # 4 bytes of run, 8 bytes: the log reaches to here, and all that there is of it was sent
FIRST = b"L"  # 4 bytes of run, 8 bytes: the log begins here now
TAKEN = b"K"  # 4 bytes of channel, 4 bytes: so many bytes more have gone to the keeper
REPLY = b"R"  # 4 bytes of id, one byte of flag (MORE), a part of the JSON
KEPT = b"G"  # 4 bytes of run: a keeper has it
OVER = b"V"  # JSON: run. Its keeper is gone, and all that it has written was sent
REFUSED = b"N"  # JSON: why. Last

LAST, MORE = 0, 1
ALL, OUTPUT = "all", "output"
"""What a hub wants: everything, or output and state, which all hubs show at once."""


def frame(kind: bytes, *parts: bytes) -> bytes:
    return b"".join((sum(map(len, parts)).to_bytes(4, "big"), kind, *parts))


def json_frame(kind: bytes, said: dict[str, object]) -> bytes:
    return frame(kind, lightjson.dumps(said).encode())


def number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def offset(value: int) -> bytes:
    return value.to_bytes(8, "big")


def name_bytes(run: int, name: str, flag: int = LAST) -> bytes:
    """4 bytes of run (which the pod's was when it sent a file of the session), one of flag, one of length, the name."""
    text = name.encode()
    return number(run) + bytes((flag, len(text))) + text


def take_name(payload: bytes) -> tuple[int, int, str, int]:
    """Run, flag and name, and where the rest of the payload begins. Raises ``ValueError``."""
    if len(payload) < 6 or len(payload) < 6 + payload[5]:
        raise ValueError("expected the name of a file")
    end = 6 + payload[5]
    return int.from_bytes(payload[:4], "big"), payload[4], payload[6:end].decode("ascii"), end


def take_frames(buffer: bytearray) -> list[tuple[bytes, bytes]]:
    """Remove the complete frames from the front of ``buffer`` and return them as (kind, payload)."""
    found = []
    start, end = 0, len(buffer)
    with memoryview(buffer) as view:
        while end - start >= HEADER_BYTES:
            size = int.from_bytes(view[start : start + 4], "big")
            if size > MAX_PAYLOAD_BYTES:
                raise BadFrame(f"expected a frame of at most {MAX_PAYLOAD_BYTES} bytes, but got one of {size}")
            behind = start + HEADER_BYTES + size
            if end < behind:
                break
            found.append((bytes(view[start + 4 : start + 5]), bytes(view[start + HEADER_BYTES : behind])))
            start = behind
    del buffer[:start]
    return found


def object_of(payload: bytes) -> dict[str, Any]:
    """Raises ``BadFrame``."""
    try:
        found = lightjson.loads(payload)
    except ValueError as error:
        raise BadFrame(str(error)) from None
    if not isinstance(found, dict):
        raise BadFrame(f"expected an object, but got {type(found).__name__}")
    return found


EVENT_FIELDS: dict[str, dict[str, type]] = {
    "exit": {"state": str, "reason": str, "end": int, "exit": dict},
    "resize": {"cols": int, "rows": int, "offset": int},
    "state": {"state": str, "reason": str},
    "attention": {"report": dict},
}
"""What a hub's readers take from the events of a keeper."""
FURTHEST = 1 << 62
"""No log reaches further."""
OF_KEEPER = (wire.WELCOME, wire.POKE, wire.EVENT, wire.REPLY)


def of_keeper(frame: bytes) -> bytes:
    """``frame``, if it is one that a keeper says to a client: whole, and with what readers expect in it.

    Raises ``BadFrame``. A keeper in a pod is believed what it says of its run, and not how it says it.
    """
    kind, size = frame[4:5], int.from_bytes(frame[:4], "big")
    if len(frame) != HEADER_BYTES + size or kind not in OF_KEEPER:
        raise BadFrame(f"expected a frame of a keeper, but got {frame[:16]!r}")
    if kind == wire.POKE and size != 8:
        raise BadFrame("expected an offset of 8 bytes")
    if kind in (wire.POKE, wire.WELCOME):
        return frame
    told = object_of(frame[HEADER_BYTES:])
    if kind == wire.EVENT:
        _check_event(told)
    return frame


def _check_event(told: dict[str, Any]) -> None:
    name = told.get("event")
    if not isinstance(name, str):
        raise BadFrame(f"expected the name of an event, but got {name!r:.40}")
    for field, expected in EVENT_FIELDS.get(name, {}).items():
        item = told.get(field)
        is_nothing = item is None and expected is dict
        if (type(item) is not expected and not is_nothing) or (isinstance(item, int) and not 0 <= item < FURTHEST):
            raise BadFrame(f"expected {field} of the event {name} to be {expected.__name__}, but got {item!r:.40}")


def is_exit(keeper_frame: bytes) -> int | None:
    """Of a frame of the keeper: how far the log must be known before it may be told; None: no matter."""
    if keeper_frame[4:5] != wire.EVENT or b'"exit"' not in keeper_frame[:64]:
        return None
    event = object_of(keeper_frame[HEADER_BYTES:])
    end = event.get("end")
    return end if event.get("event") == "exit" and isinstance(end, int) else None
