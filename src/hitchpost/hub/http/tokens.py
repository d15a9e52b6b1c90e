"""Every secret that lets somebody in: launch codes, browsers' sign-ins, scripts' tokens, tickets for WebSockets.

Codes, challenges, tickets and the tokens of signed-in pages are kept in memory and die with the hub: whoever takes its
port afterwards hears nothing that the next hub knows. Browsers and scripts are in a file, by their digests. In a fleet
codes are there, too: any hub takes them, and the change that adds the browser uses the code up, so it counts once.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from hitchpost.errors import FAILURES, DatabaseAway, Refused
from hitchpost.hub.http.grants import MEMBER, OWNER, Grant
from hitchpost.hub.http.in_progress import Live
from hitchpost.hub.http.proof import SECRET_BYTES, Hello, Verifier, browser_secret, encoded, opened, sealed
from hitchpost.hub.http.tokencache import TokenCache
from hitchpost.hub.http.tokenfile import (
    BROWSER,
    BROWSER_S,
    ID_LENGTH,
    LINK,
    PROXY,
    SCRIPT,
    Credential,
    Guard,
    TokenFile,
    digest,
)
from hitchpost.store import files

CODE_S, LONGEST_CODE_S = 60.0, 86400.0
CHALLENGE_S = 60.0
TICKET_S = 30.0
MOST_CHALLENGES = 4096
MOST_TOKENS = 64
"""Of one browser: each load of a page has its own."""
BY_PROXY = "proxy "
"""How the key of somebody begins whom a proxy has signed in: it is in no file. No digest and no id begins so."""
MOST_GUESSES = 20
GUESS_S = 60.0
USED_EVERY_S = 600.0
"""How old the time may be that the file tells as the last use."""
WRITTEN_AGAIN_S = 10.0
"""Until it is tried again to write down a browser: what is not in the file, nobody can list or take back."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Code:
    until: float
    secret: bytes
    verifier: Verifier
    grant: Grant


