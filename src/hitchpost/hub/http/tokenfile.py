"""``tokens.json``: the credentials that outlive the hub. Scripts have tokens, browsers have sign-ins.

It has digests only, and nothing in it signs anybody in. What is taken out of it is worth nothing from then on.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hitchpost.errors import MALFORMED
from hitchpost.hub.http.grants import Grant
from hitchpost.hub.http.proof import Verifier
from hitchpost.store import files, locks

FILE = "tokens.json"
SCRIPT, BROWSER = "script", "browser"
SECTIONS = {SCRIPT: "tokens", BROWSER: "signed_in"}
BROWSER_S = 30 * 24 * 3600.0
MOST_BROWSERS = 100
ID_LENGTH = 10


@dataclass(frozen=True, slots=True)
class Credential:
    """What lets somebody in. ``key`` is its name in the file: a token's digest, or a browser's id."""

    key: str
    kind: str
    grant: Grant
    name: str = ""
    created_at: str = ""
    used_at: str = ""
    """About when it was used last; empty when it never was."""
    verifier: Verifier | None = None
    """Of a browser's secret."""

    @property
    def id(self) -> str:
        """How the key begins, for people."""
        return self.key[:ID_LENGTH]

    @property
    def expires_at(self) -> str:
        return "" if self.grant.expires_at is None else stamp_of(self.grant.expires_at)

    def shape(self) -> dict[str, object]:
        sessions = None if self.grant.sessions is None else sorted(self.grant.sessions)
        return {
            "id": self.id,
            "kind": self.kind,
            "name": self.name,
            "role": self.grant.role,
            "sessions": sessions,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "used_at": self.used_at,
        }


class TokenFile:
    def __init__(self, home: str, wall: Callable[[], float] = time.time) -> None:
        self.path, self.wall = os.path.join(home, FILE), wall
        self._seen: tuple[tuple[int, ...], dict[str, Credential]] = ((), {})

    def find(self, key: str) -> Credential | None:
        """Who has the key; None when nobody has it any more. Raises ``OSError`` when that cannot be told now."""
        credential = self.read_if_changed().get(key)
        return credential if credential is not None and credential.grant.holds(self.now()) else None

    def all(self) -> list[Credential]:
        """Raises ``Unreadable`` or ``NewerSchema`` when the file is not as it should be."""
        return list(self._read(strict=True).values())

    def add(self, credential: Credential) -> None:
        """Durable when it returns. The browser that was used longest ago goes when there are ``MOST_BROWSERS``."""
        with locks.Lock(f"{self.path}.lock"):
            credentials = self._read(strict=True)
            credentials[credential.key] = replace(credential, created_at=files.stamp(self.wall()))
            browsers = [browser for browser in credentials.values() if browser.kind == BROWSER]
            browsers.sort(key=lambda browser: browser.used_at or browser.created_at)
            for browser in browsers[:-MOST_BROWSERS]:
                del credentials[browser.key]
            self._write(credentials)

    def remove(self, *beginnings: str) -> list[Credential]:
        """Take out everyone whose key begins so."""
        with locks.Lock(f"{self.path}.lock"):
            credentials = self._read(strict=True)
            removed = [entry for entry in credentials.values() if beginnings and entry.key.startswith(beginnings)]
            for credential in removed:
                del credentials[credential.key]
            if removed:
                self._write(credentials)
        return removed

    def note_use(self, key: str) -> None:
        """Write down that it is used now, which renews a browser's sign-in."""
        with locks.Lock(f"{self.path}.lock"):
            credentials = self._read(strict=True)
            if key not in credentials:
                return
            credential = credentials[key]
            grant = credential.grant
            if credential.kind == BROWSER:
                grant = replace(grant, expires_at=self.in_s(BROWSER_S))
            credentials[key] = replace(credential, grant=grant, used_at=files.stamp(self.wall()))
            self._write(credentials)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.wall(), UTC)

    def in_s(self, seconds: float) -> datetime:
        return self.now() + timedelta(seconds=seconds)

    def read_if_changed(self) -> dict[str, Credential]:
        """The credentials by key. The file is read only if it is another one than the last time."""
        try:
            there = os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            return {}
        now = (there.st_ino, there.st_size, there.st_mtime_ns, there.st_ctime_ns)
        before, credentials = self._seen
        if before != now:
            credentials = self._read()
            self._seen = (now, credentials)
        return credentials

    def _read(self, *, strict: bool = False) -> dict[str, Credential]:
        """Those that have not expired, by key. Unless ``strict``, a file that makes no sense knows nobody.

        Raises ``DiskRefused`` when it cannot be read now: who is in it may be signed in all the same.
        """
        try:
            value = files.read_object(self.path)
        except FileNotFoundError:
            value = {}
        except files.Unusable:
            if strict:
                raise
            value = {}
        now = self.now()
        entries = (entry for kind, section in SECTIONS.items() for entry in _entries(kind, value.get(section)))
        return {entry.key: entry for entry in entries if entry.grant.holds(now)}

    def _write(self, credentials: Mapping[str, Credential]) -> None:
        sections: dict[str, object] = {
            section: {each.key: _entry(each) for each in credentials.values() if each.kind == kind}
            for kind, section in SECTIONS.items()
        }
        files.write_object(self.path, {"schema": files.SCHEMA, **sections})


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def stamp_of(moment: datetime) -> str:
    return files.stamp(moment.timestamp())


def _entry(credential: Credential) -> dict[str, object]:
    texts = {"name": credential.name, "role": credential.grant.role, "created_at": credential.created_at}
    entry: dict[str, object] = {**texts}
    if credential.grant.sessions is not None:
        entry["sessions"] = sorted(credential.grant.sessions)
    if credential.grant.expires_at is not None:
        entry["expires_at"] = credential.expires_at
    if credential.used_at:
        entry["used_at"] = credential.used_at
    if credential.verifier is not None:
        entry |= {"stored_key": credential.verifier.stored_key.hex(), "hub_key": credential.verifier.hub_key.hex()}
    return entry


def _entries(kind: str, value: object) -> Iterator[Credential]:
    """What does not make sense in every part lets nobody in."""
    for key, entry in value.items() if isinstance(value, dict) else ():
        try:
            yield _credential(kind, str(key), entry)
        except MALFORMED:
            continue


def _credential(kind: str, key: str, entry: dict[str, object]) -> Credential:
    texts = {word: str(entry.get(word, "")) for word in ("name", "created_at", "used_at")}
    ends, sessions = entry.get("expires_at"), entry.get("sessions")
    grant = Grant(
        str(entry["role"]),
        None if sessions is None else frozenset(map(str, sessions)),  # type: ignore[call-overload]
        None if ends is None else datetime.fromisoformat(str(ends)),
    )
    verifier = None
    if kind == BROWSER:
        verifier = Verifier(bytes.fromhex(str(entry["stored_key"])), bytes.fromhex(str(entry["hub_key"])))
    return Credential(key, kind, grant, verifier=verifier, **texts)
