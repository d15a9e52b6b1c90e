"""People whom an authenticating proxy has signed in, such as oauth2-proxy with OpenID Connect.

The proxy names them in a header, and proves with a secret that it is the proxy. Without that proof the header counts
for nothing: anybody can send one.
"""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass, field
from typing import Protocol

from hitchpost.errors import BadSettings
from hitchpost.hub.http.tokenfile import digest
from hitchpost.settings import Settings
from hitchpost.store import files

PROOF = b"x-hitchpost-proxy-secret"
FEWEST_CHARS = 32
MOST_BYTES = 4096
IN_PODS = "pod"


@dataclass(frozen=True, slots=True)
class PeopleOptions:
    """The table ``[people]`` of the settings. ``proxy_role``: of somebody whom the proxy names and nobody has added."""

    proxy_secret_file: str = ""
    proxy_header: str = "X-Forwarded-Email"
    proxy_role: str = ""
    member_runtimes: tuple[str, ...] = (IN_PODS,)


def options(settings: Settings) -> PeopleOptions:
    return PeopleOptions(**settings.people)  # type: ignore[arg-type]


class Headers(Protocol):
    def value(self, name: bytes) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Proxy:
    """``role`` is that of people who are new; empty when they are refused."""

    header: bytes
    role: str = ""
    _proof: str = field(default="", repr=False)

    @classmethod
    def of(cls, settings: Settings) -> Proxy | None:
        """None when the settings name none, which is so unless somebody wants one. Raises ``BadSettings``."""
        chosen = options(settings)
        if not chosen.proxy_secret_file:
            return None
        path = os.path.expanduser(chosen.proxy_secret_file)
        try:
            secret = files.read_bytes(path, MOST_BYTES, follow=True).decode().strip()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise BadSettings(f"cannot read people.proxy_secret_file {path}: {(why or '').lower()}") from None
        if len(secret) < FEWEST_CHARS or not secret.isascii() or not secret.isprintable():
            raise BadSettings(
                f"expected {path} to hold a secret of at least {FEWEST_CHARS} printable characters;"
                " openssl rand -hex 32 makes one"
            )
        return cls(chosen.proxy_header.lower().encode(), chosen.proxy_role, digest(secret))

    def named(self, headers: Headers) -> str | None:
        """Whom the proxy names; None when it names nobody, or is not the proxy."""
        proof = headers.value(PROOF)
        if proof is None or not hmac.compare_digest(digest(proof), self._proof):
            return None
        return headers.value(self.header)
