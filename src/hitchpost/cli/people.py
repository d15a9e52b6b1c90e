"""Where ``hitch user`` and ``hitch token`` work: on the file of this home, or through a hub.

A hub is asked where the file is not this home's alone: in a fleet, and elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol
from urllib.parse import quote

import click

from hitchpost.errors import FAILURES, NoSuchToken
from hitchpost.hub import client as hub_client
from hitchpost.store.home import home_path, is_copy, open_home

USERS, TOKENS = "/api/users", "/api/tokens"
Shape = dict[str, Any]


class People(Protocol):
    """What the commands do. Shapes are those of the API."""

    def users(self) -> list[Shape]: ...

    def add(self, name: str, role: str, quota: Mapping[str, object]) -> Shape: ...

    def change(self, name: str, role: str | None, quota: Mapping[str, object]) -> Shape: ...

    def remove(self, name: str) -> int: ...

    def tokens(self) -> list[Shape]: ...

    def new_token(self, wish: Shape) -> str: ...

    def remove_token(self, credential_id: str) -> None: ...


class InFile:
    """On one machine, with a hub or without one. A hub hears of each change at once."""

    def __init__(self, home: str) -> None:
        from hitchpost.hub.http.tokenfile import TokenFile

        self.home, self.file = home, TokenFile(home)

    def users(self) -> list[Shape]:
        """What is used, only a hub knows."""
        if hub_client.is_up(self.home):
            return ThroughHub(partial(hub_client.ask, self.home)).users()
        return [{**person.shape(), "used": None} for person in self.file.people()]

    def add(self, name: str, role: str, quota: Mapping[str, object]) -> Shape:
        from hitchpost.model.people import NO_QUOTA, Person, checked_name

        return self.file.add_person(Person(checked_name(name), role, NO_QUOTA.changed(quota))).shape()

    def change(self, name: str, role: str | None, quota: Mapping[str, object]) -> Shape:
        return self.file.change_person(name.lower(), role, quota).shape()

    def remove(self, name: str) -> int:
        return len(self.file.remove_person(name.lower()))

    def tokens(self) -> list[Shape]:
        return [credential.shape() for credential in self.file.all()]

    def new_token(self, wish: Shape) -> str:
        from datetime import UTC, datetime, timedelta

        from hitchpost.hub.http.grants import Grant
        from hitchpost.hub.http.tokens import add_bearer
        from hitchpost.model.people import checked_name
        from hitchpost.ops.views.find import resolve

        names, seconds = wish["sessions"], wish["lasts_s"]
        sessions = None if names is None else frozenset(resolve(self.home, name) for name in names)
        ends = None if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)
        user = "" if wish["user"] is None else checked_name(wish["user"])
        return add_bearer(self.file, wish["name"], Grant(wish["role"], sessions, ends, user))[0]

    def remove_token(self, credential_id: str) -> None:
        if credential_id not in {credential.id for credential in self.file.all()}:
            raise NoSuchToken(credential_id)
        self.file.remove(credential_id)


class ThroughHub:
    """``ask`` takes a method, a path and a body, and raises ``HubRefused``."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self.ask = ask

    def users(self) -> list[Shape]:
        found: list[Shape] = self.ask("GET", USERS)
        return found

    def add(self, name: str, role: str, quota: Mapping[str, object]) -> Shape:
        made: Shape = self.ask("POST", USERS, {"name": name, "role": role, "quota": dict(quota)})
        return made

    def change(self, name: str, role: str | None, quota: Mapping[str, object]) -> Shape:
        changed: Shape = self.ask("PATCH", _path(USERS, name), {"role": role, "quota": dict(quota)})
        return changed

    def remove(self, name: str) -> int:
        return int(self.ask("DELETE", _path(USERS, name))["ended"])

    def tokens(self) -> list[Shape]:
        found: list[Shape] = self.ask("GET", TOKENS)
        return found

    def new_token(self, wish: Shape) -> str:
        return str(self.ask("POST", TOKENS, wish)["token"])

    def remove_token(self, credential_id: str) -> None:
        self.ask("DELETE", _path(TOKENS, credential_id))


def _path(start: str, name: str) -> str:
    return f"{start}/{quote(name, safe='')}"


def people() -> People:
    """Of this home."""
    home = open_home()
    return ThroughHub(partial(hub_client.ask, home)) if is_copy(home) else InFile(home)


def complete_users(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of this home's users for the shell's completion. Never fails: completion must not print errors."""
    from hitchpost.hub.http.tokenfile import TokenFile

    try:
        names = [person.name for person in TokenFile(home_path()).people()]
    except FAILURES:
        return []
    return [name for name in names if name.startswith(incomplete)]
