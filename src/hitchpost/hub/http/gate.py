"""The gate before every route, HTTP and WebSocket alike: host, origin, credentials. Nothing behind it decides that.

The Unix socket is the user's own (0600, and the kernel says who is there); TCP asks for everything, always.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, MutableMapping
from typing import Any, cast
from weakref import WeakValueDictionary

from starlette.exceptions import HTTPException

from hitchpost.errors import HitchpostError
from hitchpost.hub.address import host_of
from hitchpost.hub.http.connections import STRANGER, recognise, share_of
from hitchpost.hub.http.errors import error_body
from hitchpost.hub.http.grants import OWNER, Grant
from hitchpost.hub.http.in_progress import Held
from hitchpost.hub.http.proxy import Proxy
from hitchpost.hub.http.tokenfile import BROWSER, Credential, UserExists
from hitchpost.hub.http.tokens import GUESS_S, Tokens
from hitchpost.hub.tasks import Tasks
from hitchpost.model.people import Person, checked_name

SAFE_METHODS = ("GET", "HEAD")
MOST_BODY_BYTES = 4 << 20
MOST_OF_SOME_BYTES = 1 << 20
"""Of an owner of some sessions: a prompt has half of that."""
MOST_SMALL_BYTES = 4096
"""Of somebody who has not signed in yet, or changes nothing."""
MOST_AT_ONCE = 8
CHALLENGE, SIGN_IN_PATH = "/api/sign-in/challenge", "/api/sign-in"
SIGN_IN = (CHALLENGE, SIGN_IN_PATH)
OPEN_PATHS = ("/", "/favicon.svg", "/manifest.webmanifest", "/sw.js")
OPEN_FOLDERS = ("/assets/",)
CACHED = (*OPEN_FOLDERS, "/sw.js")
UNKNOWN_HOST = "open the URL that hitch up prints; for a tunnel or a proxy, start the hub with --public-url"
NOBODY = Grant("", frozenset())
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
Receive = Callable[[], Coroutine[Any, Any, Message]]
Send = Callable[[Message], Coroutine[Any, Any, None]]
App = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]


class Refusal(HitchpostError):
    """Raised when a request is turned away before any route sees it."""

    def __init__(self, status: int, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.http_status, self.code = status, code


class Trusted:
    """For the Unix socket: its peer is the owner, unless the kernel says that the process may not speak here."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            if why := scope.get("state", {}).get(STRANGER, "nobody has looked who it is"):
                refusal = Refusal(403, "forbidden_peer", f"this process may not speak here: {why}")
                await refuse(scope, receive, send, refusal)
                return
            state = {"grant": Grant(OWNER), "local": True, "actor": "cli", "held": None, "origins": frozenset()}
            scope["state"] = {**scope.get("state", {}), **state}
        await self.app(scope, bounded(receive), send)


