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
PAGE_KEY = b"hitchpost page key"


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
        page_key = _mac(secret, PAGE_KEY)
        return cls(hashlib.sha256(page_key).digest(), _mac(secret, b"hitchpost hub key"))

    def proof(self, hello: Hello) -> bytes:
        """The hub's."""
        return _mac(self.hub_key, hello.text("hub"))

    def accepts(self, hello: Hello, proof: bytes) -> bool:
        """Whether a page's proof is right."""
        return self.page_key(hello, proof) is not None

    def page_key(self, hello: Hello, proof: bytes) -> bytes | None:
        """What a right proof shows to us: the page's key, hidden under a mask that only this exchange has. None when
        the proof is wrong."""
        mask = _mac(self.stored_key, hello.text("page"))
        if len(proof) != len(mask):
            return None
        page_key = _xor(proof, mask)
        return page_key if hmac.compare_digest(hashlib.sha256(page_key).digest(), self.stored_key) else None


def sealed(secret: bytes) -> bytes:
    """A secret as it may be written down: only the page's key opens it, and that is computed from the secret."""
    return _xor(secret, _pad(_mac(secret, PAGE_KEY)))


def opened(kept: bytes, page_key: bytes) -> bytes:
    return _xor(kept, _pad(page_key))


def browser_secret(code_secret: bytes, hello: Hello) -> bytes:
    """The secret of a browser that a launch code has signed in. Both sides compute it."""
    return _mac(code_secret, hello.text("browser"))


def encoded(data: bytes) -> str:
    """Base64 for addresses, without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Raises ``ValueError``."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _pad(page_key: bytes) -> bytes:
    return _mac(page_key, b"hitchpost sealed code")


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(one, other, strict=True))


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")
