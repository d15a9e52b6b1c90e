"""opencode: its own HTTP server, at a port and with a password of this run."""

from __future__ import annotations

import os

from hitchpost.agents.prepare import Injected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PORT, USER, PASSWORD = "HITCHPOST_OPENCODE_PORT", "OPENCODE_SERVER_USERNAME", "OPENCODE_SERVER_PASSWORD"
LOWEST, MANY = 20_000, 12_000
"""Ports below those that the kernel hands out by itself: only another program that wants just this one can take it."""
TRIES = 50


def inject(run_folder: str, env: Mapping[str, str]) -> Injected:
    """A person's own password stays. Nobody else can speak with the server."""
    port = free_port()
    if port is None:
        return Injected()
    login = {USER: env.get(USER) or "opencode", PASSWORD: env.get(PASSWORD) or os.urandom(24).hex()}
    return Injected(("--hostname", "127.0.0.1", "--port", str(port)), login, {**login, PORT: str(port)})


def free_port() -> int | None:
    """A port that nobody has now. When another program takes it before the agent does, the agent says so and ends."""
    from _socket import AF_INET, SOCK_STREAM, socket

    for _ in range(TRIES):
        port = LOWEST + int.from_bytes(os.urandom(4), "big") % MANY
        probe = socket(AF_INET, SOCK_STREAM)
        try:
            probe.bind(("127.0.0.1", port))
            return port
        except OSError:
            continue
        finally:
            probe.close()
    return None
