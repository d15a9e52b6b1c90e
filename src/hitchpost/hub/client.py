"""Asking the hub through its Unix socket, with the standard library only. Commands use it when a hub is there."""

from __future__ import annotations

import http.client
import json
import os
import socket
import struct
from collections.abc import Mapping
from typing import Any

from hitchpost.errors import FAILURES, MALFORMED, HitchpostError
from hitchpost.store import files, locks
from hitchpost.system import process
from hitchpost.system.shortpath import ShortPath

SOCKET, LOCK, FILE, LOG = "hub.sock", "hub.lock", "hub.json", "hub.log"
TIMEOUT_S = 60.0
ANSWERS_S = 4.0
"""A hub that is well answers a small question within milliseconds."""
EXIT_CODES = {401: 4, 403: 4, 404: 3, 409: 4, 422: 2}
"""By status, where the answer does not say another."""


class NoHub(HitchpostError):
    """Raised when no hub answers."""

    def __init__(self, text: str = "the hub is not running", hint: str = "hitch up starts it") -> None:
        super().__init__(text, hint)


class SilentHub(NoHub):
    """Raised when a hub is there and does not answer in time. ``why``: it may answer in a moment."""

    def __init__(self, pid: int | None, why: str = "") -> None:
        self.pid = pid
        who = "" if pid is None else f" (pid {pid})"
        if pid is None or why:
            hint = "try again in a moment"
        elif is_stopped(pid):
            who, hint = " (process stopped)", f"kill -CONT {pid} resumes it, hitch down ends it"
        else:
            hint = "hitch down ends it; sessions keep running"
        super().__init__(": ".join(filter(None, (f"the hub does not answer{who}", why))), hint)


class UnreachedHub(SilentHub):
    """Raised when a hub has the home, and nobody listens on its socket or the exchange is broken off. A hub makes a
    socket that was removed again."""

    def __init__(self, pid: int | None, error: Exception) -> None:
        nobody_listens = isinstance(error, FileNotFoundError | ConnectionRefusedError)
        ways = "it starts or ends, or its socket was removed"
        super().__init__(pid, ways if nobody_listens else "it broke the connection off")


class HubRefused(HitchpostError):
    """Raised with the hub's own words. ``error`` is what its answer says, the words for the command line included."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        cli = error.get("cli") or {}
        super().__init__(error["message"], error.get("hint", ""), cli_hint=cli.get("hint", ""))
        self.status = self.http_status = status
        self.code = error.get("code", self.code)
        self.exit_code = cli.get("exit_code", EXIT_CODES.get(status, 1))


class _Connection(http.client.HTTPConnection):
    def __init__(self, home: str, timeout_s: float) -> None:
        super().__init__("hub", timeout=timeout_s)
        self.home = home

    def connect(self) -> None:
        self.sock = connect(self.home, self.timeout or TIMEOUT_S)


def is_up(home: str) -> bool:
    """Whether a hub serves the home. It holds the folder itself: what is in it can be deleted."""
    return locks.is_held(os.path.join(home, ".")) is True or locks.is_held(os.path.join(home, LOCK)) is True


def pid_of(home: str) -> int | None:
    """The hub's process: by the lock that it holds, by what it wrote down, or by who listens on its socket."""
    for identity in (_in_lock, _in_file):
        try:
            pid, start, boot = identity(home)
        except (*FAILURES, ValueError, KeyError, TypeError):
            continue
        if boot == process.boot_id() and process.start_time(pid) == start:
            return pid
    try:
        with connect(home, ANSWERS_S) as sock:
            pid, _, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    except OSError:
        return None
    return int(pid) or None


def _in_lock(home: str) -> tuple[int, int, str]:
    pid, start, boot = files.read_bytes(os.path.join(home, LOCK)).decode().split()
    return int(pid), int(start), boot


def _in_file(home: str) -> tuple[int, int, str]:
    value: dict[str, Any] = files.read_object(os.path.join(home, FILE))
    return int(value["pid"]), int(value["start"]), str(value["boot_id"])


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped the process (state T)."""
    stat = process.stat(pid)
    return stat is not None and stat[0] == b"T"


def connect(home: str, timeout_s: float) -> socket.socket:
    """Raises ``OSError`` when nobody listens."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(timeout_s)
    try:
        with ShortPath(home, SOCKET) as path:
            sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock


def ask(home: str, method: str, path: str, body: object = None, *, timeout_s: float = TIMEOUT_S) -> Any:
    """The hub's answer. Raises ``NoHub``, which may be a ``SilentHub``, or ``HubRefused`` with its error."""
    connection = _Connection(home, timeout_s)
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} if data is not None else {}
    try:
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        text = answer.read()
    except TimeoutError:
        raise SilentHub(pid_of(home)) from None
    except (OSError, http.client.HTTPException) as error:
        raise _unreached(home, error) from None
    finally:
        connection.close()
    return answered(answer.status, text)


def _unreached(home: str, error: Exception) -> NoHub:
    if not is_up(home):
        return NoHub()
    pid = pid_of(home)
    return SilentHub(pid) if pid is not None and is_stopped(pid) else UnreachedHub(pid, error)


def answered(status: int, text: bytes) -> Any:
    """What an answer's body says. Raises ``HubRefused``."""
    if status < 400:
        return json.loads(text) if text else None
    try:
        error = json.loads(text)["error"]
        error["message"]
    except MALFORMED:
        error = {"message": f"HTTP {status}"}  # of something in between, such as a proxy
    raise HubRefused(status, error)
