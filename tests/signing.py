"""A page's side of the sign-in, written from docs/protocol.md alone, as another client would be."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import secrets
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


@dataclass(frozen=True)
class Exchange:
    """What was said until the hub has proved itself; or has not."""

    name: str
    secret: bytes
    page_nonce: str
    hub_nonce: str
    origin: str
    hub_proof: str

    def text(self, purpose: str) -> str:
        return "\n".join(("hitchpost sign-in 1", purpose, self.name, self.page_nonce, self.hub_nonce, self.origin))

    @property
    def is_the_hub(self) -> bool:
        expected = mac(mac(self.secret, "hitchpost hub key"), self.text("hub"))
        return hmac.compare_digest(expected, decoded(self.hub_proof))

    @property
    def page_proof(self) -> str:
        page_key = mac(self.secret, "hitchpost page key")
        mask = mac(hashlib.sha256(page_key).digest(), self.text("page"))
        return encoded(bytes(one ^ other for one, other in zip(page_key, mask, strict=True)))

    @property
    def browser_secret(self) -> bytes:
        return mac(self.secret, self.text("browser"))


def taken_apart(code: str) -> tuple[str, bytes]:
    """The id and the secret of a launch code."""
    name, _, secret = code.partition(".")
    return name, decoded(secret)


def post(origin: str, path: str, body: dict[str, Any], **headers: str) -> tuple[int, Any]:
    address = urlsplit(origin)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    try:
        given = {"Content-Type": "application/json", "Origin": origin, **headers}
        connection.request("POST", path, json.dumps(body), given)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
    finally:
        connection.close()


def challenged(origin: str, name: str, secret: bytes, nonce: str = "") -> Exchange:
    nonce = nonce or encoded(secrets.token_bytes(24))
    status, answer = post(origin, "/api/sign-in/challenge", {"id": name, "nonce": nonce, "origin": origin})
    assert status == 200, answer
    return Exchange(name, secret, nonce, answer["nonce"], origin, answer["proof"])


def proved(exchange: Exchange) -> tuple[int, Any]:
    proof = {"nonce": exchange.hub_nonce, "proof": exchange.page_proof}
    return post(exchange.origin, "/api/sign-in", proof)


def launched(launch_url: str) -> int:
    """Sign in by a link; the status of the answer, 0 when it is not the hub that answers."""
    url, _, code = launch_url.partition("#code=")
    exchange = challenged(url.rstrip("/"), *taken_apart(code))
    return proved(exchange)[0] if exchange.is_the_hub else 0
