"""The gate before every route, HTTP and WebSocket alike: host, origin, credentials. Nothing behind it decides that.

The Unix socket is the user's own (0600, and the kernel says who is there); TCP asks for everything, always.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException

from hitchpost.api.errors import error_body
from hitchpost.api.tokens import GUESS_S, OWNER, Tokens, csrf_of
from hitchpost.errors import HitchpostError

CSRF_HEADER = b"x-hitchpost-csrf"
SAFE_METHODS = ("GET", "HEAD")
MOST_BODY_BYTES = 4 << 20
LAUNCH = "/api/launch"
OPEN_PATHS = ("/", "/favicon.svg", "/manifest.webmanifest", "/sw.js")
OPEN_FOLDERS = ("/assets/",)
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    b"font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; "
    b"form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", POLICY),
    (b"cache-control", b"no-store"),
]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Refusal(HitchpostError):
    """Raised when a request is turned away before any route sees it."""

    def __init__(self, status: int, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.http_status, self.code = status, code


class Trusted:
    """For the Unix socket: whoever could open it is the owner."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            scope["state"] = {
                **scope.get("state", {}),
                "role": OWNER,
                "local": True,
                "actor": "cli",
                "cookie": "",
                "still_known": lambda: True,
            }
        await self.app(scope, bounded(receive), send)


class Gate:
    """For TCP. ``hosts`` are the exact values of Host, ``origins`` of Origin, that are ours."""

    def __init__(self, app: App, tokens: Tokens) -> None:
        self.app, self.tokens = app, tokens
        self.hosts: frozenset[str] = frozenset()
        self.origins: frozenset[str] = frozenset()

    def serve_at(self, port: int, names: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")) -> None:
        self.hosts = frozenset(f"{name}:{port}" for name in names)
        self.origins = frozenset(f"http://{host}" for host in self.hosts)
        self.tokens.serve_at(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope)
        try:
            role = self._role(scope, headers)
        except Refusal as refusal:
            await refuse(scope, receive, send, refusal)
            return
        except OSError as error:
            # who asks cannot be known now, which is not the same as not being known
            await refuse(scope, receive, send, Refusal(503, "system", f"cannot read the tokens: {error.strerror}"))
            return
        cookie = "" if headers.one(b"authorization") is not None else headers.cookie(self.tokens.cookie_name)
        state = {"role": role, "local": False, "cookie": cookie, "still_known": lambda: self._still_known(headers)}
        scope["state"] = {**scope.get("state", {}), **state, "actor": self._actor(headers)}

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                said = message.get("headers", [])
                cached = scope["path"].startswith(OPEN_FOLDERS) and any(key == b"cache-control" for key, _ in said)
                message["headers"] = [*said, *(one for one in HEADERS if not (cached and one[0] == b"cache-control"))]
            await send(message)

        await self.app(scope, bounded(receive), with_headers if scope["type"] == "http" else send)

    def _role(self, scope: Scope, headers: Headers) -> str:
        """Raises ``Refusal``. The order is the order of suspicion."""
        if headers.all(b"host") != 1 or headers.one(b"host") not in self.hosts:
            raise Refusal(403, "forbidden_host", "this host name is not ours", "open the URL that hitch up prints")
        origin = headers.one(b"origin")
        if origin is not None and origin not in self.origins:
            raise Refusal(403, "forbidden_origin", "requests from other pages are refused")
        path, method = scope["path"], scope.get("method", "GET")
        if scope["type"] == "websocket":
            return self._websocket_role(scope, headers, origin)
        if method in SAFE_METHODS and (path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)):
            return ""
        if path == LAUNCH and method == "POST":
            self._check_body(headers)
            return ""
        bearer = self._bearer(headers)
        if bearer is not None:
            if method not in SAFE_METHODS:
                self._check_body(headers)
            return bearer
        cookie = headers.cookie(self.tokens.cookie_name)
        role = self.tokens.of_cookie(cookie)
        if role is None:
            raise self._wrong(cookie, "sign in first", "hitch up prints a URL that signs you in")
        if method not in SAFE_METHODS:
            self._check_body(headers)
            said = headers.one(CSRF_HEADER) or ""
            if origin is None or not hmac.compare_digest(said.encode(), csrf_of(cookie).encode()):
                raise Refusal(403, "forbidden_csrf", "a cookie alone changes nothing", "send the page's own token")
        return role

    def _websocket_role(self, scope: Scope, headers: Headers, origin: str | None) -> str:
        bearer = self._bearer(headers)
        if bearer is not None:
            return bearer
        if origin is None:
            raise Refusal(403, "forbidden_origin", "a WebSocket needs an Origin")
        tickets = parse_qs(scope.get("query_string", b"").decode("ascii", "replace")).get("ticket", [])
        ticket = tickets[0] if len(tickets) == 1 else ""
        role = self.tokens.of_ticket(ticket, headers.cookie(self.tokens.cookie_name))
        if role is None:
            raise self._wrong(ticket, "a WebSocket needs a ticket", "POST /api/ws-ticket gives one")
        return role

    def _bearer(self, headers: Headers) -> str | None:
        """The role of a bearer token; None when there is none. A wrong one is refused, whatever else is there."""
        text = headers.one(b"authorization")
        if text is None:
            return None
        kind, _, token = text.partition(" ")
        role = self.tokens.of_bearer(token.strip()) if kind.lower() == "bearer" else None
        if role is None:
            raise self._wrong(token.strip(), "this token is not known", "hitch token create makes one")
        return role

    def _actor(self, headers: Headers) -> str:
        """Who was let in, as the story of a session names it."""
        authorization = headers.one(b"authorization")
        if authorization is None:
            return "browser"
        return f"token {self.tokens.bearer_name(authorization.partition(' ')[2].strip())}".strip()

    def _still_known(self, headers: Headers) -> bool:
        """Whether who was let in would be let in now. Who came with a ticket alone has nothing that could be asked."""
        authorization, cookie = headers.one(b"authorization"), headers.cookie(self.tokens.cookie_name)
        if authorization is not None:
            return self.tokens.of_bearer(authorization.partition(" ")[2].strip()) is not None
        return not cookie or self.tokens.of_cookie(cookie) is not None

    def _wrong(self, secret: str, message: str, hint: str) -> Refusal:
        """The answer to a secret that is not known. No secret is no guess."""
        if secret and self.tokens.guessed(secret):
            return Refusal(429, "too_many_guesses", "too many wrong secrets", "try again in a minute")
        return Refusal(401, "not_signed_in", message, hint)

    @staticmethod
    def _check_body(headers: Headers) -> None:
        """Forms of other sites can be sent without asking; JSON cannot."""
        kind = (headers.one(b"content-type") or "").partition(";")[0].strip(" \t").lower()
        length = headers.one(b"content-length") or "0"
        empty = length == "0" and headers.one(b"transfer-encoding") is None
        if kind != "application/json" and not (kind == "" and empty):
            raise Refusal(415, "not_json", "the body has to be application/json")
        if not length.isdecimal() or int(length[:20]) > MOST_BODY_BYTES:
            raise Refusal(413, "too_large", f"a body has at most {MOST_BODY_BYTES} bytes")


