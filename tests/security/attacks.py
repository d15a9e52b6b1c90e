"""What attacks on the hub share: requests that no decent library would send, and the real route table."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from fastapi.routing import APIWebSocketRoute, iter_route_contexts

from hitchpost.api.app import build
from hitchpost.api.tokens import Tokens
from hitchpost.hub.core import Hub
from tests.hubs import HubProcess
from tests.support import eventually

JSON = ("Content-Type", "application/json")
LAUNCH = ("POST", "/api/launch")
PAGES = ("/", "/favicon.svg", "/manifest.webmanifest", "/sw.js")
UPGRADE = (
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", base64.b64encode(bytes(16)).decode()),
)

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: tuple[tuple[str, str], ...]
    text: str

    @property
    def code(self) -> str:
        """The error's own word."""
        return str(json.loads(self.text)["error"]["code"])

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(found) <= 1, f"{name} was said {len(found)} times"
        return found[0] if found else None

    def json(self) -> Any:
        return json.loads(self.text)


def host_of(hub: HubProcess) -> str:
    return urlsplit(hub.url).netloc


def connected(hub: HubProcess) -> socket.socket:
    """A connection to the hub's TCP port."""
    address = urlsplit(hub.url)
    assert address.hostname is not None
    return socket.create_connection((address.hostname, address.port or 80), timeout=20)


def raw(hub: HubProcess, request: bytes, method: str = "GET") -> Reply:
    """Send exactly these bytes over TCP, and read one answer. ``method`` says whether it can have a body."""
    with connected(hub) as sock:
        sock.sendall(request)
        answer = http.client.HTTPResponse(sock, method=method)
        try:
            answer.begin()
            text = "" if answer.status == 101 else answer.read().decode()
            return Reply(answer.status, tuple(answer.getheaders()), text)
        finally:
            answer.close()


def ask(
    hub: HubProcess, method: str, target: str, headers: Headers = (), body: bytes = b"", *, host: str | None = ""
) -> Reply:
    """One request with these headers. ``host`` is ours when it is empty; None leaves it out."""
    hosts = [] if host is None else [("Host", host or host_of(hub))]
    lengths = [("Content-Length", str(len(body)))] if body else []
    ends = [] if any(name == "Connection" for name, _ in headers) else [("Connection", "close")]
    lines = [f"{name}: {value}\r\n" for name, value in (*hosts, *headers, *lengths, *ends)]
    return raw(hub, f"{method} {target} HTTP/1.1\r\n{''.join(lines)}\r\n".encode("latin-1") + body, method)


def knock(hub: HubProcess, target: str = "/ws", headers: Headers = (), *, host: str | None = "") -> Reply:
    """Ask for a WebSocket: 101 when it was opened."""
    return ask(hub, "GET", target, (*UPGRADE, *headers), host=host)


def until_running(hub: HubProcess, session: str) -> None:
    """Wait until the hub has heard of a session that it did not start."""

    def states() -> dict[str, str]:
        return {row["id"]: row["state"] for row in hub.ask("GET", "/api/sessions")}

    eventually(lambda: states().get(session) == "running", what="the hub to know the session")


def bearer(hub: HubProcess, role: str = "owner") -> tuple[str, str]:
    return "Authorization", f"Bearer {hub.token(role)}"


def cookie_name(hub: HubProcess) -> str:
    return f"hitchpost-{hub.url.rpartition(':')[2]}"


@dataclass(frozen=True, slots=True)
class Page:
    """A browser's page that has signed in."""

    hub: HubProcess
    cookie: str
    csrf: str

    @property
    def signed(self) -> Headers:
        return (("Cookie", f"{cookie_name(self.hub)}={self.cookie}"),)

    @property
    def ours(self) -> Headers:
        """Everything that our own page sends with a change."""
        return (*self.signed, ("Origin", self.hub.url), ("X-Hitchpost-CSRF", self.csrf), JSON)

    def ticket(self) -> str:
        return str(ask(self.hub, "POST", "/api/ws-ticket", self.ours).json()["ticket"])


def launch_code(hub: HubProcess) -> str:
    return str(hub.ask("POST", "/api/launch-code")["launch_url"].partition("#code=")[2])


def launch(hub: HubProcess, code: str, headers: Headers = (JSON,)) -> Reply:
    return ask(hub, "POST", "/api/launch", headers, json.dumps({"code": code}).encode())


def sign_in(hub: HubProcess) -> Page:
    answer = launch(hub, launch_code(hub))
    assert answer.status == 200, answer
    given = re.match(rf"{cookie_name(hub)}=([^;]+);", answer.header("Set-Cookie") or "")
    assert given is not None, answer
    return Page(hub, given[1], answer.json()["csrf"])


def ways(session: str = "nobody") -> list[tuple[str, str]]:
    """Method and path of every route there is, as the hub's process has them; ``WS`` for WebSockets."""
    home = os.environ["HITCHPOST_HOME"]
    app, _ = build(Hub(home), Tokens(home))
    found = []
    for route in iter_route_contexts(app.routes):
        assert route.path, f"{route} has no path to attack"
        path = re.sub(r"\{[^}]*\}", lambda _: session, route.path)
        if isinstance(route.original_route, APIWebSocketRoute):
            found.append(("WS", path))
            continue
        assert route.methods, f"{path} answers to methods that nobody has listed"
        found += [(method, path) for method in sorted(route.methods)]
    assert ("WS", "/ws") in found
    assert LAUNCH in found
    assert len(found) > 25
    return [way for way in found if way[1] not in PAGES and not way[1].startswith("/assets")]


def walk(hub: HubProcess, way: tuple[str, str], headers: Headers = (), *, host: str | None = "") -> Reply:
    """One request to a route of the table, with a body where its method has one."""
    method, path = way
    if method == "WS":
        return knock(hub, path, headers, host=host)
    if method in ("GET", "HEAD", "DELETE"):
        return ask(hub, method, path, headers, host=host)
    return ask(hub, method, path, (*headers, JSON), b"{}", host=host)
