"""People who share a hub: each has a token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import websockets
from websockets.sync.client import ClientConnection, connect

from tests.hubs import HubProcess
from tests.security.attacks import JSON, Reply, ask

LOCAL_TOO = '[people]\nmember_runtimes = ["local"]\n'


@dataclass(slots=True)
class People:
    """They are added through ``hub``, and may ask any hub."""

    hub: HubProcess
    tokens: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, role: str = "member", **quota: Any) -> str:
        """The new person's token."""
        self.hub.ask("POST", "/api/users", {"name": name, "role": role, "quota": quota})
        self.tokens[name] = self.hub.ask("POST", "/api/tokens", {"user": name})["token"]
        return self.tokens[name]

    def signed(self, name: str) -> list[tuple[str, str]]:
        return [("Authorization", f"Bearer {self.tokens[name]}")]

    def ask(self, name: str, method: str, path: str, body: object = None, hub: HubProcess | None = None) -> Reply:
        data = b"" if body is None else json.dumps(body).encode()
        return ask(hub or self.hub, method, path, [*self.signed(name), *([JSON] if data else [])], data)

    def start(self, person: str, /, hub: HubProcess | None = None, **fields: Any) -> dict[str, Any]:
        """A session of that person's, once it runs."""
        made = self.ask(person, "POST", "/api/sessions", {"command": ["sleep", "1000"], **fields}, hub)
        assert made.status == 201, made
        session: dict[str, Any] = made.json()["session"]
        return session

    @contextmanager
    def socket(self, name: str, hub: HubProcess | None = None) -> Iterator[ClientConnection]:
        address = (hub or self.hub).url.replace("http", "ws") + "/ws"
        with connect(address, additional_headers=self.signed(name)) as client:
            yield client


def closed_with(client: ClientConnection) -> int | None:
    """The code of the end, after whatever came before it."""
    try:
        while True:
            client.recv(timeout=20)
    except websockets.ConnectionClosed as closed:
        return None if closed.rcvd is None else closed.rcvd.code
