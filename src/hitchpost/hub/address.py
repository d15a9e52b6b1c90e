"""Where the hub listens, and the URLs by which people reach it."""

from __future__ import annotations

import os
import socket
import ssl
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from hitchpost.errors import UsageError

LOOPBACKS = ("127.0.0.1", "::1", "localhost")
EVERYWHERE = ("0.0.0.0", "::")
USUAL_PORTS = {"http": 80, "https": 443}
HOW = "pass --tls-cert and --tls-key, or leave it on loopback and use ssh -L or a proxy (docs/remote.md)"


@dataclass(frozen=True, slots=True)
class Address:
    """``urls`` lead here from elsewhere, through a tunnel or a proxy, or by a name. Links are made with the first."""

    host: str = "127.0.0.1"
    port: int = 8750
    cert: str = ""
    key: str = ""
    urls: tuple[str, ...] = field(default=())

    @classmethod
    def of_words(cls, words: list[str]) -> Address:
        host, port, *more = words
        cert, key, *urls = more or ("", "")
        return cls(host, int(port), cert, key, tuple(urls))

    @property
    def words(self) -> list[str]:
        """As arguments of the hub's process."""
        return [self.host, str(self.port), self.cert, self.key, *self.urls]

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACKS

    @property
    def scheme(self) -> str:
        return "https" if self.cert else "http"

    def checked(self) -> Address:
        """With its URLs as browsers write them. Raises ``UsageError``."""
        if bool(self.cert) != bool(self.key):
            raise UsageError("expected --tls-cert and --tls-key together")
        if not (self.is_loopback or self.cert):
            raise UsageError(f"will not listen on {self.host} without TLS, because others could read everything; {HOW}")
        if self.host in EVERYWHERE and not self.urls:
            raise UsageError(f"expected --public-url with --host {self.host}: a link needs an address to open")
        self.context()
        cert, key = (os.path.abspath(path) if path else "" for path in (self.cert, self.key))
        return Address(self.host, self.port, cert, key, tuple(map(origin_of, self.urls)))

    def context(self) -> ssl.SSLContext | None:
        """None without TLS. Raises ``UsageError`` when the certificate or its key cannot be used."""
        if not self.cert:
            return None
        for path in (self.cert, self.key):
            try:
                with open(path, "rb"):
                    pass
            except OSError as error:
                raise UsageError(f"cannot read {path}: {os.strerror(error.errno or 0).lower()}") from None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(self.cert, self.key, password=lambda: "")
        except (ssl.SSLError, ValueError) as error:
            why = getattr(error, "reason", None) or str(error)
            raise UsageError(
                f"cannot use {self.cert} with the key {self.key}: {why}; both have to be PEM files without a password"
            ) from None
        return context

    def origins(self, port: int) -> list[str]:
        """Every origin of the page; that of links comes first."""
        names = [self.host, *LOOPBACKS] if self.host not in EVERYWHERE else LOOPBACKS
        own = [_origin(self.scheme, name, port) for name in names]
        return list(dict.fromkeys((*self.urls, *own)))

    def places(self) -> list[tuple[int, str]]:
        """What to listen on: both families of loopback always, so that nobody else can take the port there."""
        if self.host in EVERYWHERE:
            return [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")]
        found: list[tuple[int, str]] = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
        if not self.is_loopback:
            try:
                infos = socket.getaddrinfo(self.host, None, type=socket.SOCK_STREAM)
            except OSError as error:
                raise UsageError(f"cannot find the address of {self.host}: {error.strerror}") from None
            found += [(int(family), str(place[0])) for family, _, _, _, place in infos]
            if any(place in EVERYWHERE for _, place in found):
                raise UsageError(f"expected --host to be an address or a name, but got {self.host!r}")
        return list(dict.fromkeys(found))


def host_of(origin: str) -> str:
    """What a browser sends as Host."""
    return origin.partition("://")[2]


def origin_of(url: str, what: str = "--public-url") -> str:
    """The origin of a URL that somebody gave as ``what``, as browsers write it. Raises ``UsageError``."""
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        name, port = "", None
    plain = name and parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
    if not plain or parts.scheme not in USUAL_PORTS:
        raise UsageError(f"expected {what} to be like https://hub.example.org, but got {url!r}")
    if parts.scheme == "http" and name not in LOOPBACKS:
        raise UsageError(
            f"expected {what} to begin with https://, but got {url!r}: "
            "nobody signs in over plain HTTP, except at localhost"
        )
    return _origin(parts.scheme, name, port)


def _origin(scheme: str, name: str, port: int | None) -> str:
    name = f"[{name}]" if ":" in name else name
    return f"{scheme}://{name}" if port in (None, USUAL_PORTS[scheme]) else f"{scheme}://{name}:{port}"