class Headers:
    def __init__(self, scope: Scope) -> None:
        self._items: list[tuple[bytes, bytes]] = scope["headers"]

    def all(self, name: bytes) -> int:
        return sum(key == name for key, _ in self._items)

    def one(self, name: bytes) -> str | None:
        """The header's value; None when it is missing. Said twice, it counts as something that nobody means."""
        found = [item for key, item in self._items if key == name]
        return None if not found else found[0].decode("latin-1") if len(found) == 1 else "\0"

    def cookie(self, name: str) -> str:
        """Our cookie; empty when there is none."""
        try:
            morsel = SimpleCookie(self.one(b"cookie") or "").get(name)
        except CookieError:
            return ""
        return morsel.value if morsel is not None else ""


def bounded(receive: Receive) -> Receive:
    """A body that turns out to be too large is not taken to its end."""
    taken = 0

    async def take() -> Message:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > MOST_BODY_BYTES:
                raise HTTPException(413, f"a body has at most {MOST_BODY_BYTES} bytes")
        return message

    return take


async def refuse(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    body = error_body(refusal.code, refusal.message, refusal.hint)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *HEADERS]
    if refusal.http_status == 429:
        headers.append((b"retry-after", str(int(GUESS_S)).encode()))
    if scope["type"] == "websocket":
        await receive()
        if "websocket.http.response" in scope.get("extensions", {}):
            start = {"type": "websocket.http.response.start", "status": refusal.http_status, "headers": headers}
            await send(start)
            await send({"type": "websocket.http.response.body", "body": body})
        else:
            await send({"type": "websocket.close", "code": 1008})
        return
    await send({"type": "http.response.start", "status": refusal.http_status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
