"""``tokens.json``: who is known after the hub has died too. Scripts by their tokens, browsers by their cookies.

It has digests only. Every question reads it anew, so what is taken out of it is worth nothing from then on.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from hitchpost.state import files

FILE = "tokens.json"
SCRIPT, BROWSER = "script", "browser"
SECTIONS = {SCRIPT: "tokens", BROWSER: "browsers"}
BROWSER_S = 30 * 24 * 3600.0
MOST_BROWSERS = 100
ID_LENGTH = 10

Entries = dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Known:
    """One entry. ``id`` is how its digest begins; ``expires_at`` is empty for what does not expire."""

    id: str
    kind: str
    role: str
    name: str
    created_at: str
    expires_at: str


class TokenFile:
    def __init__(self, home: str, wall: Callable[[], float] = time.time) -> None:
        self.path, self.wall = os.path.join(home, FILE), wall

    def role(self, kind: str, secret: str) -> str | None:
        """What a secret allows; None when it is not known. Raises ``OSError`` when that cannot be told now."""
        return self._entry(kind, secret).get("role")

    def name(self, kind: str, secret: str) -> str:
        return self._entry(kind, secret).get("name", "")

    def _entry(self, kind: str, secret: str) -> dict[str, str]:
        wanted = digest(secret)
        for one, entry in self._read()[kind].items():
            if hmac.compare_digest(one, wanted):
                return entry
        return {}

    def add(self, kind: str, secret: str, role: str, name: str = "") -> None:
        """Durable when it returns. The oldest browser goes when there are more than ``MOST_BROWSERS``."""
        now = self.wall()
        entry = {"name": name, "role": role, "created_at": files.stamp(now)}
        if kind == BROWSER:
            entry["expires_at"] = files.stamp(now + BROWSER_S)
        with files.Lock(f"{self.path}.lock"):
            found = self._read(strict=True)
            found[kind][digest(secret)] = entry
            oldest_first = sorted(found[BROWSER], key=lambda one: found[BROWSER][one].get("created_at", ""))
            for one in oldest_first[:-MOST_BROWSERS]:
                del found[BROWSER][one]
            self._write(found)

    def remove(self, *beginnings: str) -> list[Known]:
        """Take out every entry whose digest begins so."""
        with files.Lock(f"{self.path}.lock"):
            found = self._read(strict=True)
            gone = [
                (kind, one)
                for kind, entries in found.items()
                for one in entries
                if beginnings and one.startswith(beginnings)
            ]
            known = [_known(kind, one, found[kind].pop(one)) for kind, one in gone]
            if known:
                self._write(found)
        return known

    def all(self) -> list[Known]:
        """Raises ``Unreadable`` or ``NewerSchema`` when the file is not as it should be."""
        found = self._read(strict=True)
        return [_known(kind, one, entry) for kind, entries in found.items() for one, entry in entries.items()]

    def _read(self, *, strict: bool = False) -> dict[str, Entries]:
        """The entries that have not expired, by kind. Unless ``strict``, a file that makes no sense knows nobody."""
        try:
            value = files.read_object(self.path)
        except FileNotFoundError:
            value = {}
        except (files.Unreadable, files.NewerSchema):
            if strict:
                raise
            value = {}
        now = files.stamp(self.wall())
        found = {kind: _entries(value.get(section)) for kind, section in SECTIONS.items()}
        found[BROWSER] = {one: entry for one, entry in found[BROWSER].items() if entry.get("expires_at", "") > now}
        return found

    def _write(self, found: dict[str, Entries]) -> None:
        sections: dict[str, object] = {section: found[kind] for kind, section in SECTIONS.items()}
        files.write_object(self.path, {"schema": files.SCHEMA, **sections})


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _entries(value: object) -> Entries:
    if not isinstance(value, dict):
        return {}
    return {
        str(one): {str(key): item for key, item in entry.items() if isinstance(item, str)}
        for one, entry in value.items()
        if isinstance(entry, dict) and isinstance(entry.get("role"), str)
    }


def _known(kind: str, one: str, entry: dict[str, str]) -> Known:
    texts = [entry.get(key, "") for key in ("role", "name", "created_at", "expires_at")]
    return Known(one[:ID_LENGTH], kind, *texts)
