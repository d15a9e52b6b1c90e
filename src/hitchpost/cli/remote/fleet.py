"""``hitch fleet`` for a hub elsewhere: the same questions."""

from __future__ import annotations

import sys
from typing import Any

from hitchpost.cli.remote.hub import TIMEOUT_S, RemoteHub


class Asking:
    """As ``cli.fleet.here``. Several may ask at once, each with a connection of its own."""

    def __init__(self, hub: RemoteHub) -> None:
        self.context = hub.context

    def __call__(self, method: str, path: str, body: Any = None, *, timeout_s: float = TIMEOUT_S) -> Any:
        hub = RemoteHub(self.context)
        try:
            return hub.ask(method, path, body, timeout_s=timeout_s)
        finally:
            hub.close()


def status(hub: RemoteHub, as_json: bool) -> None:
    from hitchpost.cli.fleet import show_status

    show_status(Asking(hub), as_json=as_json)


def drain(hub: RemoteHub, node: str, how: str | None, cordon: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    from hitchpost.cli.fleet import run_drain

    sys.exit(run_drain(Asking(hub), node, how, cordon=cordon, dry_run=dry_run, yes=yes, as_json=as_json))


def undrain(hub: RemoteHub, node: str, resume: bool, as_json: bool) -> None:
    from hitchpost.cli.fleet import run_undrain

    sys.exit(run_undrain(Asking(hub), node, resume=resume, as_json=as_json))
