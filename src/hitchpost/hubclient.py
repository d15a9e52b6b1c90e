"""Asking the hub through its Unix socket, with the standard library only. Commands use it when a hub is there."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

from hitchpost.errors import HitchpostError, UsageError
from hitchpost.shortpath import ShortPath

SOCKET, LOCK, FILE, LOG = "hub.sock", "hub.lock", "hub.json", "hub.log"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
TIMEOUT_S = 60.0
EXIT_CODES = {401: 4, 403: 4, 404: 3, 409: 4, 422: 2}


class NoHub(HitchpostError):
    """Raised when no hub answers."""

    def __init__(self) -> None:
        super().__init__("the hub is not running", "hitch up starts it")


class HubRefused(HitchpostError):
    """Raised with the hub's own words."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.status = self.http_status = status
        self.exit_code = EXIT_CODES.get(status, 1)


def check_host(host: str) -> None:
    """Raises ``UsageError`` for an address that others could reach."""
    if host not in LOOPBACK:
        raise UsageError(f"will not listen on {host}: it is no loopback address, and there is no TLS yet")


class _Connection(http.client.HTTPConnection):
    def __init__(self, home: str, timeout_s: float) -> None:
        super().__init__("hub", timeout=timeout_s)
        self.home = home

    def connect(self) -> None:
        self.sock = connect(self.home, self.timeout or TIMEOUT_S)


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
    """The hub's answer. Raises ``NoHub``, or ``HubRefused`` with its error."""
    connection = _Connection(home, timeout_s)
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} if data is not None else {}
    try:
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        text = answer.read()
    except (OSError, http.client.HTTPException):
        raise NoHub from None
    finally:
        connection.close()
    value = json.loads(text) if text else None
    if answer.status >= 400:
        told = value["error"] if isinstance(value, dict) else {"message": f"HTTP {answer.status}"}
        raise HubRefused(answer.status, told["message"], told.get("hint", ""))
    return value
