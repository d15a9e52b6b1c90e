"""Connections to a hub elsewhere: TLS with a certificate that is verified; without TLS on loopback only."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import urlsplit

from hitchpost.cli.remote.contexts import Context
from hitchpost.errors import HitchpostError

CONNECT_S, ANSWERS_S = 10.0, 30.0
"""Until somebody takes the connection; and until a hub that is busy has answered its first words."""
PORTS = {"http": 80, "https": 443}


class CannotReach(HitchpostError):
    """Raised when a hub elsewhere does not answer, or is not known to be the one that it should be."""

    code = "unreachable"

    def __init__(self, context: Context, error: Exception) -> None:
        is_distrusted = isinstance(error, ssl.SSLCertVerificationError)
        hint = _distrusted(context) if is_distrusted else _unreached(context)
        super().__init__(f"cannot reach {context.name} ({context.url}): {_why(error)}", hint)


class NoHubThere(HitchpostError):
    """Raised when what answers is no hub: something in between, such as a proxy, or something else."""

    def __init__(self, status: int) -> None:
        super().__init__(f"what answers there is no hub (HTTP {status})")


def _why(error: Exception) -> str:
    if isinstance(error, NoHubThere):
        return str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message.rstrip('.')})"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or error})"
    if isinstance(error, socket.gaierror):
        return "no such host is known"
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, OSError):
        return (error.strerror or str(error) or type(error).__name__).lower()
    return "it does not speak as a hub does"


def _distrusted(context: Context) -> str:
    if context.is_new:
        return "nothing was added; name the authority that has signed it with --ca-file, if you trust it"
    name, url = context.name, context.url
    again = f"hitch context add {name} {url} --ca-file FILE adds it with the authority that has signed it"
    return f"hitch context rm {name} forgets it, and then {again}"


def _unreached(context: Context) -> str:
    if context.is_new:
        return "nothing was added; check the URL, and that the hub listens there"
    return f"hitch context show {context.name} tries it again"


def address(url: str) -> tuple[str, int, bool]:
    """Host, port, and whether it is TLS."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or PORTS[parts.scheme], parts.scheme == "https"


def host_header(url: str) -> str:
    """What the hub compares with its own name."""
    return urlsplit(url).netloc


def trusting(authorities: str) -> ssl.SSLContext:
    """Raises ``OSError`` when the file of authorities cannot be used."""
    if not authorities:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which verifies certificate and name
    context.load_verify_locations(authorities)
    return context


def connect(context: Context, timeout_s: float = ANSWERS_S) -> socket.socket:
    """Raises ``CannotReach``."""
    host, _, is_tls = address(context.url)
    sock = open_plain(context, min(timeout_s, CONNECT_S))
    try:
        sock.settimeout(timeout_s)
        return trusting(context.authorities).wrap_socket(sock, server_hostname=host) if is_tls else sock
    except OSError as error:
        sock.close()
        raise CannotReach(context, error) from None
    except BaseException:
        sock.close()
        raise


def open_plain(context: Context, timeout_s: float = CONNECT_S) -> socket.socket:
    """A connection on which TLS has not begun. Raises ``CannotReach``."""
    host, port, _ = address(context.url)
    try:
        sock = socket.create_connection((host, port), timeout_s)
    except OSError as error:
        raise CannotReach(context, error) from None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock
