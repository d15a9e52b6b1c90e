"""The bytes of a sign-in: a page and the hub prove to each other that they know a secret, and neither sends it.

The idea is RFC 5802's, with SHA-256 and without iterations, because a secret is 32 random bytes and no password. What
the hub keeps of a secret lets it check a page and prove itself, and lets nobody sign in.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass

SECRET_BYTES = 32
VERSION = "hitchpost sign-in 1"


@dataclass(frozen=True, slots=True)
class Hello:
    """What both sides have said before anything is proved. No part of it has a line break."""

    id: str
    page_nonce: str
    hub_nonce: str
    origin: str

    def text(self, purpose: str) -> bytes:
        return "\n".join((VERSION, purpose, self.id, self.page_nonce, self.hub_nonce, self.origin)).encode()


@dataclass(frozen=True, slots=True)
class Verifier:
    """What the hub keeps of a secret."""

    stored_key: bytes
    hub_key: bytes

    @classmethod
    def of(cls, secret: bytes) -> Verifier:
        page_key = _mac(secret, b"hitchpost page key")
        return cls(hashlib.sha256(page_key).digest(), _mac(secret, b"hitchpost hub key"))

    def proof(self, hello: Hello) -> bytes:
        """The hub's."""
        return _mac(self.hub_key, hello.text("hub"))

    def accepts(self, hello: Hello, proof: bytes) -> bool:
        """Whether a page's proof is right: its key, hidden under a mask that only this exchange has."""
        mask = _mac(self.stored_key, hello.text("page"))
        if len(proof) != len(mask):
            return False
        page_key = bytes(left ^ right for left, right in zip(proof, mask, strict=True))
        return hmac.compare_digest(hashlib.sha256(page_key).digest(), self.stored_key)


def browser_secret(code_secret: bytes, hello: Hello) -> bytes:
    """The secret of a browser that a launch code has signed in. Both sides compute it."""
    return _mac(code_secret, hello.text("browser"))


def encoded(data: bytes) -> str:
    """Base64 for addresses, without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Raises ``ValueError``."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")
