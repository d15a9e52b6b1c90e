"""Who may ask: one-time codes for the launch URL, cookies, bearer tokens, and tickets for WebSockets.

Codes and tickets are kept in memory. Bearer tokens and cookies outlive the hub: their digests are in a file.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

import structlog

from hitchpost.api.tokenfile import BROWSER, SCRIPT, TokenFile, digest
from hitchpost.errors import HitchpostError

CODE_S = 60.0
TICKET_S = 30.0
MOST_GUESSES = 20
GUESS_S = 60.0
OWNER, VIEWER = "owner", "viewer"

log = structlog.get_logger()


class Tokens:
    """Every kind of secret, with the role that it gives."""

    def __init__(
        self, home: str, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self.clock = clock
        self.file = TokenFile(home, wall)
        self.cookie_name = "hitchpost"
        self._codes: dict[str, float] = {}
        self._tickets: dict[str, tuple[float, str]] = {}
        self._unwritten: dict[str, str] = {}
        self._guesses: dict[str, float] = {}

    def serve_at(self, port: int) -> None:
        """Browsers send a cookie to every port of a host: a name with the port keeps the cookies of two hubs apart."""
        self.cookie_name = f"hitchpost-{port}"

    def new_code(self) -> str:
        """For one launch within a minute."""
        now = self.clock()
        self._codes = {key: until for key, until in self._codes.items() if until > now}
        code = secrets.token_urlsafe(24)
        self._codes[digest(code)] = now + CODE_S
        return code

    def redeem(self, code: str) -> str | None:
        """A cookie for a code, once. It waits for the disk; one that cannot be written down lasts as the hub does."""
        until = self._codes.pop(digest(code), 0.0)
        if self.clock() >= until:
            return None
        cookie = secrets.token_urlsafe(32)
        try:
            self.file.add(BROWSER, cookie, OWNER)
        except (HitchpostError, OSError) as error:
            log.warning("a sign-in could not be written down", why=str(error))
            self._unwritten[digest(cookie)] = OWNER
        return cookie

    def of_cookie(self, cookie: str) -> str | None:
        return self._unwritten.get(digest(cookie)) or self.file.role(BROWSER, cookie)

    def sign_out(self, cookie: str) -> None:
        """Raises what writing raises: nobody is to believe that a cookie is worth nothing which still is."""
        if self._unwritten.pop(digest(cookie), None) is None:
            self.file.remove(digest(cookie))

    def new_ticket(self, role: str, cookie: str = "") -> str:
        """For one WebSocket within half a minute, of the page that has the cookie."""
        now = self.clock()
        self._tickets = {key: item for key, item in self._tickets.items() if item[0] > now}
        ticket = secrets.token_urlsafe(24)
        self._tickets[digest(f"{ticket}\n{cookie}")] = (now + TICKET_S, role)
        return ticket

    def of_ticket(self, ticket: str, cookie: str = "") -> str | None:
        until, role = self._tickets.pop(digest(f"{ticket}\n{cookie}"), (0.0, ""))
        return role if self.clock() < until else None

    def guessed(self, secret: str) -> bool:
        """Count a wrong secret; True when there have been too many of late.

        The same one again is no further guess: a page whose cookie is of an earlier hub asks as often as it likes.
        """
        now = self.clock()
        self._guesses = {key: at for key, at in self._guesses.items() if at > now - GUESS_S}
        known = digest(secret)
        if known in self._guesses:
            return False
        if len(self._guesses) >= MOST_GUESSES:
            return True
        self._guesses[known] = now
        return False

    def of_bearer(self, token: str) -> str | None:
        return self.file.role(SCRIPT, token)

    def bearer_name(self, token: str) -> str:
        return self.file.name(SCRIPT, token)


def csrf_of(cookie: str) -> str:
    """What a page that has the cookie must say in a header to change anything: another site cannot read it."""
    return hmac.new(cookie.encode(), b"hitchpost csrf", hashlib.sha256).hexdigest()


def create_bearer(home: str, name: str, role: str) -> str:
    """A new token for scripts. It is shown once; the file has its digest."""
    token = secrets.token_urlsafe(32)
    TokenFile(home).add(SCRIPT, token, role, name)
    return token
