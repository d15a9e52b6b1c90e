"""Web Push: browsers that subscribed, the hub's own key, and a channel to each of them."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from urllib.parse import urlsplit

from hitchpost.errors import MALFORMED, HitchpostError
from hitchpost.notify.channel import Undelivered
from hitchpost.notify.journal import make_folder
from hitchpost.notify.message import Message
from hitchpost.notify.post import BadUrl, checked, origin, parsed, post
from hitchpost.store import files, locks

FILE = "push.json"
MOST_SUBSCRIPTIONS = 50
KEPT_S = 4 * 3600
"""How long a push service keeps a message for a browser that is away."""
PROOF_S = 12 * 3600
GONE = (404, 410)
SERVICES = (
    "fcm.googleapis.com",
    ".push.services.mozilla.com",
    ".push.apple.com",
    ".notify.windows.com",
)
"""Hosts of the browsers' push services; one with a dot in front has any name before it. ``push_hosts`` adds others."""


class BadSubscription(HitchpostError):
    """Raised when a browser's subscription is not one, or is at a place that nobody allowed."""

    http_status = 422
    code = "bad_input"


@dataclass(frozen=True, slots=True)
class Subscription:
    """``id`` names it for people; the endpoint is a secret: whoever has it can try to send."""

    id: str
    endpoint: str
    p256dh: str
    auth: str
    created_at: str = ""
    by: str = ""
    """Who subscribed, as the story of a session names them."""


def subscription(endpoint: str, p256dh: str, auth: str, hosts: Sequence[str], by: str) -> Subscription:
    """Raises ``BadSubscription``."""
    from hitchpost.notify.push_crypto import check_subscription

    try:
        parts = parsed(endpoint)
        check_subscription(p256dh, auth)
    except (BadUrl, *MALFORMED):
        raise BadSubscription("expected a push subscription of a browser") from None
    if parts.netloc not in hosts and not (parts.port in (None, 443) and _is_service(parts.hostname or "")):
        hint = "where you trust it, the setting push_hosts in [notify] adds it"
        raise BadSubscription(f"the push service {parts.netloc} is not a known one", hint)
    if parts.scheme != "https" and not _is_loopback(parts.hostname or ""):
        raise BadSubscription("expected the push service to have an https:// address")
    short = hashlib.sha256(endpoint.encode()).hexdigest()[:10]
    return Subscription(short, endpoint, p256dh, auth, files.stamp(), by)


def _is_service(host: str) -> bool:
    return any(host.endswith(name) if name.startswith(".") else host == name for name in SERVICES)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Subscriptions:
    """The file that has them, 0600, with the key that was made for this home once. Methods wait for the disk.

    ``all`` is never changed, but replaced: the event loop may be reading it while a thread adds one.
    """

    def __init__(self, home: str) -> None:
        self.path = os.path.join(make_folder(home), FILE)
        self.key = ""
        self.all: dict[str, Subscription] = {}
        self.read()

    def read(self) -> None:
        try:
            value = files.read_object(self.path)
        except FileNotFoundError:
            return
        self.key = str(value.get("key", ""))
        entries = value.get("subscriptions")
        found: list[Subscription] = []
        for entry in entries if isinstance(entries, list) else ():
            try:
                found.append(Subscription(**entry))
            except MALFORMED:
                continue
        self.all = {one.id: one for one in found}

    def public_key(self) -> str:
        """Of the key that a browser subscribes for. Made when it is asked for first."""
        from hitchpost.notify import push_crypto

        if not self.key:
            with locks.Lock(f"{self.path}.lock"):
                self.read()
                if not self.key:
                    self.key = push_crypto.new_key()
                    self._write()
        return push_crypto.public_key(self.key)

    def add(self, added: Subscription) -> None:
        """The oldest goes when there are ``MOST_SUBSCRIPTIONS``."""
        newest = [*self._others(added.id), added][-MOST_SUBSCRIPTIONS:]
        self.all = {one.id: one for one in newest}
        self._write()

    def remove(self, subscription_id: str) -> bool:
        if subscription_id not in self.all:
            return False
        self.all = {one.id: one for one in self._others(subscription_id)}
        self._write()
        return True

    def _others(self, subscription_id: str) -> list[Subscription]:
        return [one for one in self.all.values() if one.id != subscription_id]

    def _write(self) -> None:
        entries = [asdict(entry) for entry in self.all.values()]
        files.write_object(self.path, {"schema": files.SCHEMA, "key": self.key, "subscriptions": entries})


@dataclass(frozen=True, slots=True)
class Push:
    """One browser. Its worker shows messages of one id in one place, so a repeated one is not seen twice."""

    to: Subscription
    key: str
    contact: str
    forget: Callable[[str], object]
    """Called with the id of a subscription that has ended."""
    wall: Callable[[], float] = time.time
    dedupes: bool = True

    @property
    def name(self) -> str:
        return f"push:{self.to.id}"

    @property
    def where(self) -> str:
        return urlsplit(self.to.endpoint).netloc

    async def send(self, message: Message) -> str:
        body, proof = await asyncio.to_thread(self._sealed, message)
        headers = {
            "Authorization": proof,
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(KEPT_S),
            "Topic": message.id,
            "Urgency": "high" if message.is_urgent else "normal",
        }
        answer = await post(self.to.endpoint, headers, body)
        if answer.status in GONE:
            self.forget(self.to.id)
            raise Undelivered(f"HTTP {answer.status}: the browser has ended its subscription")
        return checked(answer, again=True)

    def _sealed(self, message: Message) -> tuple[bytes, str]:
        """What is sent, and the proof of who sends it. In a thread: the library may have to be loaded first."""
        from hitchpost.notify import push_crypto

        text = _fitted(message, push_crypto.MOST_TEXT_BYTES)
        body = push_crypto.encrypt(text, self.to.p256dh, self.to.auth)
        expires_s = int(self.wall()) + PROOF_S
        return body, push_crypto.authorization(self.key, origin(self.to.endpoint), self.contact, expires_s)


def _fitted(message: Message, most_bytes: int) -> bytes:
    """The message as JSON. Letters may have four bytes: what a push service would not take is cut from its body."""
    text = json.dumps(message.as_json(), ensure_ascii=False).encode()
    if (over := len(text) - most_bytes) <= 0:
        return text
    mark = "…"
    body = message.body.encode()[: -over - len(mark.encode())].decode(errors="ignore") + mark
    return json.dumps(replace(message, body=body).as_json(), ensure_ascii=False).encode()
