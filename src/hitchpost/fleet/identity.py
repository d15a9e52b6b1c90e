"""Who may speak with whom in a fleet: the installation's own authority, and the certificates that it signs.

Every session's pod has a certificate that names the session, every hub one that says that it is a hub. ``fleet.tls``
checks them. Only this module, and that of Web Push, import ``cryptography``: a pod needs none of it.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hitchpost.errors import HitchpostError
from hitchpost.fleet.tls import AUTHORITY, CERTIFICATE, HUB, KEY, name_of_session
from hitchpost.store import files, locks
from hitchpost.store.home import check_folder, is_id
from hitchpost.values import value

AUTHORITY_KEY = "authority-key.pem"
AUTHORITY_LIFE = timedelta(days=3650)
LIFE = timedelta(days=30)
"""Of a certificate for a hub or a session. It is due for another when a third of it is left."""
EARLIER = timedelta(hours=1)
"""Certificates hold since then: clocks of machines differ."""
CURVE = ec.SECP256R1()


class NoAuthority(HitchpostError):
    """Raised when the installation's authority is not where it should be, or cannot be used."""

    http_status = 503
    code = "no_authority"


@value
class Credentials:
    """What one side of a link shows, and what it checks the other side with. All are PEM."""

    authority: bytes
    certificate: bytes
    key: bytes

    def write(self, folder: str) -> None:
        """Into files that only their owner can read. The certificate comes last: who sees a new one finds its key."""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        check_folder(folder)
        for name, text in ((AUTHORITY, self.authority), (KEY, self.key), (CERTIFICATE, self.certificate)):
            files.replace_file(os.path.join(folder, name), text)


class Authority:
    """Signs the certificates of one installation. Whoever has its key can be anybody there: only hubs have it."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate, self._key = certificate, key

    @classmethod
    def make(cls, now: datetime | None = None) -> Authority:
        now = now or datetime.now(UTC)
        key = ec.generate_private_key(CURVE)
        name = _name(f"hitchpost {os.urandom(4).hex()}")
        made = (
            _begun(name, name, key.public_key(), key.public_key(), now, now + AUTHORITY_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
        )
        return cls(made.sign(key, hashes.SHA256()), key)

    @classmethod
    def from_pem(cls, certificate: bytes, key: bytes) -> Authority:
        """Raises ``NoAuthority``."""
        try:
            found, private = x509.load_pem_x509_certificate(certificate), load_pem_private_key(key, None)
        except (ValueError, TypeError) as error:
            raise NoAuthority(f"the installation's authority cannot be read: {error}") from None
        if not isinstance(private, ec.EllipticCurvePrivateKey) or private.public_key() != found.public_key():
            raise NoAuthority("the key of the installation's authority does not belong to its certificate")
        return cls(found, private)

    @classmethod
    def in_folder(cls, folder: str) -> Authority:
        """The one that is kept in ``folder``. It is made where there is none."""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        check_folder(folder)
        certificate, key = os.path.join(folder, AUTHORITY), os.path.join(folder, AUTHORITY_KEY)
        with locks.Lock(os.path.join(folder, files.LOCK)):
            if not os.path.exists(certificate):
                made = cls.make()
                files.replace_file(key, made.key)
                files.replace_file(certificate, made.certificate)
                return made
            return cls.from_pem(files.read_bytes(certificate), files.read_bytes(key))

    @property
    def certificate(self) -> bytes:
        return self._certificate.public_bytes(Encoding.PEM)

    @property
    def key(self) -> bytes:
        return _pem(self._key)

    def for_session(self, session: str, now: datetime | None = None, life: timedelta = LIFE) -> Credentials:
        """For the pod of a session, and for no other."""
        if not is_id(session):
            raise ValueError(f"expected the id of a session, but got {session!r}")
        return self._issue(name_of_session(session), ExtendedKeyUsageOID.SERVER_AUTH, now, life)

    def for_hub(self, now: datetime | None = None, life: timedelta = LIFE) -> Credentials:
        return self._issue(HUB, ExtendedKeyUsageOID.CLIENT_AUTH, now, life)

    def _issue(self, name: str, purpose: x509.ObjectIdentifier, now: datetime | None, life: timedelta) -> Credentials:
        now = now or datetime.now(UTC)
        key = ec.generate_private_key(CURVE)
        made = (
            _begun(_name(name), self._certificate.subject, key.public_key(), self._key.public_key(), now, now + life)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Credentials(self.certificate, made.public_bytes(Encoding.PEM), _pem(key))


def expires_at(certificate: bytes) -> datetime:
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def is_due(certificate: bytes, now: datetime | None = None) -> bool:
    """Whether it is time for another one: a third of its life is left. One that cannot be read is due, too."""
    try:
        found = x509.load_pem_x509_certificate(certificate)
    except ValueError:
        return True
    left = found.not_valid_after_utc - (now or datetime.now(UTC))
    return left < (found.not_valid_after_utc - found.not_valid_before_utc) / 3


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuers: ec.EllipticCurvePublicKey,
    now: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    made = made.serial_number(x509.random_serial_number()).not_valid_before(now - EARLIER).not_valid_after(until)
    made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    return made.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuers), critical=False)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