class Tokens:
    """Makes secrets, and finds the credential that a secret belongs to. ``owner`` is one that is in no file of ours,
    ``guard`` what is entered around changes of a file that all hubs of a fleet have."""

    def __init__(
        self,
        home: str,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        owner: Credential | None = None,
        guard: Guard = nullcontext,
    ) -> None:
        self.clock, self.owner = clock, owner
        self.file = TokenFile(home, wall, guard)
        self.is_shared = guard is not nullcontext
        self.cache = TokenCache(self.file, self._file_changed)
        self.live = Live(self.find, self.cache.refresh, lambda: self.cache.is_watched, wall)
        self._codes: dict[str, Code] = {}
        self._challenges: dict[str, tuple[float, Hello]] = {}
        self._pages: dict[str, str] = {}
        """Digests of pages' tokens, and the keys of their browsers."""
        self._tickets: dict[str, tuple[float, str]] = {}
        self._unwritten: dict[str, Credential] = {}
        self._redeeming: dict[str, tuple[str, Credential]] = {}
        """Browsers that have shown a link of the fleet, and its key. They are nobody before it is used up for them."""
        self._guesses: dict[str, float] = {}
        self._noted: dict[str, float] = {}
        self._nobody = secrets.token_bytes(SECRET_BYTES)

    def open(self) -> None:
        """Hear of every change of the file from now on. Until then, and in commands, each look reads the file."""
        self.cache.open()

    async def close(self) -> None:
        await self.live.close()
        self.cache.close()

    async def refresh(self) -> None:
        """Call it before you ask for a credential: then ``find`` does not wait for the disk."""
        await self.cache.refresh()

    def find(self, key: str) -> Credential | None:
        """The credential that has the key now. Raises ``OSError`` when that cannot be told."""
        if self.owner is not None and hmac.compare_digest(self.owner.key.encode(), key.encode()):
            return self.owner
        if key.startswith(BY_PROXY):
            return self.of_person(key.removeprefix(BY_PROXY))
        credential = self._unwritten.get(key)
        if credential is None:
            return self.cache.find(key)
        return self.cache.known.in_force(credential) if credential.grant.holds(self.file.now()) else None

    def of_person(self, name: str) -> Credential | None:
        """Of somebody whom a proxy has signed in; None when there is nobody of that name here."""
        return self.cache.known.in_force(Credential(f"{BY_PROXY}{name}", PROXY, Grant(OWNER, user=name), name))

    def _file_changed(self) -> None:
        self.live.request_check()

    # signing in -------------------------------------------------------------------------------------------------

    async def launch_code(self, grant: Grant, lasts_s: float) -> str:
        """A code that every hub of a fleet takes; on one machine, and while PostgreSQL is away, this hub alone."""
        if self.is_shared:
            try:
                return await asyncio.to_thread(self._shared_code, grant, lasts_s)
            except DatabaseAway as error:
                log.warning("only this hub takes a new launch link", why=str(error))
        return self.new_code(grant, lasts_s)

    def _shared_code(self, grant: Grant, lasts_s: float) -> str:
        name, secret = secrets.token_hex(ID_LENGTH), secrets.token_bytes(SECRET_BYTES)
        ends = replace(grant, expires_at=self.file.in_s(lasts_s))
        self.file.add(Credential(name, LINK, ends, verifier=Verifier.of(secret), sealed=sealed(secret)))
        return f"{name}.{encoded(secret)}"

    def new_code(self, grant: Grant | None = None, lasts_s: float = CODE_S) -> str:
        """For one sign-in, soon: an id, which is sent, and a secret, which is not."""
        now = self.clock()
        self._codes = {name: code for name, code in self._codes.items() if code.until > now}
        name, secret = secrets.token_hex(ID_LENGTH), secrets.token_bytes(SECRET_BYTES)
        self._codes[name] = Code(now + lasts_s, secret, Verifier.of(secret), grant or Grant(OWNER))
        return f"{name}.{encoded(secret)}"

    def challenge(self, name: str, page_nonce: str, origin: str) -> tuple[str, str]:
        """Our nonce and our proof. For an id that is not known they look the same, and take as long."""
        now = self.clock()
        while self._challenges:
            oldest = next(iter(self._challenges))
            if self._challenges[oldest][0] > now and len(self._challenges) < MOST_CHALLENGES:
                break
            del self._challenges[oldest]
        hello = Hello(name, page_nonce, secrets.token_urlsafe(24), origin)
        self._challenges[hello.hub_nonce] = (now + CHALLENGE_S, hello)
        return hello.hub_nonce, encoded(self._verifier(name).proof(hello))

    def sign_in(self, hub_nonce: str, proof: bytes) -> Credential | None:
        """The credential that a page's proof belongs to. A challenge takes one proof, right or wrong.

        A launch code is used up, and its browser gets a credential of its own: ``write_down`` is to be called for it.
        """
        until, hello = self._challenges.pop(hub_nonce, (0.0, None))
        if hello is None or self.clock() >= until:
            return None
        page_key = self._verifier(hello.id).page_key(hello, proof)
        if page_key is None:
            return None
        code = self._codes.pop(hello.id, None)
        if code is not None:
            credential = self._browser(code.grant, code.secret, hello)
            self._unwritten[credential.key] = credential
            return self.find(credential.key)
        link = self._link(hello.id)
        if link is None:
            return self.find(hello.id)
        credential = self._browser(link.grant, opened(link.sealed, page_key), hello)
        self._redeeming[credential.key] = link.key, credential
        return credential

    def _browser(self, grant: Grant, code_secret: bytes, hello: Hello) -> Credential:
        verifier = Verifier.of(browser_secret(code_secret, hello))
        lasting = replace(grant, expires_at=self.file.in_s(BROWSER_S))
        return Credential(secrets.token_hex(ID_LENGTH), BROWSER, lasting, verifier=verifier)

    def _link(self, name: str) -> Credential | None:
        return self.cache.known.link(name, self.file.now()) if self.is_shared else None

    def write_down(self, key: str) -> bool:
        """Write a new browser down, which waits for the disk. One that cannot be written down lasts as long as the hub,
        unless a fleet's link let it in: then ``DatabaseAway`` is raised, because nobody can count that the link was
        used. False when another was faster with it.

        This, ``sign_out`` and ``note_use`` are for threads; all else is the event loop's, and needs no locks.
        """
        redeeming = self._redeeming.pop(key, None)
        if redeeming is not None:
            return self.file.redeem(*redeeming)
        unwritten = self._unwritten.get(key)
        if unwritten is None:
            return True
        try:
            self.file.add(unwritten)
            if self._unwritten.pop(key, None) is None:
                self.file.remove(key)  # signed out meanwhile
        except FAILURES as error:
            log.warning("a sign-in could not be written down", why=str(error))
        return True

    def _verifier(self, name: str) -> Verifier:
        """What checks a proof with this id. For an unknown id it is one whose secret nobody has."""
        verifier = Verifier.of(hmac.digest(self._nobody, name.encode(), "sha256"))
        code, credential = self._codes.get(name), self._link(name) or self.find(name)
        if code is not None and self.clock() < code.until:
            verifier = code.verifier
        elif credential is not None and credential.verifier is not None:
            verifier = credential.verifier
        return verifier

    def sign_out(self, key: str) -> None:
        """Raises what writing raises: a browser that is still signed in must not be reported as signed out."""
        if self._unwritten.pop(key, None) is None:
            self.file.remove(key)

    def forget_pages(self, key: str) -> None:
        """Of a browser that was signed out: their tokens are worth nothing any more."""
        self._pages = {page: owner for page, owner in self._pages.items() if owner != key}

    # asking -----------------------------------------------------------------------------------------------------

    def new_token(self, key: str) -> str:
        """For a page of a browser that has signed in; the oldest of too many goes."""
        token = secrets.token_urlsafe(32)
        self._pages[digest(token)] = key
        for old in [page for page, owner in self._pages.items() if owner == key][:-MOST_TOKENS]:
            del self._pages[old]
        return token

    def of_bearer(self, token: str) -> Credential | None:
        key = digest(token)
        browser = self._pages.get(key)
        if browser is not None:
            return self.find(browser)
        script = self.find(key)
        return script if script is not None and hmac.compare_digest(script.key, key) else None

    def new_ticket(self, key: str) -> str:
        """For one WebSocket within half a minute, while the credential holds."""
        now = self.clock()
        self._tickets = {kept: item for kept, item in self._tickets.items() if item[0] > now}
        ticket = secrets.token_urlsafe(24)
        self._tickets[digest(ticket)] = (now + TICKET_S, key)
        return ticket

    def of_ticket(self, ticket: str) -> Credential | None:
        until, key = self._tickets.pop(digest(ticket), (0.0, ""))
        return self.find(key) if self.clock() < until else None

    def guessed(self, secret: str) -> bool:
        """Count a wrong secret; True when there have been too many of late.

        The same one again is no further guess: a script whose token was taken back asks as often as it likes.
        """
        now = self.clock()
        self._guesses = {key: at for key, at in self._guesses.items() if at > now - GUESS_S}
        wrong = digest(secret)
        if wrong in self._guesses:
            return False
        if len(self._guesses) >= MOST_GUESSES:
            return True
        self._guesses[wrong] = now
        return False

    # being used -------------------------------------------------------------------------------------------------

    def is_use_due(self, credential: Credential) -> bool:
        """Whether this use is to be written down: every ten minutes one is. Who came by a proxy is in no file."""
        if credential.kind == PROXY:
            return False
        noted, is_unwritten = self._noted.get(credential.key), credential.key in self._unwritten
        if noted is not None and self.clock() < noted + (WRITTEN_AGAIN_S if is_unwritten else USED_EVERY_S):
            return False
        self._noted[credential.key] = self.clock()
        return is_unwritten or credential.used_at < files.stamp(self.file.wall() - USED_EVERY_S)

    def note_use(self, key: str) -> None:
        """It waits for the disk; what cannot be written now is written the next time."""
        self.write_down(key)
        try:
            self.file.note_use(key)
        except FAILURES as error:
            log.warning("the use of a token could not be written down", why=str(error))


def create_bearer(
    home: str,
    name: str,
    role: str,
    sessions: frozenset[str] | None = None,
    expires_at: datetime | None = None,
    user: str = "",
) -> str:
    """A new token for scripts. It is shown once; the file has its digest."""
    return add_bearer(TokenFile(home), name, Grant(role, sessions, expires_at, user))[0]


def add_bearer(file: TokenFile, name: str, grant: Grant) -> tuple[str, Credential]:
    """The same, into a file. Raises ``NoSuchUser`` when the person whose it is to be is not there."""
    if grant.role == MEMBER and not grant.user:
        raise Refused("a member is somebody: say who", cli_hint="--user NAME says who")
    token = secrets.token_urlsafe(32)
    made = Credential(digest(token), SCRIPT, grant, name)
    file.add(made)
    return token, made
