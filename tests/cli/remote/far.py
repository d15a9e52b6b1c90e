"""``hitch`` on another machine: a hub with a certificate of its own on loopback, and a home that has nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cli.remote.network import Network, network
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.reaching import certificate, free_port
from tests.support import Answer

NAME = "team"


@dataclass(slots=True)
class Far:
    """Calls ``hitch --context team``. ``home`` is its own, and stays empty: nothing is read from the hub's files."""

    ground: Ground
    hub: HubProcess
    home: Path
    cert: str
    key: str

    @property
    def env(self) -> dict[str, str]:
        return {"HITCHPOST_HOME": str(self.home)}

    def __call__(
        self,
        *words: str,
        check: bool | int = True,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> Answer:
        answer = self.ground.hitch(
            "--context", NAME, *words, check=check, stdin=stdin, env={**self.env, **(env or {})}, timeout_s=timeout_s
        )
        assert not (self.home / "sessions").exists() or not os.listdir(self.home / "sessions")
        return answer

    def add(self, name: str, token: str, *words: str, check: bool | int = True) -> Answer:
        """``hitch context add``, with the token from a file."""
        file = self.home.with_name(f"{name}.token")
        file.write_text(f"{token}\n")
        trusted = ("--ca-file", self.cert) if "--ca-file" not in words else ()
        return self.ground.hitch(
            "context", "add", name, self.hub.url, "--token-file", str(file), *trusted, *words, check=check, env=self.env
        )

    def restart_hub(self, *, kill: bool = False) -> None:
        """The same hub again, at the same address."""
        port = int(self.hub.url.rpartition(":")[2])
        if kill:
            self.hub.kill()
        else:
            self.hub.stop()
        self.hub.start(host="127.0.0.2", port=port, reach=(self.cert, self.key))

    @contextmanager
    def through_network(self) -> Iterator[Network]:
        """From here on, the hub is reached through a network that can fail."""
        port, hub_port = free_port(), int(self.hub.url.rpartition(":")[2])
        self.hub.stop()
        url = f"https://127.0.0.2:{port}"
        self.hub.start(host="127.0.0.2", port=hub_port, reach=(self.cert, self.key, url))
        with network("127.0.0.2", port, hub_port) as made:
            assert self.hub.url == url
            self.ground.hitch("context", "rm", NAME)
            self.add(NAME, self.hub.token())
            yield made


@contextmanager
def far_from(ground: Ground, hub: HubProcess, token: str = "") -> Iterator[Far]:
    """With a context ``team`` whose token is the owner's, or another."""
    cert, key = certificate(ground.place.parent, "far")
    hub.stop()
    hub.start(host="127.0.0.2", port=free_port(), reach=(cert, key))
    far = Far(ground, hub, ground.place.parent / "far-home", cert, key)
    far.add(NAME, token or hub.token())
    yield far
