"""Why a container has ended. Its engine knows, and is asked when nothing is left to run: it may hang, or be gone."""

from __future__ import annotations

import os
import time
from _socket import AF_UNIX, SOCK_STREAM, socket

from hitchpost import lightjson
from hitchpost.model import run as runs
from hitchpost.system.shortpath import ShortPath

ANSWER_S = 2.0
SETTLES_S = 0.3
"""How long a container that is being removed may still look stopped: Podman stops it first, then removes it."""
ROUND_S = 0.01
MOST_BYTES = 1 << 20
GOING = ("removing", "dead")
NOT_FOUND = b"404"
PODMAN = b"libpod"
"""In its answers. It is no daemon: its containers do not end with it, and it forgets what happened to them."""


def why_ended(engine: str, container: str, first: int) -> str:
    """A reason for a run's end. ``first`` is the container's first process, which is dead."""
    began = time.monotonic()
    try:
        while (left_s := began + ANSWER_S - time.monotonic()) > 0:
            head, body = _get(engine, f"/containers/{container}/json", left_s)
            shown = lightjson.loads(body)
            state = shown.get("State") if isinstance(shown, dict) else None
            if head.split()[1] == NOT_FOUND or (isinstance(state, dict) and state.get("Status") in GOING):
                return runs.CONTAINER_REMOVED
            noticed = isinstance(state, dict) and (state.get("Running") is not True or state.get("Pid") != first)
            if noticed and time.monotonic() - began > SETTLES_S:
                seen = PODMAN in head.lower() or _remembers(engine, container, left_s)
                return runs.CONTAINER_STOPPED if seen else runs.ENGINE_ENDED
            time.sleep(ROUND_S)
    except (ConnectionError, FileNotFoundError):
        return runs.ENGINE_ENDED
    except (OSError, ValueError):
        pass  # it hangs, or is not ours to ask
    return runs.CONTAINER_STOPPED


def _remembers(engine: str, container: str, left_s: float) -> bool:
    """Whether the engine saw the container's end: one that has been started since then knows nothing of it."""
    chosen = f"%7B%22container%22%3A%5B%22{container}%22%5D%2C%22event%22%3A%5B%22die%22%5D%7D"
    return bool(_get(engine, f"/events?since=1&until={time.time():.9f}&filters={chosen}", left_s)[1].strip())


def _get(engine: str, path: str, timeout_s: float) -> tuple[bytes, bytes]:
    """Head and body of an answer."""
    folder, name = os.path.split(engine.removeprefix("unix://"))
    link = socket(AF_UNIX, SOCK_STREAM, 0)
    try:
        link.settimeout(timeout_s)
        with ShortPath(folder, name) as place:
            link.connect(place)
        link.sendall(f"GET {path} HTTP/1.0\r\nHost: engine\r\n\r\n".encode())
        said = bytearray()
        while len(said) < MOST_BYTES and (part := link.recv(65536)):
            said += part
    finally:
        link.close()
    head, _, body = bytes(said).partition(b"\r\n\r\n")
    if not head:
        raise ConnectionResetError("the engine hung up")
    return head, body
