"""TLS between hubs and pods: both show a certificate of the installation's authority, and each checks who the other is.

A hub accepts the pod of one session only; a pod accepts hubs only. Nobody else's certificate counts, whatever it names.
"""

from __future__ import annotations

import os
import ssl

from hitchpost.errors import HitchpostError

AUTHORITY, CERTIFICATE, KEY = "authority.pem", "certificate.pem", "key.pem"
"""The files of an identity."""
HUB = "hub.hitchpost"
"""The name in every hub's certificate."""


class NotTrusted(HitchpostError):
    """Raised when one side of a link does not accept the other's certificate. Nothing was said then."""

    http_status = 502
    code = "not_trusted"


def name_of_session(session: str) -> str:
    return f"{session}.session.hitchpost"


class Identity:
    """The files in ``folder`` as a context for TLS. New files count from the next connection on."""

    def __init__(self, folder: str, *, is_pod: bool) -> None:
        self.folder, self.is_pod = folder, is_pod
        self._made: ssl.SSLContext | None = None
        self._files: tuple[tuple[int, int], ...] = ()

    def context(self) -> ssl.SSLContext:
        """Raises ``NotTrusted`` when the files are not there, or are not what they should be."""
        try:
            found = tuple(_place(os.path.join(self.folder, name)) for name in (AUTHORITY, CERTIFICATE, KEY))
            if self._made is None or found != self._files:
                self._made, self._files = self._make(), found
        except (OSError, ValueError) as error:
            raise NotTrusted(f"the certificate in {self.folder} cannot be used: {_why(error)}") from None
        return self._made

    def _make(self) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if self.is_pod else ssl.PROTOCOL_TLS_CLIENT)
        made.minimum_version = ssl.TLSVersion.TLSv1_3
        made.verify_mode = ssl.CERT_REQUIRED
        made.check_hostname = not self.is_pod
        made.load_verify_locations(os.path.join(self.folder, AUTHORITY))
        made.load_cert_chain(os.path.join(self.folder, CERTIFICATE), os.path.join(self.folder, KEY))
        if self.is_pod:
            made.num_tickets = 0
        return made


def why_not_a_hub(tls: ssl.SSLObject) -> str:
    """Why the other side may not speak with a pod; empty when it may."""
    shown = tls.getpeercert() or {}
    names = [item[1] for item in shown.get("subjectAltName", ()) if item[0] == "DNS"]
    whose = ", ".join(map(str, names)) or "nobody"
    return "" if names == [HUB] else f"expected the certificate of a hub, but got that of {whose}"


def refusal(error: ssl.SSLError, *, is_pod: bool) -> str:
    """What to say when a handshake fails: who did not accept whom, and why."""
    other = "hub" if is_pod else "pod"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the {other}'s certificate is not accepted: {error.verify_message}"
    why = _why(error)
    if (error.reason or "").startswith("PEER_DID_NOT"):
        return f"the {other} shows no certificate"
    return f"the {other} does not accept this certificate: {why}" if "alert" in why else f"no TLS: {why}"


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return str(reason).replace("_", " ").lower()


def _place(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_ino, found.st_mtime_ns
