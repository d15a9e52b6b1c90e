"""Who may ask: one-time codes for the launch URL, cookies, bearer tokens, and tickets for WebSockets.

Secrets are kept in memory; of bearer tokens, which outlive the hub, the file has only digests.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable

from hitchpost.state import files

CODE_S = 60.0
TICKET_S = 30.0
COOKIE_S = 30 * 24 * 3600.0
MOST_GUESSES = 20
GUESS_S = 60.0
OWNER, VIEWER = "owner", "viewer"
FILE = "tokens.json"


class Tokens:
    """Every kind of secret, with the role that it gives."""

    def __init__(self, home: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.path, self.clock = os.path.join(home, FILE), clock
        self._codes: dict[str, float] = {}
        self._tickets: dict[str, tuple[float, str]] = {}
        self._cookies: dict[str, tuple[float, str]] = {}
        self._guesses: dict[str, float] = {}

    def new_code(self) -> str:
        """For one launch within a minute."""
        now = self.clock()
        self._codes = {key: until for key, until in self._codes.items() if until > now}
        code = secrets.token_urlsafe(24)
        self._codes[digest(code)] = now + CODE_S
        return code

    def redeem(self, code: str) -> str | None:
        """A cookie for a code, once."""
        until = self._codes.pop(digest(code), 0.0)
        if self.clock() >= until:
            return None
        cookie = secrets.token_urlsafe(32)
        self._cookies[digest(cookie)] = (self.clock() + COOKIE_S, OWNER)
        return cookie

    def of_cookie(self, cookie: str) -> str | None:
        until, role = self._cookies.get(digest(cookie), (0.0, ""))
        return role if self.clock() < until else None

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
        known = digest(token)
        for one, role in read_bearers(self.path).items():
            if hmac.compare_digest(one, known):
                return role
        return None


def csrf_of(cookie: str) -> str:
    """What a page that has the cookie must say in a header to change anything: another site cannot read it."""
    return hmac.new(cookie.encode(), b"hitchpost csrf", hashlib.sha256).hexdigest()


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def read_bearers(path: str) -> dict[str, str]:
    try:
        value = files.read_object(path).get("tokens")
    except (FileNotFoundError, files.Unreadable, files.NewerSchema):
        return {}
    if not isinstance(value, dict):
        return {}
    return {str(key): str(item["role"]) for key, item in value.items() if isinstance(item, dict) and "role" in item}


def create_bearer(home: str, name: str, role: str) -> str:
    """A new token for scripts. It is shown once; the file has its digest."""
    path = os.path.join(home, FILE)
    token = secrets.token_urlsafe(32)
    with files.Lock(f"{path}.lock"):
        try:
            known = files.read_object(path).get("tokens")
        except FileNotFoundError:
            known = {}
        kept = dict(known) if isinstance(known, dict) else {}
        kept[digest(token)] = {"name": name, "role": role, "created_at": files.stamp()}
        files.write_object(path, {"schema": files.SCHEMA, "tokens": kept})
    return token