class Gate:
    """For TCP. ``hosts`` and ``origins`` are the exact values of Host and Origin that are ours."""

    def __init__(self, app: App, tokens: Tokens) -> None:
        self.app, self.tokens = app, tokens
        self.proxy: Proxy | None = None
        """Who may say that somebody is signed in; nobody, unless the settings say so."""
        self.hosts: frozenset[str] = frozenset()
        self.origins: frozenset[str] = frozenset()
        self._tasks = Tasks("gate")
        self._lines: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """Of requests, one for each sign-in that is not an owner's of everything."""

    def serve_at(self, origins: Iterable[str]) -> None:
        self.origins = frozenset(origins)
        self.hosts = frozenset(map(host_of, self.origins))

    async def close(self) -> None:
        await self._tasks.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        await self.tokens.refresh()
        headers = Headers(scope)
        try:
            credential = self._who(scope, headers, await self._by_proxy(headers))
        except Refusal as refusal:
            await refuse(scope, receive, send, refusal)
            return
        except OSError as error:
            # nobody can tell now who asks, which is not the same as a wrong secret
            await refuse(scope, receive, send, Refusal(503, "system", f"cannot read the tokens: {error.strerror}"))
            return
        if credential is not None:
            recognise(scope, credential)
        state = {"grant": NOBODY, "local": False, "actor": "", "held": None, "origins": self.origins}
        scope["state"] = {**scope.get("state", {}), **state}
        started = False

        async def with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = message.get("headers", [])
                cached = scope["path"].startswith(CACHED) and any(name == b"cache-control" for name, _ in headers)
                ours = [header for header in HEADERS if not (cached and header[0] == b"cache-control")]
                message["headers"] = [*headers, *ours]
            await send(message)

        taken = bounded(receive, MOST_SMALL_BYTES if credential is None else most_body(credential))
        if credential is None:
            scope["query_string"] = b""  # nothing that anybody may ask for has one, and to take one apart takes long
            await self.app(scope, taken, with_headers)
            return
        self._note_use(credential)
        held = Held(credential, cast("asyncio.Task[None]", asyncio.current_task()).cancel)
        scope["state"] |= {"grant": credential.grant, "actor": _actor(credential), "held": held}
        if scope["type"] == "http":
            work = self._in_line(credential, scope, taken, with_headers)
        else:
            work = self.app(scope, taken, send)
        await self.tokens.live.serve(held, work)
        if held.gone and not started and scope["type"] == "http":
            await refuse(scope, receive, send, Refusal(401, "not_signed_in", "signed out meanwhile"))

    async def _in_line(self, credential: Credential, scope: Scope, receive: Receive, send: Send) -> None:
        """Only so many requests of one sign-in are answered at once, and for only so much of the hub's time; the others
        wait, and so does each part of a long answer."""
        share = share_of(scope)
        if share is None:
            await self.app(scope, receive, send)
            return

        async def send_in_turn(message: Message) -> None:
            await share.turn()
            await send(message)

        line = self._lines.setdefault(credential.key, asyncio.Semaphore(MOST_AT_ONCE))
        async with line:
            await share.turn()
            await share.pay(self.app(scope, receive, send_in_turn))

    async def _by_proxy(self, headers: Headers) -> Credential | None:
        """Whom the proxy has signed in, if it is the proxy; somebody new is added where the settings say so.

        Raises ``Refusal`` for somebody whom nobody knows.
        """
        named = None if self.proxy is None else self.proxy.named(headers)
        if named is None or self.proxy is None:
            return None
        self._check_place(headers)
        try:
            name = checked_name(named)
            if self.proxy.role and self.tokens.of_person(name) is None:
                try:
                    await asyncio.to_thread(self.tokens.file.add_person, Person(name, self.proxy.role))
                except UserExists:
                    pass  # by another request, in this moment
                await self.tokens.refresh()
        except HitchpostError as error:
            raise Refusal(403 if error.http_status < 500 else error.http_status, error.code, error.message) from None
        credential = self.tokens.of_person(name)
        if credential is None:
            raise Refusal(403, "unknown_user", f"{name} is signed in, but is no user here", "an owner can add you")
        return credential

    def _check_page(self, scope: Scope, headers: Headers) -> None:
        """A browser sends the proxy's cookie with requests of any page. Our own page says that it is ours: in Origin
        where something changes, and for all else in Sec-Fetch-Site. Raises ``Refusal``."""
        is_safe = scope["type"] == "http" and scope.get("method", "GET") in SAFE_METHODS
        comes_from = headers.value(b"sec-fetch-site") if is_safe else "unknown"
        if comes_from not in (None, "same-origin", "none") and headers.value(b"origin") not in self.origins:
            raise Refusal(403, "forbidden_origin", "requests from other pages are refused")

    def _check_place(self, headers: Headers) -> None:
        """Host and Origin are exactly ours. Raises ``Refusal``."""
        if headers.count(b"host") != 1 or headers.value(b"host") not in self.hosts:
            raise Refusal(403, "forbidden_host", "this is not the hub's host name", UNKNOWN_HOST)
        origin = headers.value(b"origin")
        if origin is not None and origin not in self.origins:
            raise Refusal(403, "forbidden_origin", "requests from other pages are refused")

    def _who(self, scope: Scope, headers: Headers, by_proxy: Credential | None) -> Credential | None:
        """The caller's credential; None where nobody needs one. Raises ``Refusal``. Host and Origin come first.

        What the caller has itself counts first, and then who came by the proxy.
        """
        self._check_place(headers)
        origin = headers.value(b"origin")
        path, method = scope["path"], scope.get("method", "GET")
        if scope["type"] == "websocket":
            return self._who_connects(scope, headers, origin, by_proxy)
        if method in SAFE_METHODS and (path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)):
            return None
        if path in SIGN_IN and method == "POST":
            self._check_body(headers, MOST_SMALL_BYTES)
            if headers.value(b"transfer-encoding") is not None:
                raise Refusal(413, "too_large", f"a body has at most {MOST_SMALL_BYTES} bytes, and states its length")
            return None
        credential = self._bearer(scope, headers, by_proxy)
        if credential is None:
            raise Refusal(401, "not_signed_in", "sign in first", "hitch up prints a URL that signs you in")
        if method not in SAFE_METHODS:
            self._check_body(headers, most_body(credential))
        return credential

    def _who_connects(
        self, scope: Scope, headers: Headers, origin: str | None, by_proxy: Credential | None
    ) -> Credential:
        """A script has its token; a page cannot send one with a WebSocket, and has a ticket."""
        credential = self._bearer(scope, headers, by_proxy)
        if credential is None:
            if origin is None:
                raise Refusal(403, "forbidden_origin", "a WebSocket needs an Origin")
            name, _, ticket = scope.get("query_string", b"").decode("ascii", "replace").partition("=")
            ticket = ticket if name == "ticket" else ""
            credential = self.tokens.of_ticket(ticket)
            if credential is None:
                raise self._wrong(ticket, "a WebSocket needs a ticket", "POST /api/ws-ticket gives one")
        return credential

    def _bearer(self, scope: Scope, headers: Headers, by_proxy: Credential | None) -> Credential | None:
        """The credential of the bearer token, else of who came by the proxy; None without either. A wrong token is
        refused, unless the proxy knows who has sent it: then it is one of the proxy's own."""
        text = headers.value(b"authorization")
        kind, _, token = (text or "").partition(" ")
        credential = self.tokens.of_bearer(token.strip()) if kind.lower() == "bearer" else None
        if credential is None and by_proxy is not None:
            self._check_page(scope, headers)
            return by_proxy
        if credential is None and text is not None:
            raise self._wrong(token.strip(), "this token is not known", "hitch token create makes one")
        return credential

    def _wrong(self, secret: str, message: str, hint: str) -> Refusal:
        """The answer to a wrong secret. None at all does not count as a guess."""
        if secret and self.tokens.guessed(secret):
            return Refusal(429, "too_many_guesses", "too many wrong secrets", "try again in a minute")
        return Refusal(401, "not_signed_in", message, hint)

    def _note_use(self, credential: Credential) -> None:
        """In a thread, at most every ten minutes: nobody waits for it."""
        if self.tokens.is_use_due(credential):
            self._tasks.start(asyncio.to_thread(self.tokens.note_use, credential.key))

    @staticmethod
    def _check_body(headers: Headers, most: int) -> None:
        """Forms of other sites can be sent without asking; JSON cannot."""
        kind = (headers.value(b"content-type") or "").partition(";")[0].strip(" \t").lower()
        length = headers.value(b"content-length") or "0"
        empty = length == "0" and headers.value(b"transfer-encoding") is None
        if kind != "application/json" and not (kind == "" and empty):
            raise Refusal(415, "not_json", "the body has to be application/json")
        if not length.isdecimal() or int(length[:20]) > most:
            raise Refusal(413, "too_large", f"a body has at most {most} bytes")


class Headers:
    def __init__(self, scope: Scope) -> None:
        self._items: list[tuple[bytes, bytes]] = scope["headers"]

    def count(self, name: bytes) -> int:
        return sum(key == name for key, _ in self._items)

    def value(self, name: bytes) -> str | None:
        """The header's value; None when it is missing. One that is sent twice is as good as wrong."""
        values = [item for key, item in self._items if key == name]
        return None if not values else values[0].decode("latin-1") if len(values) == 1 else "\0"


def _actor(credential: Credential) -> str:
    """Who was let in, as the story of a session names it."""
    if credential.grant.user:
        return credential.grant.user
    return "browser" if credential.kind == BROWSER else f"token {credential.name}".strip()


def most_body(credential: Credential) -> int:
    """A viewer has nothing to say that is long."""
    if not credential.grant.may_drive:
        return MOST_SMALL_BYTES
    return MOST_BODY_BYTES if credential.grant.is_whole else MOST_OF_SOME_BYTES


def bounded(receive: Receive, most: int = MOST_BODY_BYTES) -> Receive:
    """A body that turns out to be too large is not taken to its end."""
    taken = 0

    async def take() -> Message:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > most:
                raise HTTPException(413, f"a body has at most {most} bytes")
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
