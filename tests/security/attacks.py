"""What attacks on the hub share: requests that no decent library would send, and the real route table."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from fastapi.routing import APIRoute, APIWebSocketRoute, iter_route_contexts

from hitchpost.hub.core import Hub
from hitchpost.hub.http.app import build
from hitchpost.hub.http.tokens import Tokens
from tests.hubs import HubProcess
from tests.signing import challenged, proved, taken_apart
from tests.support import eventually

JSON = ("Content-Type", "application/json")
SIGN_IN = (("POST", "/api/sign-in/challenge"), ("POST", "/api/sign-in"))
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
            text = "" if answer.status == 101 else answer.read().decode("utf-8", "replace")
            return Reply(answer.status, tuple(answer.getheaders()), text)
        finally:
            answer.close()


def everything(hub: HubProcess, request: bytes) -> bytes:
    """What the hub says to exactly these bytes until it hangs up."""
    said = b""
    with connected(hub) as sock, suppress(ConnectionResetError):
        sock.sendall(request)
        while part := sock.recv(1 << 16):
            said += part
    return said


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


@dataclass(frozen=True, slots=True)
class Page:
    """A browser's page that has signed in. ``name`` and ``secret`` are what the browser keeps."""

    hub: HubProcess
    token: str
    name: str
    secret: bytes

    @property
    def signed(self) -> Headers:
        return (("Authorization", f"Bearer {self.token}"),)

    @property
    def ours(self) -> Headers:
        """Everything that our own page sends with a change."""
        return (*self.signed, ("Origin", self.hub.url), JSON)

    def ticket(self) -> str:
        return str(ask(self.hub, "POST", "/api/ws-ticket", self.ours).json()["ticket"])

    def again(self) -> Page | None:
        """Another load of the page, in the same browser; None when the hub does not know it any more."""
        exchange = challenged(self.hub.url, self.name, self.secret)
        if not exchange.is_the_hub:
            return None
        status, answer = proved(exchange)
        assert status == 200, answer
        assert answer["id"] == self.name
        return Page(self.hub, answer["token"], self.name, self.secret)


def launch_code(hub: HubProcess, **wish: Any) -> str:
    return str(hub.ask("POST", "/api/launch-code", wish or None)["launch_url"].partition("#code=")[2])


def sign_in(hub: HubProcess, **wish: Any) -> Page:
    exchange = challenged(hub.url, *taken_apart(launch_code(hub, **wish)))
    assert exchange.is_the_hub
    status, answer = proved(exchange)
    assert status == 200, answer
    return Page(hub, answer["token"], answer["id"], exchange.browser_secret)


def ways(session: str = "nobody") -> list[tuple[str, str]]:
    """Method and path of every route there is, as the hub's process has them; ``WS`` for WebSockets."""
    home = os.environ["HITCHPOST_HOME"]
    app, _ = build(Hub(home), Tokens(home))
    found = []
    asked = {"session": session, "since": "2026-01-01T00:00:00Z", "within_s": "0"}
    for route in iter_route_contexts(app.routes):
        assert route.path, f"{route} has no path to attack"
        path = re.sub(r"\{[^}]*\}", lambda _: session, route.path)
        if isinstance(route.original_route, APIRoute):  # also where a query names the session
            names = [field.name for field in route.original_route.dependant.query_params]
            query = urlencode({name: asked[name] for name in names if name in asked})
            path += f"?{query}" if query else ""
        if isinstance(route.original_route, APIWebSocketRoute):
            found.append(("WS", path))
            continue
        assert route.methods, f"{path} answers to methods that nobody has listed"
        found += [(method, path) for method in sorted(route.methods)]
    assert ("WS", "/ws") in found
    assert set(SIGN_IN) <= set(found)
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
