"""The cryptography of Web Push: a message only its browser can read (RFC 8291), and who sends it (RFC 8292, VAPID).

Only this module imports ``cryptography``, which takes long to load: import it when there is something to send.
"""

from __future__ import annotations

import base64
import json
import os

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CURVE = ec.SECP256R1()
POINT_BYTES, AUTH_BYTES, SALT_BYTES = 65, 16, 16
RECORD_BYTES = 4096
"""What a push service takes at most; all of a message is one record."""
MOST_TEXT_BYTES = 3800


def new_key() -> str:
    """A private key, as text."""
    return f"{ec.generate_private_key(CURVE).private_numbers().private_value:064x}"


def public_key(private: str) -> str:
    """As browsers want it: base64url of the uncompressed point."""
    return to_base64url(_point(_private(private).public_key()))


def check_subscription(p256dh: str, auth: str) -> None:
    """Raises ``ValueError`` unless these are the keys of a browser's subscription."""
    point, secret = from_base64url(p256dh), from_base64url(auth)
    if len(point) != POINT_BYTES or len(secret) != AUTH_BYTES:
        raise ValueError("expected a point of 65 bytes and a secret of 16")
    ec.EllipticCurvePublicKey.from_encoded_point(CURVE, point)


def encrypt(text: bytes, p256dh: str, auth: str, *, private: str = "", salt: bytes = b"") -> bytes:
    """The body of a push message, ``aes128gcm``. A key and a salt are given only to check against known answers."""
    if len(text) > MOST_TEXT_BYTES:
        raise ValueError(f"expected at most {MOST_TEXT_BYTES} bytes, but got {len(text)}")
    receiver = from_base64url(p256dh)
    sender = _private(private) if private else ec.generate_private_key(CURVE)
    salt = salt or os.urandom(SALT_BYTES)
    shared = sender.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, receiver))
    own = _point(sender.public_key())
    secret = _derive(shared, from_base64url(auth), b"WebPush: info\0" + receiver + own, 32)
    key = _derive(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(secret, salt, b"Content-Encoding: nonce\0", 12)
    head = salt + RECORD_BYTES.to_bytes(4, "big") + bytes([len(own)]) + own
    return head + AESGCM(key).encrypt(nonce, text + b"\x02", None)  # 2 ends the last record


def authorization(private: str, audience: str, contact: str, expires_s: int) -> str:
    """The header that proves to a push service who sends."""
    claims = {"aud": audience, "exp": expires_s, "sub": contact}
    signed = ".".join(to_base64url(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "ES256"}, claims))
    r, s = decode_dss_signature(_private(private).sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    token = f"{signed}.{to_base64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"
    return f"vapid t={token}, k={public_key(private)}"


def to_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64url(text: str) -> bytes:
    """Raises ``ValueError``."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


def _private(text: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int(text, 16), CURVE)


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
