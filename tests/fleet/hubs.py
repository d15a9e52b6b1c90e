"""Two hubs, each with a home of its own, over one database."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hitchpost.hub.client import HubRefused
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import TEMP_PREFIX, end_home, eventually

SH = ["sh", "-c"]


@dataclass(slots=True)
class Fleet:
    """``address`` is that of the database."""

    address: str
    ground: Ground
    first: HubProcess
    second: HubProcess

    @property
    def hubs(self) -> tuple[HubProcess, HubProcess]:
        return self.first, self.second

    def start(self, hub: HubProcess, *, warm: bool = True) -> None:
        hub.start(HITCHPOST_HOME=hub.home, HITCHPOST_FLEET=self.address, warm=warm)

    def run(self, hub: HubProcess, script: str, **fields: Any) -> Truth:
        """A session on the machine of one of the hubs."""
        order = {"command": [*SH, script], "folder": str(self.ground.place), **fields}
        made = hub.ask("POST", "/api/sessions", order)["session"]
        return Truth(hub.ground.home, made["id"])

    def both(self, session: Truth | str, **fields: Any) -> list[dict[str, Any]]:
        """The session as both show it, once both show this of it."""
        name = session if isinstance(session, str) else session.id

        def shown() -> list[dict[str, Any]] | None:
            found = []
            for hub in self.hubs:
                try:
                    found.append(hub.ask("GET", f"/api/sessions/{name}"))
                except HubRefused:
                    return None
            return found if all(each.items() >= fields.items() for each in found) else None

        return eventually(shown, what=f"both hubs to show {fields}")


def metric(hub: HubProcess, name: str) -> float:
    with hub.http() as client:
        text = client.get("/metrics").text
    return float(next(line.split()[-1] for line in text.splitlines() if line.startswith(f"{name} ")))


@contextmanager
def fleet_of(ground: Ground, address: str) -> Iterator[Fleet]:
    other = Path(tempfile.mkdtemp(prefix=TEMP_PREFIX))
    made = Fleet(address, ground, HubProcess(ground), HubProcess(replace(ground, home=other)))
    try:
        for hub in made.hubs:
            made.start(hub)
        yield made
    finally:
        for hub in made.hubs:
            with suppress(AssertionError):
                hub.stop()
        end_home(other, ground.watch.census)
        shutil.rmtree(other)
