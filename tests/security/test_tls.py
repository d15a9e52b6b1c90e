"""A hub that others can reach: TLS only, and nobody who only knocks can use it up."""

from __future__ import annotations

import os
import signal
import socket
import ssl
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from hitchpost.hub.http.tls import HANDSHAKE_S
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.reaching import certificate, free_port
from tests.support import eventually


@pytest.fixture
def tls(ground: Ground, hub: HubProcess) -> tuple[str, str]:
    """A hub at 127.0.0.2 with a certificate; where that and its key are."""
    pair = certificate(ground.place)
    hub.stop()
    hub.start(host="127.0.0.2", port=free_port(), reach=pair)
    return pair


def client(hub: HubProcess, cert: str, timeout_s: float = 60) -> httpx2.Client:
    headers, trusted = {"Authorization": f"Bearer {hub.token()}"}, ssl.create_default_context(cafile=cert)
    return httpx2.Client(base_url=hub.url, headers=headers, verify=trusted, timeout=timeout_s)


def port_of(hub: HubProcess) -> int:
    port = urlsplit(hub.url).port
    assert port is not None
    return port


def subject(port: int) -> str:
    return ssl.get_server_certificate(("127.0.0.2", port))


def test_a_hub_with_a_certificate_speaks_tls_and_nothing_else(hub: HubProcess, tls: tuple[str, str]) -> None:
    with client(hub, tls[0]) as asking:
        assert asking.get("/api/health").status_code == 200
    for host in ("127.0.0.2", "127.0.0.1"):
        with socket.create_connection((host, port_of(hub)), timeout=20) as plain:
            plain.sendall(f"GET / HTTP/1.1\r\nHost: {host}:{port_of(hub)}\r\n\r\n".encode())
            try:
                assert b"HTTP/1.1" not in plain.recv(1000)
            except ConnectionResetError:
                pass


def test_another_host_name_is_refused_over_tls_too(hub: HubProcess, tls: tuple[str, str]) -> None:
    with client(hub, tls[0]) as asking:
        assert asking.get("/api/health", headers={"Host": "evil.example"}).status_code == 403
        assert asking.get("/api/health", headers={"Origin": "https://evil.example"}).status_code == 403


def test_who_only_knocks_uses_up_no_descriptors(ground: Ground, hub: HubProcess) -> None:
    """More of them than the hub has descriptors. The owner gets in before the first of them runs out of time."""
    pair = certificate(ground.place)
    hub.stop()
    hub.start("prlimit", "--nofile=256", host="127.0.0.2", port=free_port(), reach=pair)
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection(("127.0.0.2", port_of(hub)), timeout=20))
        with client(hub, pair[0], timeout_s=HANDSHAKE_S - 2) as asking:
            assert asking.get("/api/health").status_code == 200
    assert "cannot accept a connection" not in hub.log()


def test_a_renewed_certificate_is_used_after_a_signal_and_a_broken_one_is_not(
    ground: Ground, hub: HubProcess, tls: tuple[str, str]
) -> None:
    assert hub.process is not None
    before = subject(port_of(hub))
    renewed = certificate(ground.place, "renewed")
    for new, old in zip(renewed, tls, strict=True):
        os.replace(new, old)
    os.kill(hub.process.pid, signal.SIGHUP)
    eventually(lambda: subject(port_of(hub)) != before, what="the new certificate")
    now = subject(port_of(hub))
    Path(tls[0]).write_text("broken")
    os.kill(hub.process.pid, signal.SIGHUP)
    eventually(lambda: "the certificate could not be read again" in hub.log(), what="the complaint")
    assert subject(port_of(hub)) == now
