"""``hitch user`` and ``hitch token`` for a hub elsewhere. The words are the commands' own."""

from __future__ import annotations

from typing import Any

from hitchpost.cli import token, user
from hitchpost.cli.people import ThroughHub
from hitchpost.cli.remote.hub import RemoteHub


def add(hub: RemoteHub, name: str, role: str, as_json: bool, **quota: Any) -> None:
    user.do_add(ThroughHub(hub.ask), name, role, as_json, **quota)


def change(hub: RemoteHub, name: str, role: str | None, as_json: bool, **quota: Any) -> None:
    user.do_set(ThroughHub(hub.ask), name, role, as_json, **quota)


def users(hub: RemoteHub, as_json: bool) -> None:
    user.do_ls(ThroughHub(hub.ask), as_json)


def remove(hub: RemoteHub, names: tuple[str, ...]) -> None:
    user.do_rm(ThroughHub(hub.ask), names)


def create_token(hub: RemoteHub, name: str, user: str | None, role: str, sessions: tuple[str, ...], lasts: str) -> None:
    token.do_create(ThroughHub(hub.ask), name, user, role, sessions, lasts)


def tokens(hub: RemoteHub, as_json: bool) -> None:
    token.do_ls(ThroughHub(hub.ask), as_json)


def remove_tokens(hub: RemoteHub, ids: tuple[str, ...]) -> None:
    token.do_rm(ThroughHub(hub.ask), ids)
