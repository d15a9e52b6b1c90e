"""``tokens.json``: people, and the credentials that outlive the hub. Scripts have tokens, browsers have sign-ins.

It has digests only, and nothing in it signs anybody in. What is taken out of it is worth nothing from then on. In a
fleet, every hub has the same file, with the launch links that were made at any of them.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hitchpost.errors import MALFORMED, HitchpostError
from hitchpost.hub.http.grants import MEMBER, Grant
from hitchpost.hub.http.proof import SECRET_BYTES, Verifier
from hitchpost.model.people import NO_QUOTA, ROLES, Person, checked_name
from hitchpost.store import files, locks

FILE = "tokens.json"
SCRIPT, BROWSER, LINK, PROXY = "script", "browser", "link", "proxy"
SECTIONS = {SCRIPT: "tokens", BROWSER: "signed_in", LINK: "links"}
PEOPLE = "people"
BROWSER_S = 30 * 24 * 3600.0
MOST = {BROWSER: 100, LINK: 100}
"""Of a kind; the one that was used longest ago goes."""
ID_LENGTH = 10


@dataclass(frozen=True, slots=True)
class Credential:
    """What lets somebody in. ``key`` is its name in the file: a token's digest, or the id of a browser or of a link."""

    key: str
    kind: str
    grant: Grant
    name: str = ""
    created_at: str = ""
    used_at: str = ""
    """About when it was used last; empty when it never was."""
    verifier: Verifier | None = None
    """Of a browser's secret, or of a link's."""
    sealed: bytes = b""
    """A link's secret, for who shows that it is known already: what its browser keeps is computed from it."""

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
            "user": self.grant.user or None,
            "sessions": sessions,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "used_at": self.used_at,
        }


class NoSuchUser(HitchpostError):
    """Raised when nobody of that name was added."""

    exit_code = 3
    http_status = 404
    code = "not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"no user {name!r}", "an owner adds people", cli_hint="hitch user ls lists them")


class UserExists(HitchpostError):
    """Raised when somebody of that name was added before."""

    exit_code = 4
    http_status = 409
    code = "exists"

    def __init__(self, person: Person) -> None:
        super().__init__(
            f"{person.name} is there already, as {person.role}",
            "change what is there instead",
            cli_hint=f"hitch user set {person.name} changes the role and the limits",
        )


@dataclass(frozen=True, slots=True)
class Known:
    """All that the file has: credentials by key, people by name."""

    credentials: dict[str, Credential] = field(default_factory=dict)
    people: dict[str, Person] = field(default_factory=dict)

    def find(self, key: str, now: datetime) -> Credential | None:
        """Who has the key, as far as the person behind it may go now; None when nobody has it any more. A link is
        nobody until a browser has used it up."""
        credential = self._holding(key, now)
        return None if credential is None or credential.kind == LINK else self.in_force(credential)

    def link(self, key: str, now: datetime) -> Credential | None:
        """The link that has the key, unless it was used, taken back or is too old, or its person has gone."""
        credential = self._holding(key, now)
        is_link = credential is not None and credential.kind == LINK and self.in_force(credential) is not None
        return credential if is_link else None

    def _holding(self, key: str, now: datetime) -> Credential | None:
        credential = self.credentials.get(key)
        return credential if credential is not None and credential.grant.holds(now) else None

    def in_force(self, credential: Credential) -> Credential | None:
        """The credential of somebody who is still there, with what that person's role allows."""
        if not credential.grant.user:
            return credential
        person = self.people.get(credential.grant.user)
        return None if person is None else replace(credential, grant=credential.grant.of(person))


Guard = Callable[[], AbstractContextManager[object]]


