"""The certificates of a cluster, of an authority of its own, and files that say how somebody reaches it."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = timedelta(days=365)


@dataclass(slots=True)
class Authority:
    folder: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, folder: Path) -> Authority:
        folder.mkdir(mode=0o700)
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("hitchpost-test")
        made = (
            _signed_for(name, name, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        authority = cls(folder, key, made)
        _write(folder / "ca", key, made)
        accounts = ec.generate_private_key(ec.SECP256R1())
        (folder / "accounts.key").write_bytes(_private(accounts))
        public = accounts.public_key()
        (folder / "accounts.pub").write_bytes(
            public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        return authority

    def issue(self, file: str, name: str, groups: tuple[str, ...] = (), hosts: tuple[str, ...] = ()) -> None:
        """Writes ``FILE.crt`` and ``FILE.key`` for ``name``, a client and, at these hosts, a server."""
        key = ec.generate_private_key(ec.SECP256R1())
        draft = _signed_for(_name(name, *groups), self.certificate.subject, key).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
        if hosts:
            draft = draft.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        _write(self.folder / file, key, draft.sign(self.key, hashes.SHA256()))


def _signed_for(name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + VALID)
    )


def _name(name: str, *groups: str) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _write(path: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    path.with_suffix(".key").touch(mode=0o600)
    path.with_suffix(".key").write_bytes(_private(key))
    path.with_suffix(".crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def kubeconfig(path: Path, server: str, authority: Path, user: dict[str, str], namespace: str = "default") -> None:
    """``user`` has ``client-certificate`` and ``client-key``, or ``token``. JSON is YAML, too."""
    whole = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user", "namespace": namespace}}],
        "current-context": "test",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(whole))
