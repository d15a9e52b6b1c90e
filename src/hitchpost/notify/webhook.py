"""A POST of JSON to the owner's address, signed as Standard Webhooks has it, so ready-made libraries check it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from hitchpost.notify.message import Message
from hitchpost.notify.post import checked, origin, post

PREFIX = "whsec_"


@dataclass(frozen=True, slots=True)
class Webhook:
    """The receiver tells repeated messages by their id, and old ones by the timestamp, which is signed, too."""

    url: str
    secret: str
    wall: Callable[[], float] = time.time
    name: str = "webhook"
    dedupes: bool = True

    @property
    def where(self) -> str:
        return origin(self.url)

    async def send(self, message: Message) -> str:
        body = json.dumps({"type": "hitchpost.notification", **message.as_json()}).encode()
        at = str(int(self.wall()))
        headers = {
            "Content-Type": "application/json",
            "Webhook-Id": message.id,
            "Webhook-Timestamp": at,
            "Webhook-Signature": f"v1,{signature(self.secret, message.id, at, body)}",
        }
        return checked(await post(self.url, headers, body), again=True)


def signature(secret: str, message_id: str, at: str, body: bytes) -> str:
    signed = f"{message_id}.{at}.".encode() + body
    return base64.b64encode(hmac.digest(key_of(secret), signed, hashlib.sha256)).decode()


def key_of(secret: str) -> bytes:
    """A secret that begins with ``whsec_`` is base64; any other is taken as it is."""
    if secret.startswith(PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except binascii.Error:
            pass
    return secret.encode()
