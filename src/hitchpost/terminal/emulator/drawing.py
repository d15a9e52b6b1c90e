"""One screen's process: it reads frames and answers them, until its owner goes."""

from __future__ import annotations

import os
from _socket import socket
from collections.abc import Callable

from hitchpost import wire
from hitchpost.terminal.emulator import frames
from hitchpost.terminal.emulator.confinement import Allowance
from hitchpost.terminal.emulator.ghostty import GhosttyScreen

HISTORY_LINES = 5000
SMALLEST_SIDE = 2
"""The emulator has died of smaller sizes."""

ANSWERS: dict[bytes, Callable[[GhosttyScreen, bytes], bytes]] = {
    frames.SNAPSHOT: lambda screen, asked: screen.snapshot(history=asked == b"\1"),
    frames.LINES: lambda screen, asked: frames.pack_lines(screen.lines(*frames.unpack(asked))),
    frames.TEXT: lambda screen, asked: screen.text(unwrap=asked == b"\1").encode(),
    frames.CURSOR: lambda screen, _: frames.pack(*screen.cursor()),
    frames.ALTERNATE: lambda screen, _: bytes([screen.alternate()]),
    frames.INPUT_MODES: lambda screen, _: screen.input_modes(),
}


def warm_up() -> None:
    """Ask an empty screen everything: what is called first takes longer than what follows."""
    screen = GhosttyScreen(80, 24, HISTORY_LINES)
    screen.feed(b"\n" * 30 + b"\x1b]2;x\x1b\\\x1b[?1049hx\x1b[")
    screen.resize(81, 24)
    for kind, answer in ANSWERS.items():
        answer(screen, frames.pack(0, 0, 80, 1) if kind == frames.LINES else b"\1")
    screen.close()


def draw(sock: socket, cols: int, rows: int) -> None:
    """What fails in a frame that is not answered is told in the next answer."""
    failed = ""
    allowance = Allowance()
    allowance.grant(0, answered=True)
    screen = GhosttyScreen(*_clamped(cols, rows), HISTORY_LINES)
    while True:
        header = _read(sock, wire.HEADER_BYTES)
        size, kind = int.from_bytes(header[:4], "big"), header[4:]
        payload = _read(sock, size)
        allowance.grant(size, answered=kind in ANSWERS)
        try:
            if kind == frames.FEED:
                screen.feed(payload)
            elif kind == frames.RESIZE:
                screen.resize(*_clamped(*frames.unpack(payload)))
            else:
                answer = wire.frame(frames.BAD, failed.encode()) if failed else _answer(screen, kind, payload)
                sock.sendall(answer)
        except (RuntimeError, ValueError, MemoryError) as error:
            failed = failed or f"{type(error).__name__}: {error}"


def _answer(screen: GhosttyScreen, kind: bytes, payload: bytes) -> bytes:
    try:
        return wire.frame(frames.GOOD, ANSWERS[kind](screen, payload))
    except (RuntimeError, ValueError, MemoryError) as error:
        return wire.frame(frames.BAD, f"{type(error).__name__}: {error}".encode())


def _clamped(cols: int, rows: int) -> tuple[int, int]:
    return max(SMALLEST_SIDE, cols), max(SMALLEST_SIDE, rows)


def _read(sock: socket, size: int) -> bytes:
    """So many bytes. Ends the process when the owner is gone."""
    buffer = bytearray(size)
    view = memoryview(buffer)
    while view:
        got = sock.recv_into(view)
        if not got:
            os._exit(0)
        view = view[got:]
    return bytes(buffer)