class TokenFile:
    """``guard`` is entered around each change: in a fleet, the file is the newest one then, and is told to all."""

    def __init__(self, home: str, wall: Callable[[], float] = time.time, guard: Guard = nullcontext) -> None:
        self.path, self.wall, self.guard = os.path.join(home, FILE), wall, guard
        self._seen: tuple[tuple[int, ...], Known] = ((), Known())

    def find(self, key: str) -> Credential | None:
        """Who has the key; None when nobody has it any more. Raises ``OSError`` when that cannot be told now."""
        return self.read_if_changed().find(key, self.now())

    def all(self) -> list[Credential]:
        """With what each may do now. Raises ``Unreadable`` or ``NewerSchema`` when the file is not as it should be."""
        known = self._read(strict=True)
        return [known.in_force(credential) or credential for credential in known.credentials.values()]

    def add(self, credential: Credential) -> None:
        """Durable when it returns. Of browsers and links there are only so many: the one used longest ago goes.

        Raises ``NoSuchUser`` when the person whose it is to be is not there.
        """
        with self._changing() as known:
            if credential.grant.user and credential.grant.user not in known.people:
                raise NoSuchUser(credential.grant.user)
            self._put(known, credential)
            self._write(known)

    def redeem(self, key: str, browser: Credential) -> bool:
        """Use a link up for a browser, both in one change. False when the link is not there any more, at any hub."""
        with self._changing() as known:
            if known.link(key, self.now()) is None:
                return False
            del known.credentials[key]
            self._put(known, browser)
            self._write(known)
        return True

    def _put(self, known: Known, credential: Credential) -> None:
        credentials, kind = known.credentials, credential.kind
        credentials[credential.key] = replace(credential, created_at=files.stamp(self.wall()))
        if kind in MOST:
            alike = [each for each in credentials.values() if each.kind == kind]
            alike.sort(key=lambda each: each.used_at or each.created_at)
            for old in alike[: -MOST[kind]]:
                del credentials[old.key]

    def remove(self, *beginnings: str) -> list[Credential]:
        """Take out everyone whose key begins so."""
        with self._changing() as known:
            credentials = known.credentials
            removed = [entry for entry in credentials.values() if beginnings and entry.key.startswith(beginnings)]
            for credential in removed:
                del credentials[credential.key]
            if removed:
                self._write(known)
        return removed

    def note_use(self, key: str) -> None:
        """Write down that it is used now, which renews a browser's sign-in."""
        with self._changing() as known:
            if key not in known.credentials:
                return
            credential = known.credentials[key]
            grant = credential.grant
            if credential.kind == BROWSER:
                grant = replace(grant, expires_at=self.in_s(BROWSER_S))
            known.credentials[key] = replace(credential, grant=grant, used_at=files.stamp(self.wall()))
            self._write(known)

    # people -------------------------------------------------------------------------------------------------------

    def people(self) -> list[Person]:
        """Raises ``Unreadable`` or ``NewerSchema`` when the file is not as it should be."""
        return sorted(self._read(strict=True).people.values(), key=lambda person: person.name)

    def person(self, name: str) -> Person | None:
        """Who has that name now. Raises ``OSError`` when that cannot be told."""
        return self.read_if_changed().people.get(name)

    def add_person(self, person: Person) -> Person:
        """Durable when it returns. Raises ``UserExists``."""
        with self._changing() as known:
            if person.name in known.people:
                raise UserExists(known.people[person.name])
            known.people[person.name] = made = replace(person, created_at=files.stamp(self.wall()))
            self._write(known)
        return made

    def change_person(self, name: str, role: str | None, quota: Mapping[str, object]) -> Person:
        """Only what is given changes. Raises ``NoSuchUser`` or ``UsageError``."""
        with self._changing() as known:
            if name not in known.people:
                raise NoSuchUser(name)
            before = known.people[name]
            known.people[name] = after = replace(before, role=role or before.role, quota=before.quota.changed(quota))
            self._write(known)
        return after

    def remove_person(self, name: str) -> list[Credential]:
        """With every token and sign-in of theirs, which are returned. Raises ``NoSuchUser``."""
        with self._changing() as known:
            if known.people.pop(name, None) is None:
                raise NoSuchUser(name)
            removed = [entry for entry in known.credentials.values() if entry.grant.user == name]
            for credential in removed:
                del known.credentials[credential.key]
            self._write(known)
        return removed

    # the file -----------------------------------------------------------------------------------------------------

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.wall(), UTC)

    def in_s(self, seconds: float) -> datetime:
        return self.now() + timedelta(seconds=seconds)

    def read_if_changed(self) -> Known:
        """The file is read only if it is another one than the last time."""
        try:
            there = os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            return Known()
        now = (there.st_ino, there.st_size, there.st_mtime_ns, there.st_ctime_ns)
        before, known = self._seen
        if before != now:
            known = self._read()
            self._seen = (now, known)
        return known

    @contextmanager
    def _changing(self) -> Iterator[Known]:
        """What the file has, while nobody else can change it."""
        with self.guard(), locks.Lock(f"{self.path}.lock"):
            yield self._read(strict=True)

    def _read(self, *, strict: bool = False) -> Known:
        """Those that have not expired. Unless ``strict``, a file that makes no sense knows nobody.

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
        people = {person.name: person for person in _people(value.get(PEOPLE))}
        return Known({entry.key: entry for entry in entries if entry.grant.holds(now)}, people)

    def _write(self, known: Known) -> None:
        sections: dict[str, object] = {
            section: {each.key: _entry(each) for each in known.credentials.values() if each.kind == kind}
            for kind, section in SECTIONS.items()
        }
        if not sections[SECTIONS[LINK]]:  # there are none on one machine
            del sections[SECTIONS[LINK]]
        if known.people:
            sections[PEOPLE] = {
                person.name: {"role": person.role, "quota": person.quota.shape(), "created_at": person.created_at}
                for person in known.people.values()
            }
        files.write_object(self.path, {"schema": files.SCHEMA, **sections})


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def stamp_of(moment: datetime) -> str:
    return files.stamp(moment.timestamp())


def _entry(credential: Credential) -> dict[str, object]:
    texts = {"name": credential.name, "role": credential.grant.role, "created_at": credential.created_at}
    entry: dict[str, object] = {**texts}
    if credential.grant.user:
        entry["user"] = credential.grant.user
    if credential.grant.sessions is not None:
        entry["sessions"] = sorted(credential.grant.sessions)
    if credential.grant.expires_at is not None:
        entry["expires_at"] = credential.expires_at
    if credential.used_at:
        entry["used_at"] = credential.used_at
    if credential.verifier is not None:
        entry |= {"stored_key": credential.verifier.stored_key.hex(), "hub_key": credential.verifier.hub_key.hex()}
    if credential.sealed:
        entry["sealed"] = credential.sealed.hex()
    return entry


def _entries(kind: str, value: object) -> Iterator[Credential]:
    """What does not make sense in every part lets nobody in."""
    for key, entry in value.items() if isinstance(value, dict) else ():
        try:
            yield _credential(kind, str(key), entry)
        except MALFORMED:
            continue


def _people(value: object) -> Iterator[Person]:
    """Somebody of whom something does not make sense is nobody."""
    for name, entry in value.items() if isinstance(value, dict) else ():
        try:
            role, limits = str(entry["role"]), entry.get("quota", {})
            if role in ROLES and checked_name(name) == name:
                yield Person(name, role, NO_QUOTA.changed(limits), str(entry.get("created_at", "")))
        except (*MALFORMED, HitchpostError):
            continue


def _credential(kind: str, key: str, entry: dict[str, object]) -> Credential:
    texts = {word: str(entry.get(word, "")) for word in ("name", "created_at", "used_at")}
    ends, sessions = entry.get("expires_at"), entry.get("sessions")
    grant = Grant(
        str(entry["role"]),
        None if sessions is None else frozenset(map(str, sessions)),  # type: ignore[call-overload]
        None if ends is None else datetime.fromisoformat(str(ends)),
        str(entry.get("user", "")),
    )
    if grant.role == MEMBER and not grant.user:
        raise ValueError("a member is somebody")
    verifier = None
    if kind in (BROWSER, LINK):
        verifier = Verifier(bytes.fromhex(str(entry["stored_key"])), bytes.fromhex(str(entry["hub_key"])))
    sealed = bytes.fromhex(str(entry["sealed"])) if kind == LINK else b""
    if kind == LINK and (grant.expires_at is None or len(sealed) != SECRET_BYTES):
        raise ValueError("a link ends, and has a secret")
    return Credential(key, kind, grant, verifier=verifier, sealed=sealed, **texts)
