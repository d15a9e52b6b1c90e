"""What receives notifications in tests: an HTTP server on loopback, and a browser's end of Web Push."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


@dataclass(slots=True)
class Got:
    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Receiver:
    """Answers every POST with ``status``; ``before`` is called when one has come whole, before it is answered."""

    url: str = ""
    got: list[Got] = field(default_factory=list)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    answer: bytes = b"{}"
    before: Callable[[Got], object] = lambda got: None

    @property
    def host(self) -> str:
        return self.url.partition("://")[2]


@contextmanager
def receiver() -> Iterator[Receiver]:
    made = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got = Got(self.path, {name.lower(): text for name, text in self.headers.items()}, body, time.monotonic())
            made.got.append(got)
            made.before(got)
            try:
                self.send_response(made.status)
                for name, text in {**made.headers, "Content-Length": str(len(made.answer))}.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(made.answer)
            except OSError:
                return  # who asked is gone

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Browser:
    """A browser's push subscription: its keys, and how it reads a message (RFC 8291) and checks a sender (RFC 8292)."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._point = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self._auth = b"sixteen bytes ok"

    def subscription(self, endpoint: str) -> dict[str, Any]:
        keys = {"p256dh": encoded(self._point), "auth": encoded(self._auth)}
        return {"endpoint": endpoint, "expirationTime": None, "keys": keys}

    def read(self, body: bytes) -> dict[str, Any]:
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, sealed = body[21 : 21 + length], body[21 + length :]
        assert size >= len(sealed)
        shared = self._key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        secret = derived(shared, self._auth, b"WebPush: info\0" + self._point + sender, 32)
        key = derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = derived(secret, salt, b"Content-Encoding: nonce\0", 12)
        text = AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\0")
        assert text[-1] == 2
        return json.loads(text[:-1])

    @staticmethod
    def claims(authorization: str, expected_key: str) -> dict[str, Any]:
        """What the sender claims, when its signature is right. Raises ``InvalidSignature``."""
        scheme, _, rest = authorization.partition(" ")
        parts = dict(part.strip().split("=", 1) for part in rest.split(","))
        assert (scheme, parts["k"]) == ("vapid", expected_key)
        head, claims, signature = parts["t"].split(".")
        assert json.loads(decoded(head))["alg"] == "ES256"
        raw = decoded(signature)
        der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(parts["k"]))
        public.verify(der, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
        return json.loads(decoded(claims))


def derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
