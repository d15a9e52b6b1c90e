"""The installation's authority, which all hubs share: a Secret of the cluster that only hubs can read."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from hitchpost.fleet.identity import Authority, NoAuthority
from hitchpost.fleet.kube import Kube, Object, Secret
from hitchpost.fleet.tls import AUTHORITY, CERTIFICATE, KEY

NAME = "hitchpost-authority"


class SharedAuthority:
    """``cluster.Identities``. The first hub makes it; two at once agree on whose was first."""

    def __init__(self, kube: Kube) -> None:
        """Raises ``ClusterAway``, ``ClusterRefused`` or ``NoAuthority``."""
        found = kube.get(Secret, NAME)
        if found is None:
            made = Authority.make()
            found = kube.create(Secret, _secret(made)) or kube.get(Secret, NAME)
        if found is None:
            raise NoAuthority(f"the secret {NAME} was deleted while it was being made")
        self.authority = _authority(found)

    def files_of(self, session: str) -> Mapping[str, bytes]:
        made = self.authority.for_session(session)
        return {AUTHORITY: made.authority, CERTIFICATE: made.certificate, KEY: made.key}


def _secret(made: Authority) -> Object:
    texts = {CERTIFICATE: made.certificate, KEY: made.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {"name": NAME},
        "data": {name: base64.b64encode(text).decode() for name, text in texts.items()},
    }


def _authority(found: Object) -> Authority:
    data = found.get("data") or {}
    try:
        certificate, key = (base64.b64decode(data[name], validate=True) for name in (CERTIFICATE, KEY))
    except (KeyError, ValueError):
        raise NoAuthority(f"expected {CERTIFICATE} and {KEY} in the secret {NAME}, but got {sorted(data)}") from None
    return Authority.from_pem(certificate, key)
